package app

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"xiaozhi/internal/engines"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/secret"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// TestServersLeftOut checks that a server that is off or lacks a variable is not
// started, and that the start says which variable is missing.
func TestServersLeftOut(t *testing.T) {
	c := mustLoadText(t, `
tools:
  external:
    mcpServers:
      maps: {url: "https://h/mcp?key=${KEY}"}
      off: {disabled: true, url: "${GONE}"}
      poor: {url: "https://h/${GONE}", headers: {A: "${LOST:-x}"}}
`, "KEY=k1")
	r := engines.NewReport(slog.New(slog.DiscardHandler))
	if got := externalServers(c, r); len(got) != 1 || got["maps"].URL != "https://h/mcp?key=k1" {
		t.Errorf("%d servers", len(got))
	}
	if text := strings.Join(r.Lines(), "\n"); !strings.Contains(text, "poor") || !strings.Contains(text, "GONE is not set") || strings.Contains(text, "k1") {
		t.Errorf("lines:\n%s", text)
	}
}

// TestServersFileReported: also what is wrong with it, before anything starts.
func TestServersFileReported(t *testing.T) {
	lines := func(text string) string {
		r := engines.NewReport(slog.New(slog.DiscardHandler))
		reportFile(t.Context(), writeFile(t, "mcp_servers.json", text), secret.Sources{}, r)
		return strings.Join(r.Lines(), "\n")
	}
	if got := lines(`{"mcpServers":{"a":{"command":"x"},"b":{}}}`); !strings.Contains(got, "a (stdio, ") || !strings.Contains(got, "b: left out") {
		t.Error(got)
	}
	if got := lines(`{"mcpServers":`); !strings.Contains(got, "line 1, column 14") {
		t.Error(got)
	}
	r := engines.NewReport(slog.New(slog.DiscardHandler))
	if reportFile(t.Context(), "no-such-file.json", secret.Sources{}, r); len(r.Lines()) > 0 {
		t.Error(r.Lines())
	}
}

// TestServersAsk: a model answers what a server asks, as long as that wants it, and is given nothing beside it; a failure, and what
// the rules say where there is no model, are no answer.
func TestServersAsk(t *testing.T) {
	q := external.Ask{System: "be short", Messages: []external.Said{{Text: "a"}, {Assistant: true, Text: "b"}, {Text: "c"}}, Most: 8}
	llm := &providertest.LLM{Label: "m1", Script: []providertest.Step{providertest.Say("one ", "two ", "three"), providertest.Fail(io.ErrUnexpectedEOF), {{Delta: providers.Delta{Text: "no model", Fallback: true}}}}}
	got, err := answerTo(t.Context(), llm, q)
	if err != nil || got.Model != "m1" || !got.Cut || !strings.HasPrefix(got.Text, "one two") {
		t.Errorf("%+v, %v", got, err)
	}
	var words []string
	for _, m := range llm.Asked()[0].Request.Messages {
		words = append(words, string(m.Role)+" "+m.Content)
	}
	if r := llm.Asked()[0].Request; strings.Join(words, ", ") != "system be short, user a, assistant b, user c" || r.Tools != nil || !llm.Asked()[0].Left {
		t.Errorf("asked %q, %+v", words, r)
	}
	for _, want := range []error{io.ErrUnexpectedEOF, external.ErrNoModel} {
		if got, err := answerTo(t.Context(), llm, q); !errors.Is(err, want) || got.Text != "" {
			t.Errorf("%+v, %v; want %v", got, err, want)
		}
	}
}
