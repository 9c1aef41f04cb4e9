package talks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"xiaozhi/internal/timeline"
	"xiaozhi/store"
)

// fixture gives a turn as a scene of the tests in agent/testdata/talk.
func (t *Talks) fixture(w http.ResponseWriter, r *http.Request) {
	turn, _, err := t.Turn(r.Context(), r.PathValue("turn"))
	if err != nil {
		t.o.Guard.Fail(w, r, Unknown(err))
		return
	}
	t.o.Guard.Did(r, "turn.export", turn.ID, nil)
	attach(w, "text/plain; charset=utf-8", "turn-"+turn.At.In(t.o.Zone()).Format("20060102-150405")+".txtar")
	_, _ = fmt.Fprint(w, Scene(&turn)) // the other end may be gone
}

// Scene writes a turn as a scene: what the engines gave, with their times as they were kept, and what the user did. The part
// "expect" is for the test with -update to fill in. What the record lacks, the scene lacks: the pieces in which the answer
// came, the sound itself, and what was said before.
func Scene(turn *Turn) string {
	spans, err := timeline.ReadSpans(turn.Spans)
	if err != nil {
		spans = timeline.Spans{}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "A turn of %s that was %s.\n-- setup --\nlanguage %s\n", turn.At.UTC().Format("2006-01-02"), oneLine(turn.Cause), cmp.Or(oneLine(turn.Language), "en"))
	typed := turn.Kind == "typed"
	if !typed {
		delay := spans.Marks[timeline.MarkTranscript] - spans.Marks[timeline.MarkEndpoint]
		fmt.Fprintf(&b, "-- asr --\n%s%s\n", after(delay), cmp.Or(oneLine(turn.Heard), "!empty"))
	}
	b.WriteString("-- llm --\n")
	steps(&b, turn, &spans)
	if len(turn.Calls) > 0 {
		b.WriteString("-- tools --\n")
	}
	for _, c := range turn.Calls {
		fmt.Fprintf(&b, "%s %s %s %s\n", oneLine(c.Name), cmp.Or(c.Kind, "query"), c.Took.Round(time.Millisecond), cmp.Or(oneLine(c.Result), "true"))
	}
	b.WriteString("-- script --\n")
	switch spoke := length(turn, &spans).Round(60 * time.Millisecond); {
	case typed:
		fmt.Fprintf(&b, "detect %s\n", oneLine(turn.Heard))
	case spans.End == timeline.EndStop:
		fmt.Fprintf(&b, "listen manual\nvoice %s\nstop\n", spoke)
	default:
		fmt.Fprintf(&b, "listen auto\nsilence 300ms\nvoice %s\nsilence 900ms\n", spoke)
	}
	b.WriteString("until tts stop\n-- expect --\n")
	return b.String()
}

// oneLine keeps a text from being more than one line of a scene.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// after writes a delay before what an engine gives.
func after(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return fmt.Sprintf("@%dms ", ms)
}

// length returns how long the user spoke, as far as that is known.
func length(turn *Turn, spans *timeline.Spans) time.Duration {
	for _, r := range turn.Recordings {
		if r.Side == sideUser {
			return max(r.Length-time.Duration(spans.Marks[timeline.MarkEndpoint])*time.Millisecond, 300*time.Millisecond)
		}
	}
	for i := range spans.Attempts {
		if a := &spans.Attempts[i]; a.Op == "recognize" && a.At < 0 {
			return time.Duration(-a.At) * time.Millisecond
		}
	}
	return time.Second
}

// steps writes what the model gave.
func steps(b *strings.Builder, turn *Turn, spans *timeline.Spans) {
	step := 0
	for _, m := range turn.Messages {
		if m.Role != "assistant" {
			continue
		}
		step++
		for i := range spans.Attempts {
			if a := &spans.Attempts[i]; a.Op == "think" && a.Part == step && a.Outcome == timeline.Answered && a.First > 0 {
				fmt.Fprintf(b, "delay %dms\n", a.First)
			}
		}
		words, calls := said(m)
		if words != "" {
			fmt.Fprintf(b, "text %s\n", words)
		}
		for _, c := range calls {
			fmt.Fprintf(b, "call %s %s\n", oneLine(c.Name), cmp.Or(oneLine(c.Arguments), "{}"))
		}
		b.WriteString("end\n")
	}
}

// bodyCall is a call as a message has it.
type bodyCall struct{ Name, Arguments string }

// said reads the words and calls of a message: a string, or an object with both.
func said(m store.Message) (words string, calls []bodyCall) {
	if json.Unmarshal([]byte(m.Body), &words) == nil {
		return oneLine(words), nil
	}
	var body struct {
		Text  string
		Calls []bodyCall
	}
	if json.Unmarshal([]byte(m.Body), &body) != nil {
		return "", nil // nothing of ours
	}
	return oneLine(body.Text), body.Calls
}
