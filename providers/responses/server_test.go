package responses

import (
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

// scripted is a server that gives one answer to every request of this model.
type scripted struct{ *providertest.Scripted }

func serve(t *testing.T, reply string) *scripted {
	t.Helper()
	return &scripted{providertest.Script(t, "text/event-stream", reply)}
}

// model makes one at the server.
func (s *scripted) model(t *testing.T, change func(*service.Section)) *LLM {
	t.Helper()
	section := s.Section("/v1")
	if change != nil {
		change(&section)
	}
	l, err := New(section)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.w.at.Client.CloseIdleConnections)
	return l
}

// refused checks what becomes of a refusal.
func (s *scripted) refused(t *testing.T, status int, reply string, kind providers.Kind, part string) {
	t.Helper()
	s.Refused(t, func() providers.LLM { return s.model(t, nil) }, status, reply, kind, part)
}
