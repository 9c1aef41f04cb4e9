package agent

import (
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/wire"
)

// This file is what the server says without being asked: server turns
// (style.md, "A turn"). They wait in the device's record, so that what comes
// due without a connection is told on the next.

const (
	maxNotices  = 8               // waiting for one device; more are refused
	maxNews     = 32              // the same for outcomes of calls, which cannot wait elsewhere
	noticeAfter = time.Second     // of quiet, before a server turn begins
	musicAfter  = 3 * time.Second // of quiet, before music goes on
)

// notice is one thing to be told. One that is not told because its turn was cut
// before anything of it was heard, waits again.
type notice struct {
	language string   // "zh" or "en"
	ring     bool     // a chime comes first
	reminds  bool     // its words say more than the chime
	say      string   // spoken as it is
	parts    []notice // the notices that it was made of, in their order; nil: it is one
	// ask is told to the model instead, which words it; say is what is spoken
	// when the model fails.
	ask  string
	song *playing // goes on playing; nothing else is set
	from *request // somebody outside who waits for it; nil: nobody
}

// tell queues a notice. False: too many are waiting.
func (c *Conversation) tell(n notice) bool { return c.queue(n, maxNotices) }

// tellNews queues the outcome of a call.
func (c *Conversation) tellNews(n notice) {
	if !c.queue(n, maxNews) {
		c.log.Warn("outcome of a call is not told: too much is waiting", "waiting", len(c.dev.notices))
	}
}

// queue adds a notice to those waiting, unless there are limit already. Music,
// of which there is never more than one, always has its place, which is the last.
func (c *Conversation) queue(n notice, limit int) bool {
	waiting := c.dev.notices
	if n.song == nil && len(waiting) >= limit {
		return false
	}
	at := len(waiting)
	if n.song == nil && at > 0 && waiting[at-1].song != nil {
		at--
	}
	c.dev.notices = slices.Insert(slices.Clone(waiting), at, n)
	c.awaitCalm()
	return true
}

// awaitCalm sets the timer of the next notice.
func (c *Conversation) awaitCalm() {
	if len(c.dev.notices) == 0 && !c.slowReady() {
		c.calm.Stop()
		return
	}
	after := noticeAfter
	if !c.slowReady() {
		if song := c.dev.notices[0].song; song != nil && song.read > 0 {
			after = musicAfter
		}
	}
	c.calm.Reset(time.Until(c.active.Add(after)))
}

// tellNext begins a server turn, if nobody speaks or is about to. Otherwise the
// end of what goes on brings the next occasion.
func (c *Conversation) tellNext() {
	c.dev.notices = slices.DeleteFunc(slices.Clone(c.dev.notices), func(n notice) bool { return n.from != nil && n.from.off.Load() })
	if c.playsMusic() && !c.voiced.Load() && len(c.dev.notices) > 0 && c.dev.notices[0].song == nil {
		c.hushMusic(ErrPaused) // what is to be told goes before music; its end brings the next occasion
	}
	listening := c.state == Listening && c.mode != wire.Manual && !c.voiced.Load()
	if len(c.dev.notices) == 0 && !c.slowReady() || c.hungUp || c.greeting != "" || c.busy() || (c.turn != nil && !c.turnDone) ||
		(c.state != Idle && !listening) {
		return
	}
	if c.slowReady() {
		c.answerSlow()
		return
	}
	n := c.takeNotice()
	c.forget()
	c.step(sigServer)
	c.begin(order{notice: &n, language: n.language, timing: &timing{endOfSpeech: time.Now()}})
}

// takeNotice is the next notice; plain sentences that wait behind it in the
// same language are said with it.
func (c *Conversation) takeNotice() notice {
	waiting := c.dev.notices
	n := waiting[0]
	waiting = waiting[1:]
	parts := []notice{n}
	for len(waiting) > 0 && n.plain() && waiting[0].plain() && waiting[0].language == n.language {
		n.say = joinText(n.say, waiting[0].say)
		parts = append(parts, waiting[0])
		waiting = waiting[1:]
	}
	if len(parts) > 1 {
		n.parts = parts
	}
	c.dev.notices = append([]notice(nil), waiting...)
	return n
}

// plain reports whether the notice is nothing but words to be spoken.
func (n notice) plain() bool {
	return n.ask == "" && n.song == nil && !n.ring && n.say != "" && n.from == nil
}

// untold puts back what nobody has heard anything of.
func (c *Conversation) untold(n ...notice) {
	c.dev.notices = slices.Concat(n, c.dev.notices)
	c.awaitCalm()
}

// actionWords is what a tool does, in words that can be said: "turn on the
// lamp" for self.lamp.turn_on, the beginning of a Chinese description in Chinese.
func actionWords(name, description, language string) string {
	if language == "zh" {
		if clause := shortClause(description); clause != "" {
			return clause
		}
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '/' || r == ':' })
	if len(parts) == 0 {
		return name
	}
	words := strings.FieldsFunc(strings.ToLower(parts[len(parts)-1]), func(r rune) bool { return r == '_' || r == '-' || r == ' ' })
	verb := 1
	for verb < len(words) && isParticle(words[verb]) {
		verb++
	}
	object := words[min(verb, len(words)):]
	if len(object) == 0 && len(parts) > 1 && parts[len(parts)-2] != "self" {
		object = strings.FieldsFunc(parts[len(parts)-2], func(r rune) bool { return r == '_' || r == '-' })
	}
	out := strings.Join(words[:min(verb, len(words))], " ")
	if len(object) > 0 && language != "zh" {
		out += " the"
	}
	return strings.TrimSpace(out + " " + strings.Join(object, " "))
}

func isParticle(word string) bool {
	switch word {
	case "on", "off", "up", "down", "in", "out":
		return true
	}
	return false
}

// maxClause is how many characters of a description are said.
const maxClause = 14

// shortClause is the beginning of a Chinese description, if it is short enough
// to be said.
func shortClause(description string) string {
	clause, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	if i := strings.IndexAny(clause, "。，；！：（(,.;"); i >= 0 {
		clause = clause[:i]
	}
	clause = strings.TrimSpace(clause)
	if n := len([]rune(clause)); n == 0 || n > maxClause || languageOf(clause) != "zh" {
		return ""
	}
	return clause
}
