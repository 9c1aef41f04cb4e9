package ollama

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

// refusals are the answers to requests that are refused.
var refusals = map[servicetest.Fault]struct {
	status int
	body   string
}{
	servicetest.WrongModel: {404, `{"error":"model not found"}`},
}

// faulty answers as the service does, with what can go wrong.
func faulty(tb testing.TB) *servicetest.Server {
	tb.Helper()
	knows := []servicetest.Fault{
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd,
	}
	for f := range refusals {
		knows = append(knows, f)
	}
	var s *servicetest.Server
	s = servicetest.New(tb, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else it would not see that the client is gone
		f := s.Fault()
		if no, refuses := refusals[f]; refuses {
			s.Refuse(w, no.status, no.body)
			return
		}
		e := servicetest.Events{Type: "application/x-ndjson", Broken: []byte("{\"message\":\n"), Filler: []byte(`{"message":{"content":"` + servicetest.More + "\"}}\n")}
		for _, event := range strings.SplitAfter(spoken, "\n") {
			if event != "" {
				e.List = append(e.List, []byte(event))
			}
		}
		s.Stream(w, r, f, e)
	}, knows...)
	return s
}

func TestContract(t *testing.T) {
	providertest.TestModelContract(t, providertest.Case{
		Kind: Kind(), Fake: faulty, Reuses: true, Section: func(s *service.Section) { s.BaseURL += "" },
	})
}

// spoken is an answer in several pieces.
const spoken = `{"message":{"content":"It is"}}
{"message":{"content":" fine."}}
{"message":{"content":""},"done":true,"done_reason":"stop"}
`
