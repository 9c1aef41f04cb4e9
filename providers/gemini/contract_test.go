package gemini

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
	servicetest.WrongKey:    {400, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`},
	servicetest.RateLimited: {429, `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}`},
	servicetest.WrongModel:  {404, `{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}`},
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
		e := servicetest.Events{Type: "text/event-stream", Broken: []byte("data: {\"candidates\"\n\n"), Filler: []byte(`data: {"candidates":[{"content":{"parts":[{"text":"` + servicetest.More + "\"}]}}]}\n\n")}
		for _, event := range strings.SplitAfter(spoken, "\n\n") {
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
		Kind: Kind(), Fake: faulty, Reuses: true, Section: func(s *service.Section) { s.BaseURL += "/v1beta" },
	})
}

// spoken is an answer in several pieces.
const spoken = `data: {"candidates":[{"content":{"parts":[{"text":"It is"}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":" fine."}]}}]}

data: {"candidates":[{"finishReason":"STOP"}]}

`
