package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"xiaozhi/agent/record"
	"xiaozhi/providers"
)

// maxDifferences is how many differences of a kind are told.
const maxDifferences = 10

// Compare says how a replay differs from its recording; nothing if it does not.
// Times may be within apart.
func Compare(want, got *record.Recording, within time.Duration) []string {
	exact := SameSound(want, got)
	var out []string
	for _, kind := range []struct {
		name   string
		of     func(record.Entry, bool) (string, bool)
		beside bool // they may happen side by side, in any order
	}{
		{"message", message(false), false},
		{"message about the voice", message(true), false},
		{"packet", packet, false},
		{"request to the model", request, false},
		{"request to the voice", speech, false},
		{"utterance", utterance, false},
		{"tool call", toolCall, true},
	} {
		a, b := pick(want, kind.of, exact), pick(got, kind.of, exact)
		if kind.beside {
			arrange(a, within)
			arrange(b, within)
		}
		out = append(out, compare(kind.name, a, b, within)...)
	}
	return out
}

// SameSound reports whether the packets of a replay can be compared byte by
// byte: the same Opus library made both, and voices were not brought to one
// loudness. The gain of a frame is what is known of its voice when it is played,
// and so depends on how fast the machine was.
func SameSound(want, got *record.Recording) bool {
	a, b := want.Begin(), got.Begin()
	return a != nil && b != nil && a.Codec == b.Codec && !a.Has.Levels
}

// Farthest is by how much times of messages and packets are apart at most.
func Farthest(want, got *record.Recording) time.Duration {
	var most time.Duration
	for _, of := range []func(record.Entry, bool) (string, bool){message(false), message(true), packet} {
		a, b := pick(want, of, true), pick(got, of, true)
		for i := range min(len(a), len(b)) {
			most = max(most, (a[i].at - b[i].at).Abs())
		}
	}
	return most
}

func pick(r *record.Recording, of func(record.Entry, bool) (string, bool), exact bool) []step[string] {
	var out []step[string]
	for _, e := range r.Entries {
		if text, ok := of(e, exact); ok {
			out = append(out, step[string]{e.T, text})
		}
	}
	return out
}

func compare(name string, want, got []step[string], within time.Duration) []string {
	var out []string
	for i := range max(len(want), len(got)) {
		if len(out) == maxDifferences {
			return append(out, fmt.Sprintf("%s: and more", name))
		}
		switch {
		case i >= len(want):
			out = append(out, fmt.Sprintf("%s %d is new: at %v: %s", name, i+1, got[i].at, got[i].v))
		case i >= len(got):
			out = append(out, fmt.Sprintf("%s %d is missing: at %v: %s", name, i+1, want[i].at, want[i].v))
		case want[i].v != got[i].v:
			out = append(out, fmt.Sprintf("%s %d differs:\n  recorded at %v: %s\n  replayed at %v: %s", name, i+1, want[i].at, want[i].v, got[i].at, got[i].v))
		case (want[i].at - got[i].at).Abs() > within:
			out = append(out, fmt.Sprintf("%s %d came at %v, recorded at %v: %s", name, i+1, got[i].at, want[i].at, want[i].v))
		}
	}
	return out
}

// arrange puts what happened side by side into one order.
func arrange(steps []step[string], within time.Duration) {
	for from := 0; from < len(steps); {
		to := from + 1
		for to < len(steps) && steps[to].at-steps[to-1].at <= within {
			to++
		}
		slices.SortStableFunc(steps[from:to], func(a, b step[string]) int { return strings.Compare(a.v, b.v) })
		from = to
	}
}

// text is v as JSON.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// message are the messages of one of the two that speak to the device: the voice
// of a reply, which begins and ends it and shows each sentence, and those who
// have the words. They do not wait for one another.
func message(voice bool) func(record.Entry, bool) (string, bool) {
	return func(e record.Entry, exact bool) (string, bool) {
		switch {
		case e.Sent != nil && ofVoice(e.Sent.Kind) == voice:
			m := *e.Sent
			if !exact && len(m.Closing) > 0 {
				m.Closing = []byte("a silent frame")
			}
			return text(m), true
		case e.HangUp != nil && !voice:
			return "hang up: " + e.HangUp.Cause, true
		}
		return "", false
	}
}

func ofVoice(kind string) bool {
	switch kind {
	case "tts_start", "tts_stop", "sentence_start", "emotion":
		return true
	}
	return false
}

func packet(e record.Entry, exact bool) (string, bool) {
	if e.Audio == nil {
		return "", false
	}
	what := "of any bytes"
	if exact {
		what = fmt.Sprintf("of %d bytes, sum %.8x", len(e.Audio.Packet), sha256.Sum256(e.Audio.Packet))
	}
	return fmt.Sprintf("turn %d %s, refused: %v", e.Audio.Turn, what, e.Audio.Refused), true
}

// request leaves out the words of the system prompt.
func request(e record.Entry, _ bool) (string, bool) {
	if e.LLM == nil || e.LLM.Request == nil {
		return "", false
	}
	r := *e.LLM.Request
	r.Messages = append([]providers.Message(nil), r.Messages...)
	for i := range r.Messages {
		if r.Messages[i].Role == providers.RoleSystem {
			r.Messages[i].Content = ""
		}
	}
	return text(r), true
}

func speech(e record.Entry, _ bool) (string, bool) {
	if e.TTS == nil || e.TTS.Request == nil {
		return "", false
	}
	return text(e.TTS.Request), true
}

func utterance(e record.Entry, _ bool) (string, bool) {
	if e.ASR == nil || (e.ASR.Step != record.Asked && e.ASR.Step != record.Closed) {
		return "", false
	}
	return text(e.ASR), true
}

func toolCall(e record.Entry, _ bool) (string, bool) {
	if e.Call == nil || e.Call.Step != record.Asked {
		return "", false
	}
	return e.Call.Tool + " " + string(bytes.TrimSpace(e.Call.Arguments)), true
}
