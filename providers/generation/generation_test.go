package generation

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// plain is a wire whose events are texts; "end" is the last.
type plain struct {
	at     Endpoint
	adapts int // so many refusals change the request
	asked  int
}

func (p *plain) Request(ctx context.Context, _ providers.LLMRequest) (*http.Request, error) {
	p.asked++
	return p.at.Post(ctx, "/", map[string]any{})
}

func (p *plain) Answer(providers.LLMRequest) Answer { return lines{} }

func (p *plain) Adapt(*transport.Refusal, []byte) bool { p.adapts--; return p.adapts >= 0 }

type lines struct{}

func (lines) Event(e sse.Event, give Give) (bool, error) {
	switch text := string(e.Data); text {
	case "end":
		return true, nil
	case "cost":
		give(providers.Delta{Usage: providers.Usage{Prompt: 3}})
	case "late":
		give(providers.Delta{Text: "too late"})
	default:
		give(providers.Delta{Text: text})
	}
	return false, nil
}

func (lines) End(give Give) error {
	give(providers.Delta{Echo: providers.NewEcho("x", `"back"`)})
	return nil
}

// model makes one at a server that answers so.
func model(t *testing.T, answer http.HandlerFunc, change func(*Options, *plain)) (*Model, *plain) {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	o, at, err := FromSection(service.Section{Name: "x", Key: "sk-secret"}, service.LLM, s.URL, "m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(at.Client.CloseIdleConnections)
	p := &plain{at: at}
	if change != nil {
		change(&o, p)
	}
	return New(o, p), p
}

func read(t *testing.T, m *Model) (text string, usage providers.Usage, echo string, err error) {
	t.Helper()
	for d, failed := range m.Generate(t.Context(), providers.LLMRequest{}) {
		text, usage, echo, err = text+d.Text, d.Usage, d.Echo.For("x"), failed
	}
	return text, usage, echo, err
}

// The end of a stream tells the cost, and nothing of the answer.
func TestCostComesLast(t *testing.T) {
	m, _ := model(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: a\n\ndata: cost\n\ndata: b\n\ndata: end\n\ndata: cost\n\ndata: late\n\n")
	}, nil)
	if text, usage, echo, err := read(t, m); text != "ab" || usage.Prompt != 3 || echo != `"back"` || err != nil {
		t.Errorf("%q, %+v, %q, %v", text, usage, echo, err)
	}
}

// Signs of life do not let a server take longer than it may.
func TestCommentsAreNoAnswer(t *testing.T) {
	m, _ := model(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, ": keep-alive\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}, func(o *Options, _ *plain) { o.First, o.Retries = 60*time.Millisecond, 0 })
	began := time.Now()
	if _, _, _, err := read(t, m); !errors.Is(err, transport.ErrStalled) || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestTries(t *testing.T) {
	for name, c := range map[string]struct {
		status, adapts, asked int
	}{
		"a server that is down": {503, 0, 2},
		"one that is busy":      {529, 0, 2},
		"a conflict":            {409, 0, 2},
		"no money":              {402, 0, 1},
		"too large":             {413, 0, 1},
		"another request":       {400, 2, 3},
		"too many others":       {400, 100, 5},
	} {
		m, p := model(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) }, func(_ *Options, p *plain) { p.adapts = c.adapts })
		if _, _, _, err := read(t, m); err == nil || p.asked != c.asked {
			t.Errorf("%s: asked %d times, %v", name, p.asked, err)
		}
	}
}

func TestIDs(t *testing.T) {
	short := IDs{Short: true}
	for _, id := range []string{"abcdefghi", "call_1", "call_2", strings.Repeat("x", 100), "呼叫"} {
		got := short.Of(id)
		if len(got) != 9 || got != short.Of(id) || strings.Trim(got, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			t.Errorf("%q became %q", id, got)
		}
	}
	if short.Of("abcdefghi") != "abcdefghi" || short.Of("") != "" || short.Of("call_1") == short.Of("call_2") {
		t.Error("an id that fits was changed, or two are the same")
	}
	loose := IDs{Loose: true}
	if own := "functions.get_weather:0"; loose.Of(own) != own || loose.Of("functions.天气:0") == "functions.天气:0" {
		t.Error("an id of a model that counts in it was changed, or one was not that no service takes")
	}
	var long IDs
	if long.Of("call_1") != "call_1" || len(long.Of(strings.Repeat("x", 100))) > maxID {
		t.Error("ids of no certain length")
	}
}

// Every call of a dialogue has an id of its own, whatever a server calls them.
func TestCallsAreToldApart(t *testing.T) {
	said := providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleAssistant, ToolCalls: []providers.ToolCall{{ID: "call_0"}}}}}
	a := &attempt{m: New(Options{}, nil), step: &said, yield: func(providers.Delta, error) bool { return true }}
	calls := []providers.ToolCall{{ID: "call_0", Name: "a"}, {ID: "x", Name: "b"}, {ID: "x", Name: "c"}}
	a.give(providers.Delta{ToolCalls: calls[:1]})
	a.give(providers.Delta{ToolCalls: calls[1:]})
	if calls[0].ID == "call_0" || calls[1].ID != "x" || calls[2].ID == "x" || calls[2].ID == calls[0].ID {
		t.Errorf("%+v", calls)
	}
}

func TestSchema(t *testing.T) {
	for in, want := range map[string]string{
		``:                  `{"type":"object","properties":{}}`,
		`null`:              `{"type":"object","properties":{}}`,
		`[]`:                `{"type":"object","properties":{}}`,
		`{}`:                `{"properties":{},"type":"object"}`,
		`{"type":"object"}`: `{"properties":{},"type":"object"}`,
		`{"type":"object","properties":null,"required":null}`:                                                             `{"properties":{},"type":"object"}`,
		`{"type":"object","properties":{"a":{"anyOf":[{}]}},"b":1}`:                                                       `{"type":"object","properties":{"a":{"anyOf":[{}]}},"b":1}`,
		`{"anyOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}}}]}`:                                    `{"properties":{"a":{},"b":{}},"type":"object"}`,
		`{"allOf":[{"properties":{"a":{}},"required":["a"]},{"$ref":"#/$defs/x"}],"$defs":{"x":{"properties":{"b":{}}}}}`: `{"$defs":{"x":{"properties":{"b":{}}}},"properties":{"a":{},"b":{}},"required":["a"],"type":"object"}`,
	} {
		if got := string(Schema(json.RawMessage(in))); got != want {
			t.Errorf("%s became %s", in, got)
		}
	}
	const tree = `{"type":"object","properties":{"t":{"$ref":"#/$defs/t","title":"T"},"u":{"$ref":"#/$defs/none"}},"$defs":{"t":{"type":"object","properties":{"next":{"$ref":"#/$defs/t"},"n":{"$ref":"#/$defs/n"}}},"n":{"type":"number"}}}`
	if got, want := string(Schema(json.RawMessage(tree), "$ref")), `{"properties":{"t":{"properties":{"n":{"type":"number"},"next":{"type":"object"}},"title":"T","type":"object"},"u":{}},"type":"object"}`; got != want {
		t.Errorf("references: %s", got)
	}
	if !TakesNothing(nil) || !TakesNothing(json.RawMessage(`{"type":"object"}`)) || TakesNothing(json.RawMessage(tree)) {
		t.Error("what takes nothing")
	}
}

// Schemas are of strangers: whatever they hold, what is sent is that of an object, and not much more than it was.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`))
	f.Add([]byte(`{"type":"object","properties":{"$ref":{"$ref":"#/properties"}},"required":["a"]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, keys := range [][]string{nil, {"$ref", "additionalProperties"}} {
			var v map[string]any
			if out := Schema(raw, keys...); json.Unmarshal(out, &v) != nil || v["type"] != "object" || len(out) > (maxParts+10)*(len(raw)+100) {
				t.Errorf("%s became %s", raw, out)
			}
		}
	})
}

func FuzzFaultOf(f *testing.F) {
	for _, seed := range []string{
		`{"error":{"message":"m","code":"c"}}`, `{"error":"m","code":1}`, `[{"error":{}}]`, `{"base_resp":{"status_code":1}}`, `"x"`, `{"code":1,"message":"m"}`,
		`{"Response":{"Error":{"Code":"c","Message":"m"}}}`, `{"error":{"details":[{"retryDelay":"17s"}]}}`, `{"error":[1]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if fault := FaultOf(raw); fault != nil && fault.Refusal().Error() == "" && json.Valid(raw) && fault.Text != "" {
			t.Errorf("%s: a fault without words: %+v", raw, fault)
		}
	})
}

// TestStatusBeforeVagueCode: DeepSeek says "invalid_request_error" beside 402, Gemini INVALID_ARGUMENT beside 401.
func TestStatusBeforeVagueCode(t *testing.T) {
	for status, want := range map[int]providers.Kind{401: providers.Unauthorized, 402: providers.NoCredit, 429: providers.RateLimited, 403: providers.BadRequest, 404: providers.BadRequest} {
		r := &transport.Refusal{Status: status, Kind: transport.KindOf(status)}
		FaultOf([]byte(`{"error":{"code":"invalid_request_error","message":"m"}}`)).complete(r)
		if r.Kind != want {
			t.Errorf("status %d: %v, want %v", status, r.Kind, want)
		}
	}
	r := &transport.Refusal{Status: 429, Kind: providers.RateLimited}
	FaultOf([]byte(`{"error":{"code":"insufficient_quota","message":"m"}}`)).complete(r)
	if r.Kind != providers.NoCredit {
		t.Errorf("a quota: %v", r.Kind)
	}
}

func TestRetryDelayInTheBody(t *testing.T) {
	f := FaultOf([]byte(`{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x","retryDelay":"17s"}]}}`))
	if f == nil || f.After != 17*time.Second || f.Kind != providers.RateLimited {
		t.Errorf("%+v", f)
	}
	if f := FaultOf([]byte(`{"choices":[{"delta":{"content":"\"error\" and \"code\""}}],"error":null}`)); f != nil {
		t.Errorf("no fault: %+v", f)
	}
}
