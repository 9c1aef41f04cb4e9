package agent_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent/record"
)

// turnKeys are what every turn's line says (docs/behaviours.md
// 44). The names of the providers and the times of tools are there where
// one was asked.
func turnKeys() []string {
	return []string{
		"eou_delay", "asr_delay", "llm_ttft", "llm_ttfs", "tts_ttfb", "server_added", "e2e", "lead_min", "underruns",
		"frames", "steps", "interrupted", "heard_chars", "speculation", "cause", "device_id", "session_id", "turn",
	}
}

// checkTurnLines holds the log of a scene to behaviour 44: one line for each turn
// that the device heard of, with all that it has to say and nothing of what was
// said, and stages that add up to what the user has waited.
func checkTurnLines(t *testing.T, log []byte, rec *record.Recording) {
	t.Helper()
	lines := map[float64]int{} // of each turn
	for line := range bytes.Lines(log) {
		var l map[string]any
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l["msg"] != "turn" {
			continue
		}
		turn, _ := l["turn"].(float64)
		lines[turn]++
		for _, key := range turnKeys() {
			if _, ok := l[key]; !ok {
				t.Errorf("no %s in %s", key, line)
			}
		}
		sum := time.Duration(0)
		for _, key := range []string{"eou_delay", "asr_delay", "llm_ttfs", "tts_ttfb", "server_added"} {
			sum += length(l[key])
		}
		if e2e := length(l["e2e"]); l["frames"] != 0.0 && e2e > 0 && (sum-e2e).Abs() > 5*time.Millisecond {
			t.Errorf("the stages add up to %v, e2e is %v: %s", sum, e2e, line)
		}
		for _, said := range contents(rec) {
			if strings.Contains(string(line), said) {
				t.Errorf("%q is in %s", said, line)
			}
		}
	}
	for _, e := range rec.Entries {
		if e.Sent != nil && e.Sent.Kind == "tts_start" && lines[float64(e.Sent.Turn)] != 1 {
			t.Errorf("turn %d has %d lines", e.Sent.Turn, lines[float64(e.Sent.Turn)])
		}
	}
}

// length is a duration in a line of JSON: nanoseconds.
func length(v any) time.Duration {
	n, _ := v.(float64)
	return time.Duration(n)
}

// contents is what was said, by both sides.
func contents(rec *record.Recording) []string {
	var out []string
	for _, e := range rec.Entries {
		switch {
		case e.Sent != nil:
			out = append(out, e.Sent.Text)
		case e.ASR != nil && e.ASR.Transcript != nil:
			out = append(out, e.ASR.Transcript.Text)
		case e.LLM != nil && e.LLM.Delta != nil:
			out = append(out, strings.TrimSpace(e.LLM.Delta.Text))
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return len(s) < 8 }) // shorter words are names of tools, too
}
