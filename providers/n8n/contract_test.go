package n8n

import (
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/n8n"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

func TestContract(t *testing.T) {
	for name, reply := range map[string]n8n.Reply{"streamed": n8n.Streamed, "whole": n8n.Agent} {
		t.Run(name, func(t *testing.T) {
			providertest.TestModelContract(t, providertest.Case{
				Kind: Kind(), Reuses: true, Uploads: reply != n8n.Streamed, Causes: map[servicetest.Fault][]transport.Cause{servicetest.WrongModel: {transport.CauseNonsense}},
				Fake: func(t testing.TB) *servicetest.Server {
					f := n8n.New(t)
					f.Respond(reply)
					return f.Server
				},
				Section: func(s *service.Section) { s.BaseURL += "/webhook/" + n8n.ID + "/chat"; s.ID = "" },
			})
		})
	}
}

func ask(words, device string) providers.LLMRequest {
	return providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: words}}, Language: "zh", DeviceID: device, AgentID: "a"}
}

// read reads a whole answer.
func read(t *testing.T, m providers.LLM, req providers.LLMRequest) (text string, failed error) {
	t.Helper()
	for d, err := range m.Generate(t.Context(), req) {
		text, failed = text+d.Text, err
	}
	return text, failed
}

func model(t *testing.T, f *n8n.Fake, path string) providers.LLM {
	t.Helper()
	m, err := New(service.Section{Name: "x", Key: servicetest.Key, BaseURL: f.URL() + path, Proxy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Whatever a workflow replies by is said.
func TestReplies(t *testing.T) {
	f := n8n.New(t)
	m := model(t, f, "/webhook/"+n8n.ID+"/chat")
	for i, reply := range []n8n.Reply{n8n.Agent, n8n.Streamed, n8n.Array, n8n.Text, n8n.Words} {
		f.Respond(reply)
		if text, err := read(t, m, ask("and now", "d1")); err != nil || text != n8n.Answer(i+1, "and now") {
			t.Errorf("%d: %q, %v", reply, text, err)
		}
	}
	f.Respond(n8n.Empty)
	if _, err := read(t, m, ask("hello", "d1")); err == nil {
		t.Error("nothing is an answer")
	}
	f.Respond(n8n.FailsMid)
	if text, err := read(t, m, ask("hello", "d1")); err == nil || text == "" {
		t.Errorf("%q, %v", text, err)
	}
	providertest.TestLLMFailure(t, model(t, f, "/webhook/nobody"), ask("hello", "d1"), providers.BadRequest)
	if _, err := New(service.Section{Name: "x"}); err == nil || !strings.Contains(err.Error(), "base_url") {
		t.Errorf("without an address: %v", err)
	}
}

func TestShapes(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"output":"a"}`, "a"}, {`[{"json":{"text":"a"}}]`, "a"}, {`"a"`, "a"}, {"two\nlines", "two\nlines"}, {`{"answer":{"text":"a"}}`, "a"},
		{`{"message":"Workflow was started"}`, ""}, {`{"code":404,"message":"no"}`, ""}, {`<!doctype html>`, ""}, {`{"x":1}`, ""}, {`{"output"`, ""}, {``, ""},
	} {
		if text, err := reply([]byte(c.body)); text != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", c.body, text, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"type":"begin"}`, `{"type":"item","content":{}}`)
	f.Add(`{"output":`, `"a"}`)
	f.Fuzz(func(_ *testing.T, first, second string) {
		a := &answer{}
		give := func(providers.Delta) {}
		for _, raw := range []string{first, second} {
			if _, err := a.Event(sse.Event{Data: []byte(raw)}, give); err != nil {
				return
			}
		}
		_ = a.EOF(give)
	})
}
