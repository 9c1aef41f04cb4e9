package speak

import (
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/prompts"
)

// echoMemory is how long what was played may come back into the microphone.
const echoMemory = 3 * time.Second

// ledger knows how much of each segment was handed over, and so what was heard.
// Its owner guards it.
type ledger struct {
	frame  time.Duration // the length of one
	played []playedSegment
}

// playedSegment describes how far a segment got.
type playedSegment struct {
	Segment
	frames int  // handed over so far
	whole  bool // the last of its frames was handed over
}

func (l *ledger) beginSegment(s Segment) {
	l.endSegment()
	l.played = append(l.played, playedSegment{Segment: s})
}

// endSegment notes that all frames of the last segment were handed over.
func (l *ledger) endSegment() {
	if n := len(l.played); n > 0 {
		l.played[n-1].whole = true
	}
}

func (l *ledger) frameSent() {
	if n := len(l.played); n > 0 {
		l.played[n-1].frames++
	}
}

// heard returns what was heard of each step's segments that belong to the answer, when
// so much was played, and whether something is missing.
func (l *ledger) heard(left time.Duration, steps int) (texts []string, partial bool) {
	texts = make([]string, max(steps, 1))
	for _, s := range l.played {
		words, whole := s.heard(&left, l.frame)
		partial = partial || !whole
		if s.Keep && words != "" && s.Step < len(texts) {
			texts[s.Step] = text.Join(texts[s.Step], words)
		}
	}
	return texts, partial
}

// playing returns what was played within the last seconds, when so much was played.
func (l *ledger) playing(left time.Duration) string {
	var out []string
	left -= echoMemory
	for _, s := range l.played {
		length := time.Duration(s.frames) * l.frame
		if left < length {
			out = append(out, s.Display)
		}
		left -= length
	}
	return strings.Join(out, " ")
}

// beside returns what was heard that is no part of the answer, when so much was played.
func (l *ledger) beside(left time.Duration) (all string) {
	for _, s := range l.played {
		words, _ := s.heard(&left, l.frame)
		if !s.Keep && s.Sound == nil && !passing(s.Fallback) {
			all = text.Join(all, words)
		}
	}
	return all
}

// aloud returns how much was heard of sound that came with its own words, when so much was played.
func (l *ledger) aloud(left time.Duration) (heard time.Duration) {
	for _, s := range l.played {
		played := min(left, time.Duration(s.frames)*l.frame)
		if left -= played; s.aloud {
			heard += played
		}
	}
	return heard
}

// passing reports whether a phrase only passes the time.
func passing(phrase string) bool {
	switch phrase {
	case prompts.Filler, prompts.FillerLong, prompts.FillerQuarter, prompts.FillerHalf, prompts.FillerMost, prompts.SlowASR, prompts.SlowLLM, prompts.SlowTTS:
		return true
	}
	return false
}

// heard returns the part of the segment that was played, and whether that is all
// of it. It consumes left, the sound that was played from its beginning on.
func (s playedSegment) heard(left *time.Duration, frame time.Duration) (words string, whole bool) {
	total := time.Duration(s.frames) * frame
	played := min(*left, total)
	*left -= played
	if s.whole && played == total {
		return s.Display, true
	}
	return s.prefix(played, frame), false
}

// prefix is the part of the segment that was played. A text whose sound is not
// all there is taken to last as long as people take to say it.
func (s playedSegment) prefix(played, frame time.Duration) string {
	runes := []rune(s.Display)
	total := time.Duration(s.frames) * frame
	if !s.whole {
		total = max(total, time.Duration(s.progress.nanos.Load()))
		if !s.progress.whole.Load() {
			total = max(total, time.Duration(len(runes))*runeTime(s.Language))
		}
	}
	if total <= 0 || played <= 0 {
		return ""
	}
	n := int(int64(len(runes)) * int64(played) / int64(total))
	return strings.TrimSpace(string(runes[:min(n, len(runes))]))
}

// runeTime returns how long a character takes to say: about 4.5 Chinese characters, 7 kana, 6 syllables of
// Korean or 14 letters a second.
func runeTime(lang text.Lang) time.Duration {
	switch {
	case lang.IsChinese():
		return 220 * time.Millisecond
	case lang.Base() == "ja":
		return 140 * time.Millisecond
	case lang.Base() == "ko":
		return 170 * time.Millisecond
	}
	return 70 * time.Millisecond
}
