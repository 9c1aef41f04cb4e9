package openai

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/transport"
)

var ask = providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: "hi"}}}

// newLLM makes a model at s.
func newLLM(t *testing.T, o Options) *LLM {
	t.Helper()
	l, err := NewLLM(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// said is a whole answer.
type said struct {
	text, thought string
	calls         []providers.ToolCall
	deltas        int
}

func generate(ctx context.Context, l *LLM, req providers.LLMRequest) (all said, last error) {
	for d, err := range l.Generate(ctx, req) {
		if last = err; err != nil {
			continue
		}
		all.deltas++
		all.text += d.Text
		all.thought += d.Thought
		all.calls = append(all.calls, d.ToolCalls...)
	}
	return all, last
}

func TestLLMPassesTheSuite(t *testing.T) {
	s := newServer(t)
	l := newLLM(t, options(t, s))
	providertest.TestLLM(t, func(*testing.T) providers.LLM { return l }, ask)
	s.Reply(openaitest.Chat, openaitest.Failure(500, "down"))
	providertest.TestLLMFailure(t, l, ask, providers.Unavailable)
}

func TestChatRequestOnTheWire(t *testing.T) {
	s := newServer(t)
	o := options(t, s)
	zero := float32(0)
	o.Temperature, o.MaxTokens = &zero, 77
	o.Extra = map[string]any{"enable_thinking": false, "chat_template_kwargs": map[string]any{"x": 1}, "top_p": 0.5}
	o.Headers = map[string]providers.Secret{"X-Team": "a-team-secret"}
	req := providers.LLMRequest{
		NoTools: true,
		Messages: []providers.Message{
			{Role: providers.RoleSystem, Content: "be kind"},
			{Role: providers.RoleUser, Content: "light on"},
			{Role: providers.RoleAssistant, ToolCalls: []providers.ToolCall{
				{ID: "c1", Name: "light", Arguments: `{"on":true}`}, {ID: "c2", Name: "now", Arguments: `{"broken`},
			}},
			{Role: providers.RoleTool, ToolCallID: "c1", Content: "ok"},
			{Role: providers.RoleTool, ToolCallID: "c2"},
		},
		Tools: []providers.ToolSpec{{Name: "light", Description: "d", Parameters: json.RawMessage(`{"type":"object","required":["on"]}`)}, {Name: "now"}},
	}
	if _, err := generate(t.Context(), newLLM(t, o), req); err != nil {
		t.Fatal(err)
	}
	got := s.Requests(openaitest.Chat)[0]
	if got.Header.Get("Authorization") != "Bearer sk-secret-key" || got.Header.Get("X-Team") != "a-team-secret" {
		t.Errorf("headers %v", got.Header)
	}
	var want map[string]any
	err := json.Unmarshal([]byte(`{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0,"max_tokens":77,"tool_choice":"none","enable_thinking":false,
	 "chat_template_kwargs":{"x":1},"top_p":0.5,
	 "messages":[{"role":"system","content":"be kind"},{"role":"user","content":"light on"},
	  {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"light","arguments":"{\"on\":true}"}},
	   {"id":"c2","type":"function","function":{"name":"now","arguments":"{}"}}]},
	  {"role":"tool","tool_call_id":"c1","content":"ok"},{"role":"tool","tool_call_id":"c2","content":""}],
	 "tools":[{"type":"function","function":{"name":"light","description":"d","parameters":{"type":"object","properties":{},"required":["on"]}}},
	  {"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}]}`), &want)
	if err != nil {
		t.Fatal(err)
	}
	if body := got.JSON(); !reflect.DeepEqual(body, want) {
		t.Errorf("request\n%v\nwant\n%v", body, want)
	}
}

func TestNoToolsWithoutTools(t *testing.T) {
	s := newServer(t)
	o := options(t, s)
	o.Model, o.MaxTokens, o.APIKey = "gpt-5-mini", 9, ""
	req := ask
	req.NoTools = true
	if _, err := generate(t.Context(), newLLM(t, o), req); err != nil {
		t.Fatal(err)
	}
	r := s.Requests(openaitest.Chat)[0]
	body := r.JSON()
	if _, ok := body["tool_choice"]; ok {
		t.Errorf("a tool_choice without tools: %v", body)
	}
	if body["max_completion_tokens"] != 9.0 || body["max_tokens"] != nil {
		t.Errorf("token limit of a reasoning model: %v", body)
	}
	if got := r.Header.Get("Authorization"); got != "" {
		t.Errorf("without a key, Authorization is %q", got)
	}
}

func TestAnswers(t *testing.T) {
	finish, done := openaitest.Event(openaitest.Finish("stop")), openaitest.Done()
	delta := openaitest.Delta
	tests := []struct {
		name  string
		reply openaitest.Reply
		want  said
	}{
		{"text", openaitest.Text("Hel", "lo."), said{text: "Hello."}},
		{"white space before the answer", openaitest.Text("\n\n", " Hello"), said{text: "Hello"}},
		{"comments keep the line alive", openaitest.Events().Then(openaitest.Piece{Data: ": ping\n\n: ping\r\n"}, openaitest.Event(delta(`{"content":"a"}`)), finish, done), said{text: "a"}},
		{"finish without an end mark", openaitest.Events(delta(`{"content":"a"}`), openaitest.Finish("length")), said{text: "a"}},
		{"end mark without a finish", openaitest.Events(delta(`{"content":"a"}`)).Then(done), said{text: "a"}},
		{"tight end mark", openaitest.Events(delta(`{"content":"a"}`)).Then(openaitest.Piece{Data: "data:[DO"}, openaitest.Piece{Data: "NE]\n\n"}), said{text: "a"}},
		{"an event in pieces", openaitest.Events().Then(openaitest.Piece{Data: `data: {"choices":[{"index":0,"del`}, openaitest.Piece{Data: `ta":{"content":"你好"}}]}` + "\r\n\r\n"}, finish), said{text: "你好"}},
		{"usage and role chunks", openaitest.Events(delta(`{"role":"assistant","content":null}`), delta(`{"content":"a"}`), openaitest.Finish("stop"), `{"choices":[],"usage":{"total_tokens":3}}`).Then(done), said{text: "a"}},
		{"reasoning", openaitest.Events(delta(`{"reasoning_content":"hm","content":""}`), delta(`{"reasoning":" hm"}`), delta(`{"content":"a"}`)).Then(done), said{text: "a", thought: "hm hm"}},
		{"thinking aloud", openaitest.Text("<thi", "nk>hm", "m</th", "ink>\n\n", "a < b"), said{text: "a < b", thought: "hmm"}},
		{"another choice", openaitest.Events(delta(`{"content":"a"}`), `{"choices":[{"index":1,"delta":{"content":"b"}}]}`).Then(done), said{text: "a"}},
		{
			"parallel calls", openaitest.Calls(openaitest.Call{ID: "1", Name: "a", Arguments: `{"x":1}`}, openaitest.Call{ID: "2", Name: "b", Arguments: `{}`}),
			said{calls: []providers.ToolCall{{ID: "1", Name: "a", Arguments: `{"x":1}`}, {ID: "2", Name: "b", Arguments: `{}`}}},
		},
		{
			"text, then a call that the end mark ends", openaitest.Events(delta(`{"content":"ok"}`), delta(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"a","arguments":null}}]}`)).Then(done),
			said{text: "ok", calls: []providers.ToolCall{{ID: "1", Name: "a", Arguments: "{}"}}},
		},
	}
	s := newServer(t)
	l := newLLM(t, options(t, s))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.Reply(openaitest.Chat, tt.reply)
			got, err := generate(t.Context(), l, ask)
			got.deltas = 0
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

func TestInvalidAnswers(t *testing.T) {
	delta := openaitest.Delta
	tests := []struct {
		name  string
		reply openaitest.Reply
		part  string
	}{
		{"empty", openaitest.Events(openaitest.Finish("stop")).Then(openaitest.Done()), "empty"},
		{"white space only", openaitest.Text(" ", "\n"), "empty"},
		{"thoughts only", openaitest.Text("<think>hm"), "empty"},
		{"no end", openaitest.Events(delta(`{"content":"a"}`)), "ended before"},
		{"cut", openaitest.Events(delta(`{"content":"a"}`)).Then(openaitest.Piece{Cut: true}), "EOF"},
		{"broken event", openaitest.Events(`{"choices":[{`), "not the JSON"},
		{"an event of another shape", openaitest.Events(`{"choices":7}`), "not the JSON"},
		{"error event", openaitest.Events(delta(`{"content":"a"}`), `{"error":{"message":"overloaded sk-secret-key"}}`), "overloaded ***"},
		{"error event of another shape", openaitest.Events(`{"object":"error","message":"too long"}`), "too long"},
		{"error text", openaitest.Events(`{"choices":[],"error":"gpu lost"}`), "gpu lost"},
		{"finish by error", openaitest.Events(delta(`{"content":"a"}`), openaitest.Finish("error")), "with an error"},
		{"JSON error with status 200", openaitest.JSON(200, `{"error":{"message":"no credit"}}`), "no credit"},
		{"a page", openaitest.Reply{Header: map[string]string{"Content-Type": "text/html"}, Pieces: []openaitest.Piece{{Data: "<html>" + strings.Repeat("login ", 500)}}}, "<html>"},
		{"JSON that is no answer", openaitest.JSON(200, `{"choices":[{"text":"a"}]}`), "not an event stream"},
		{"an empty answer in one piece", openaitest.JSON(200, `{"choices":[{"message":{"content":""}}]}`), "the answer is empty"},
		{"a failed answer in one piece", openaitest.JSON(200, `{"choices":[{"message":{"content":""},"finish_reason":"error"}]}`), "with an error"},
		{"call without a name", openaitest.Events(delta(`{"tool_calls":[{"index":0,"id":"1"}]}`), openaitest.Finish("stop")), "no name"},
		{"nothing at all", openaitest.Reply{}, "ended before"},
	}
	s := newServer(t)
	l := newLLM(t, options(t, s))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.Reply(openaitest.Chat, tt.reply)
			_, err := generate(t.Context(), l, ask)
			wantError(t, err, providers.Unavailable, tt.part)
		})
	}
}

func TestChatStatuses(t *testing.T) {
	s := newServer(t)
	l := newLLM(t, options(t, s))
	for _, tt := range statuses {
		s.Reply(openaitest.Chat, openaitest.Failure(tt.status, "wrong key sk-secret-key "+strings.Repeat("x", 1000)))
		_, err := generate(t.Context(), l, ask)
		wantError(t, err, tt.kind, "wrong key *** x")
	}
}

// scripted is a transport without a socket: one reply for each request, at once.
type scripted struct {
	statuses []int
	header   http.Header
	asked    []time.Time
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, time.Now())
	status := s.statuses[min(len(s.asked), len(s.statuses))-1]
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Request: r}
	maps.Copy(resp.Header, s.header)
	body := `{"error":{"message":"no to sk-hidden"}}`
	switch status {
	case cutStatus:
		resp.StatusCode, body = 200, "data: "+openaitest.Delta(`{"content":"a"}`)+"\n\n"
	case 200:
		body = "data: " + openaitest.Delta(`{"content":"a"}`) + "\n\ndata: [DONE]\n\n"
	}
	resp.Body = io.NopCloser(strings.NewReader(body))
	return resp, nil
}

const cutStatus = -1 // an answer that ends in the middle

func TestRetries(t *testing.T) {
	tests := []struct {
		name     string
		retries  int
		statuses []int
		header   http.Header
		asked    int
		fails    bool
		least    time.Duration // that all tries take, at most three times as much
	}{
		{"down, then well", 0, []int{503, 200}, nil, 2, false, 37500 * time.Microsecond},
		{"busy and down, then well", 0, []int{429, 503, 200}, nil, 3, false, 112500 * time.Microsecond},
		{"no more than two", 0, []int{503, 503, 503, 200}, nil, 3, true, 112500 * time.Microsecond},
		{"none", -1, []int{503, 200}, nil, 1, true, 0},
		{"not for a bad request", 0, []int{400, 200}, nil, 1, true, 0},
		{"not for a bad key", 0, []int{401, 200}, nil, 1, true, 0},
		{"not after the first token", 0, []int{cutStatus, 200}, nil, 1, true, 0},
		{"as late as told", 0, []int{429, 200}, http.Header{"Retry-After": {"1"}}, 2, false, time.Second},
		{"not when told to wait long", 0, []int{429, 200}, http.Header{"Retry-After": {"30"}}, 1, true, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &scripted{statuses: tt.statuses, header: tt.header}
				l := newLLM(t, Options{Model: "m", APIKey: "sk-hidden", Retries: tt.retries, HTTPClient: &http.Client{Transport: transport}})
				start := time.Now()
				_, err := generate(t.Context(), l, ask)
				took := time.Since(start)
				if n := len(transport.asked); n != tt.asked || (err != nil) != tt.fails || took < tt.least || took > 3*tt.least {
					t.Errorf("asked %d times in %v with error %v, want %d", n, took, err, tt.asked)
				}
			})
		})
	}
}

func TestRetriesStopInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &scripted{statuses: []int{503}}
		l := newLLM(t, Options{Model: "m", Retries: 100, HTTPClient: &http.Client{Transport: transport}})
		start := time.Now()
		if _, err := generate(t.Context(), l, ask); err == nil || len(transport.asked) > 6 || time.Since(start) > 1300*time.Millisecond {
			t.Errorf("asked %d times in %v, %v", len(transport.asked), time.Since(start), err)
		}
	})
}

func TestRetryEndsWithItsContext(t *testing.T) {
	s := newServer(t)
	o := options(t, s)
	o.Retries = 2
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Handle(openaitest.Chat, func(*openaitest.Request) openaitest.Reply {
		cancel()
		return openaitest.Failure(503, "down")
	})
	if _, err := generate(ctx, newLLM(t, o), ask); err != context.Canceled { //nolint:errorlint // unchanged
		t.Errorf("got %v", err)
	}
}

func TestStalls(t *testing.T) {
	tests := []struct {
		name  string
		reply openaitest.Reply
		limit func(*Timeouts, time.Duration)
		text  string
	}{
		{"no status", openaitest.Reply{Hang: true}, func(t *Timeouts, d time.Duration) { t.FirstToken = d }, ""},
		{"no token", openaitest.Events().Then(openaitest.Piece{Data: ": ping\n\n", Hang: true}), func(t *Timeouts, d time.Duration) { t.FirstToken = d }, ""},
		{"no next token", openaitest.Events(openaitest.Delta(`{"content":"a"}`)).Then(openaitest.Piece{Data: ": ping\n\n", Hang: true}), func(t *Timeouts, d time.Duration) { t.NextToken = d }, "a"},
	}
	s := newServer(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got said
			gone := quickest(t, s, openaitest.Chat, func(limit time.Duration) bool {
				o := options(t, s)
				tt.limit(&o.Timeouts, limit)
				s.Reply(openaitest.Chat, tt.reply)
				var err error
				got, err = generate(t.Context(), newLLM(t, o), ask)
				wantError(t, err, providers.Unavailable, "nothing in time")
				return got.text == tt.text
			})
			if got.text != tt.text {
				t.Errorf("text %q", got.text)
			}
			wantGone(t, gone)
		})
	}
}

func TestHangUpClosesTheChat(t *testing.T) {
	begun := openaitest.Events(openaitest.Delta(`{"content":"a"}`)).Then(openaitest.Piece{Hang: true})
	s := newServer(t)
	l := newLLM(t, options(t, s))
	t.Run("cancel before the status", func(t *testing.T) {
		s.Reply(openaitest.Chat, openaitest.Reply{Hang: true})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		asked := make(chan *openaitest.Request, 1)
		go func() { asked <- hangUp(ctx, t, s, openaitest.Chat, 1, cancel) }()
		if _, err := generate(ctx, l, ask); err != context.Canceled { //nolint:errorlint // unchanged
			t.Errorf("got %v", err)
		}
		wantGone(t, <-asked)
	})
	t.Run("cancel in the middle", func(t *testing.T) {
		s.Reply(openaitest.Chat, begun)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		for _, err := range l.Generate(ctx, ask) {
			cancel()
			last = err
		}
		if last != context.Canceled { //nolint:errorlint // unchanged
			t.Errorf("got %v", last)
		}
		wantGone(t, s.Requests(openaitest.Chat)[1])
	})
	t.Run("leaving the loop", func(t *testing.T) {
		for range l.Generate(t.Context(), ask) {
			break
		}
		wantGone(t, s.Requests(openaitest.Chat)[2])
	})
}

func TestFinishedAnswerKeepsItsConnection(t *testing.T) {
	s := newServer(t)
	o := options(t, s)
	dials := 0
	wire := o.HTTPClient.Transport.(*transport.HTTP)
	dial := wire.DialContext
	wire.DialContext = countDials(dial, &dials)
	o, err := o.prepare()
	if err != nil {
		t.Fatal(err)
	}
	l := o.model(patience)
	s.Reply(openaitest.Chat, openaitest.Events(openaitest.Delta(`{"content":"a"}`), openaitest.Finish("stop")).Then(openaitest.Piece{Delay: 20 * time.Millisecond, Data: "data: [DONE]\n\n"}))
	for range 3 {
		if _, err := generate(t.Context(), l, ask); err != nil {
			t.Fatal(err)
		}
	}
	if dials != 1 {
		t.Errorf("%d connections for three answers", dials)
	}
}

func TestFirstTextComesBeforeTheRest(t *testing.T) {
	s := newServer(t)
	l := newLLM(t, options(t, s))
	s.Reply(openaitest.Chat, openaitest.Events(openaitest.Delta(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"a","arguments":"{}"}}]}`),
		openaitest.Delta(`{"tool_calls":[{"index":1,"id":"2","function":{"name":"b"}}]}`)).Then(openaitest.Piece{Hang: true}))
	for d, err := range l.Generate(t.Context(), ask) {
		if err != nil || !slices.Equal(d.ToolCalls, []providers.ToolCall{{ID: "1", Name: "a", Arguments: "{}"}}) {
			t.Errorf("%+v, %v", d, err)
		}
		break // the second call never becomes complete
	}
}
