package anthropic

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
	servicetest.WrongKey:    {401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key ` + servicetest.Key + `"}}`},
	servicetest.NoMoney:     {400, `{"type":"error","error":{"type":"billing_error","message":"Your credit balance is too low."}}`},
	servicetest.RateLimited: {429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`},
	servicetest.WrongModel:  {404, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`},
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
		e := servicetest.Events{Type: "text/event-stream", Broken: []byte("data: {\"type\"\n\n"), Filler: []byte(`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + servicetest.More + "\"}}\n\n")}
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
		Kind: Kind(), Fake: faulty, Reuses: true, Section: func(s *service.Section) { s.BaseURL += "" },
	})
}

// spoken is an answer in several pieces.
const spoken = `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It is"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" fine."}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

data: {"type":"message_stop"}

`
