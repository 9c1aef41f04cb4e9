package providertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
)

// TestModelContract holds a client of a service that thinks against its fake, through
// every fault that the fake knows. Text of the case is the question.
func TestModelContract(t *testing.T, c Case) {
	t.Helper()
	t.Attr(rowsOf, "model")
	c.each(t, func(tr *trial) {
		m := tr.model()
		times := 1
		if tr.f == servicetest.None || tr.f == servicetest.Stale {
			times = 3
		}
		for range times {
			tr.judgeAnswer(tr.ask(tr.Context(), m, nil))
		}
		// net/http gives a connection up whose request was not written within 50 ms of its answer, as on a busy machine.
		if tr.f == servicetest.None && c.Reuses && tr.fake.Conns() >= times {
			tr.Errorf("%d connections for three answers", tr.fake.Conns())
		}
	})
	t.Run("cancelled before", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, func(tr *trial) {
			ctx, cancel := context.WithCancel(tr.Context())
			cancel()
			got := tr.ask(ctx, tr.model(), nil)
			tr.errs = append(tr.errs, got.err)
			tr.cancelled(got.err, 0)
		})
	})
	t.Run("cancelled in the middle", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, (*trial).cancelAnswer)
	})
	t.Run("cancelled while nothing comes", func(t *testing.T) {
		t.Parallel()
		if !c.Fake(t).Knows(servicetest.Silent) {
			t.Skip("the fake cannot be silent")
		}
		c.try(t, servicetest.Silent, func(tr *trial) {
			ctx, cancel := context.WithCancel(tr.Context())
			var ended time.Time
			after(soon/10, func() { ended = time.Now(); cancel() })
			got := tr.ask(ctx, tr.model(), nil)
			tr.cancelled(got.err, time.Since(ended))
		})
	})
	t.Run("the loop is left", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, func(tr *trial) {
			m := tr.model()
			for range m.Generate(tr.Context(), tr.question()) {
				break
			}
			tr.judgeAnswer(tr.ask(tr.Context(), m, nil))
		})
	})
	t.Run("many at once", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, func(tr *trial) {
			m := tr.model()
			done := make(chan answer)
			for range 3 {
				go func() { done <- tr.ask(tr.Context(), m, nil) }()
			}
			for range 3 {
				tr.judgeAnswer(<-done)
			}
		})
	})
}

// answer sums up a whole answer.
type answer struct {
	text   string
	pieces int
	err    error
}

func (tr *trial) model() providers.LLM {
	tr.Helper()
	m, err := tr.c.Kind.LLM(tr.section())
	if err != nil {
		tr.Fatal(err)
	}
	return m
}

// question is a request as a conversation makes it: each has another device, so that those
// at the same time are not of one dialogue.
func (tr *trial) question() providers.LLMRequest {
	return providers.LLMRequest{
		Messages: []providers.Message{{Role: providers.RoleSystem, Content: "You are a speaker."}, {Role: providers.RoleUser, Content: tr.c.words()}},
		Language: "zh", DeviceID: "24:6f:28:aa:10:02", AgentID: "default", Conversation: tr.Name() + time.Now().String(),
	}
}

// ask reads an answer, and calls each at each piece of text.
func (tr *trial) ask(ctx context.Context, m providers.LLM, each func()) (got answer) {
	for d, err := range m.Generate(ctx, tr.question()) {
		if got.err = err; err != nil {
			continue
		}
		if d.Provider != "under-test" {
			tr.Errorf("a delta is by %q", d.Provider)
		}
		if slices.ContainsFunc(d.ToolCalls, func(c providers.ToolCall) bool { return c.ID == "" || c.Name == "" }) {
			tr.Errorf("a call without id or name: %+v", d.ToolCalls)
		}
		if got.text += d.Text; d.Text != "" {
			got.pieces++
			if each != nil {
				each()
			}
		}
	}
	return got
}

// judgeAnswer looks at what came of a question under a fault.
func (tr *trial) judgeAnswer(got answer) {
	tr.Helper()
	switch _, fails := usual(tr.f); {
	case fails:
		tr.wantKind(got.err)
	case got.err != nil:
		tr.errs = append(tr.errs, got.err)
		tr.Error(got.err)
	case got.text == "":
		tr.Error("the answer has no text")
	case got.pieces < 2 && !tr.c.Uploads:
		tr.Error("the answer came in one piece")
	}
}

// cancelAnswer ends the context at the first piece of an answer.
func (tr *trial) cancelAnswer() {
	ctx, cancel := context.WithCancel(tr.Context())
	defer cancel()
	var ended time.Time
	got := tr.ask(ctx, tr.model(), func() {
		if ended.IsZero() {
			ended = time.Now()
			cancel()
		}
	})
	if got.err != nil { // else all of it had come
		tr.errs = append(tr.errs, got.err)
		tr.cancelled(got.err, time.Since(ended))
	}
}
