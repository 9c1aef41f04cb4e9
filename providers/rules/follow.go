package rules

import (
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// withTime understands what is said as the time of a reminder that the user asked for without one just before, and that the
// brain has asked for. whole are the words of both.
func (b *Brain) withTime(messages []providers.Message, said string, zone *time.Location) (in intent, whole string, ok bool) {
	last := -1
	for i, m := range messages {
		if m.Role == providers.RoleUser {
			last = i
		}
	}
	if last < 2 || messages[last-1].Role != providers.RoleAssistant || messages[last-2].Role != providers.RoleUser {
		return in, "", false
	}
	heard := messages[last-1].Content // perhaps not all of it
	asked := func(lang text.Lang) bool { return heard != "" && strings.HasPrefix(b.say(phraseWhen, lang), heard) }
	before := messages[last-2].Content
	if wish, ok := b.understand(before, zone, everything); !ok || wish.act != actWhen || !asked(text.English) && !asked(text.Chinese) {
		return in, "", false
	}
	if text.Of(before) == text.Chinese {
		whole = strings.TrimRight(said, "。！，") + before
	} else {
		whole = strings.TrimRight(said, ".!,") + " " + before
	}
	in, ok = b.understand(whole, zone, everything)
	return in, whole, ok && (in.act == actRemind || in.act == actWake)
}

// again understands what is said as another day for what was asked just before: and on sunday, 那元旦呢.
func (b *Brain) again(messages []providers.Message, in intent, zone *time.Location) (intent, bool) {
	last := len(messages) - 1
	for last >= 0 && messages[last].Role != providers.RoleUser {
		last--
	}
	for i, asked := range slices.Backward(messages[:max(last, 0)]) {
		if asked.Role != providers.RoleUser {
			continue
		}
		before, ok := b.understand(asked.Content, zone, everything)
		if ok && before.act == actAgain && i > 0 {
			before, ok = b.again(messages[:i+1], before, zone)
		}
		if _, of := before.slots["day"]; !ok || !of && before.act != actLunar && before.act != actFestival && before.act != actDate {
			return in, false
		}
		if before.act == actDate {
			before.act = actDay
		}
		before.slots = slots{"day": in.slots["day"]}
		return before, true
	}
	return in, false
}

// theOnes leaves of a list of timers and alarms those that were asked for, by their text, length or time, and no timers
// where it was asked for alarms; all, if there are none of these.
func theOnes(data any, in intent, said string) any {
	list, ok := data.([]any)
	if !ok {
		return data
	}
	words, said := text.Bare(strings.TrimSuffix(in.asked.what, " is")), strings.ToLower(said)
	alarms, timers := containsAny(said, []string{"alarm", "闹钟", "闹铃"}), containsAny(said, []string{"timer", "countdown", "计时", "定时"})
	meant := slices.DeleteFunc(slices.Clone(list), func(item any) bool {
		fields, _ := item.(map[string]any)
		value := func(key string) string { text, _ := fields[key].(string); return text }
		if in.act == actLeft && words != "" {
			return !slices.ContainsFunc([]string{"text", "length", "due"}, func(key string) bool {
				own := text.Bare(value(key))
				return own != "" && (strings.Contains(own, words) || strings.Contains(words, own))
			})
		}
		return alarms && !timers && value("length") != ""
	})
	if len(meant) == 0 {
		return data
	}
	return meant
}

// maxFollowed is how many requests before this one are looked at, each about what the one before it was.
const maxFollowed = 4

// before returns the topic of what the user said right before the newest words of some messages, so that "make it ten" is about that.
func (b *Brain) before(messages []providers.Message, zone *time.Location) topic {
	var said []string // the newest first
	for _, m := range slices.Backward(messages) {
		if m.Role == providers.RoleUser && len(said) <= maxFollowed {
			said = append(said, m.Content)
		}
	}
	about := topic("")
	for i := len(said) - 1; i > 0; i-- {
		in, ok := b.understandAfter(about, said[i], zone, everything)
		if about = ""; ok {
			about = topicOf(in.act)
		}
	}
	return about
}

// topicOf returns what requests of an act are about, "" for those that nothing follows up.
func topicOf(a act) topic {
	switch a {
	case actTimer, actWake, actRemind, actChange, actTimers, actLeft:
		return aboutTimers
	case actNews, actDetails:
		return aboutNews
	default:
		return ""
	}
}
