package openai

import (
	"io"
	"net/http"
	"testing"

	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/servicetest"
	"xiaozhi/providers/providertest"
)

// chatServer answers as OpenAI does, with what can go wrong.
func chatServer(tb testing.TB) *servicetest.Server {
	tb.Helper()
	var s *servicetest.Server
	s = servicetest.New(tb, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else it would not see that the client is gone
		refuse := func(status int, kind, code, message string) {
			s.Refuse(w, status, `{"error":{"message":"`+message+`","type":"`+kind+`","param":null,"code":"`+code+`"}}`)
		}
		switch f := s.Fault(); {
		case f == servicetest.WrongKey || r.Header.Get("Authorization") != "Bearer "+servicetest.Key:
			refuse(http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: "+servicetest.Key)
		case f == servicetest.NoMoney:
			refuse(http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", "You exceeded your current quota.")
		case f == servicetest.RateLimited:
			refuse(http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "Rate limit reached.")
		case f == servicetest.WrongModel:
			refuse(http.StatusNotFound, "invalid_request_error", "model_not_found", "The model does not exist.")
		default:
			e := servicetest.Events{Broken: servicetest.Event("", `{"choices":[{`), Filler: servicetest.Event("", openaitest.Delta(`{"content":"`+servicetest.More+`"}`))}
			for _, text := range []string{"", "It is", " fine."} {
				e.List = append(e.List, servicetest.Event("", openaitest.Delta(`{"content":"`+text+`"}`)))
			}
			e.List = append(e.List, servicetest.Event("", openaitest.Finish("stop")), servicetest.Event("", "[DONE]"))
			s.Stream(w, r, f, e)
		}
	}, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel, servicetest.Slow, servicetest.Silent,
		servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return s
}

func TestModelContract(t *testing.T) {
	k := Kinds()[0]
	providertest.TestModelContract(t, providertest.Case{Kind: k, Fake: chatServer, Reuses: true})
}
