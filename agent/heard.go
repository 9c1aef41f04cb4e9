package agent

import (
	"strings"
	"time"

	"xiaozhi/prompts"
)

// This file is what of a turn has been heard.

// heard is what the user has heard by now of each step's sentences that belong
// to the answer, and whether something that was begun or waiting is missing.
func (f *floor) heard(now time.Time, steps int) (texts []string, partial bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	texts = make([]string, max(steps, 1))
	left := f.pacer.Heard(now)
	for _, s := range f.spoken {
		text, whole := s.heard(&left, f.format.Frame)
		partial = partial || !whole
		if s.keep && text != "" && s.step < len(texts) {
			texts[s.step] = joinText(texts[s.step], text)
		}
	}
	return texts, partial
}

// heard is what was played of a sentence, and whether that is all of it. left
// is how much sound the device has played from the sentence's beginning on, and
// becomes what is left of that for the next.
func (s spokenSentence) heard(left *time.Duration, frame time.Duration) (text string, whole bool) {
	total := time.Duration(s.frames) * frame
	played := min(*left, total)
	*left -= played
	if s.whole && played == total {
		return s.display, true
	}
	return prefixHeard(s, played, frame), false
}

// echoMemory is how long what was played may come back into the microphone.
const echoMemory = 3 * time.Second

// playing is what the device is playing by now, and has played not long before:
// the texts of the sentences.
func (f *floor) playing(now time.Time) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	ended := f.pacer.Heard(now) - echoMemory
	for _, s := range f.spoken {
		length := time.Duration(s.frames) * f.format.Frame
		if ended < length {
			out = append(out, s.display)
		}
		ended -= length
	}
	return strings.Join(out, " ")
}

// asides is what the user has heard by now that is no part of the answer: a
// phrase that stands for one, or the reason why it is not whole.
func (f *floor) asides(now time.Time) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all string
	left := f.pacer.Heard(now)
	for _, s := range f.spoken {
		text, _ := s.heard(&left, f.format.Frame)
		if !s.keep && s.sound == nil && !passing(s.fallback) {
			all = joinText(all, text)
		}
	}
	return all
}

// passing reports whether a phrase only passes the time.
func passing(phrase string) bool {
	switch phrase {
	case prompts.Filler, prompts.FillerLong, prompts.SlowASR, prompts.SlowLLM, prompts.SlowTTS:
		return true
	}
	return false
}

// showed reports whether a piece of the answer was passed on as text.
func (f *floor) showed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shown
}

// played is how much sound the device has played of the turn.
func (f *floor) played(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pacer.Heard(now)
}

// runeTime is how long a character takes to say, for sentences whose whole
// sound is not there yet: about 4.5 CJK characters or 14 letters a second.
func runeTime(language string) time.Duration {
	if language == "zh" {
		return 220 * time.Millisecond
	}
	return 70 * time.Millisecond
}

// prefixHeard is the part of a sentence that was played.
func prefixHeard(s spokenSentence, played, frame time.Duration) string {
	runes := []rune(s.display)
	total := time.Duration(s.frames) * frame
	if !s.whole {
		total = max(total, time.Duration(s.length.nanos.Load()))
		if !s.length.whole.Load() {
			total = max(total, time.Duration(len(runes))*runeTime(s.language))
		}
	}
	if total <= 0 || played <= 0 {
		return ""
	}
	n := int(int64(len(runes)) * int64(played) / int64(total))
	return strings.TrimSpace(string(runes[:min(n, len(runes))]))
}

// counters are what the pacer measured.
func (f *floor) counters() (frames, underruns int, minLead time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pacer.Frames(), f.pacer.Underruns(), f.pacer.MinLead()
}
