package openairealtime

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// scripted is a small server that answers each message as it is told, and keeps what came.
type scripted struct {
	*servicetest.Server
	mu     sync.Mutex
	came   []string
	header http.Header
	query  string
}

func serve(t *testing.T, answer func(kind string, m map[string]any) []string) *scripted {
	t.Helper()
	s := &scripted{}
	const text = 1 // the type of a message
	s.Server = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		c, ok := s.Socket(w, r, nil)
		if !ok {
			return
		}
		defer c.Close()
		s.mu.Lock()
		s.header, s.query = r.Header, r.URL.String()
		s.mu.Unlock()
		_ = c.WriteMessage(text, []byte(`{"type":"session.created"}`))
		for {
			_, b, err := c.ReadMessage()
			if err != nil {
				return
			}
			var m map[string]any
			_ = json.Unmarshal(b, &m)
			kind, _ := m["type"].(string)
			s.mu.Lock()
			s.came = append(s.came, string(b))
			s.mu.Unlock()
			replies := answer(kind, m)
			if kind == "session.update" {
				replies = append(replies, `{"type":"session.updated"}`)
			}
			for _, reply := range replies {
				_ = c.WriteMessage(text, []byte(reply))
			}
		}
	})
	return s
}

// all returns what came, without the sound.
func (s *scripted) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, m := range s.came {
		if !strings.Contains(m, "input_audio_buffer.append") {
			out = append(out, m)
		}
	}
	return out
}

func (s *scripted) await(t *testing.T, part string) string {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, m := range s.all() {
			if strings.Contains(m, part) {
				return m
			}
		}
	}
	t.Errorf("%q did not come; what did: %s", part, strings.Join(s.all(), "\n"))
	return ""
}

func open(t *testing.T, as shape, s *scripted, change func(*service.Section)) providers.DuplexSession {
	t.Helper()
	section := service.Section{Name: "x", Key: "k", BaseURL: s.URL(), Proxy: "none"}
	if change != nil {
		change(&section)
	}
	d, err := Kinds()[as].Realtime(section)
	if err != nil {
		t.Fatal(err)
	}
	session, err := d.Open(t.Context(), providers.DuplexRequest{
		Instructions: "be kind", Language: "zh-CN", Tools: []providers.ToolSpec{{Name: "lamp"}},
		History: []providers.Message{{Role: providers.RoleUser, Content: "hi"}, {Role: providers.RoleAssistant, Content: "hello"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// tone is base64 of 100 ms of sound.
var tone = base64.StdEncoding.EncodeToString(make([]byte, outRate/10*2))

func TestTurnToolCutAndStaleSound(t *testing.T) {
	turn := 0
	s := serve(t, func(kind string, _ map[string]any) []string {
		if kind == "response.cancel" {
			return []string{
				`{"type":"response.output_audio.delta","response_id":"r2","item_id":"i2","delta":"` + tone + `"}`,
				`{"type":"response.done","response":{"id":"r2","status":"cancelled"}}`,
			}
		}
		if kind != "response.create" {
			return nil
		}
		switch turn++; turn {
		case 1:
			return []string{
				`{"type":"input_audio_buffer.committed","item_id":"u1"}`, `{"type":"nobody.knows"}`,
				`{"type":"conversation.item.input_audio_transcription.completed","item_id":"u1","transcript":"lamp on"}`,
				`{"type":"response.created","response":{"id":"r1"}}`,
				`{"type":"error","error":{"type":"invalid_request_error","code":"odd","message":"never mind"}}`,
				`{"type":"response.function_call_arguments.done","response_id":"r1","call_id":"c1","name":"lamp","arguments":"{}"}`,
				`{"type":"response.output_item.done","response_id":"r1","item":{"type":"function_call","call_id":"c1","name":"lamp","arguments":"{}"}}`,
				`{"type":"response.done","response":{"id":"r1","status":"completed"}}`,
			}
		case 2:
			return []string{
				`{"type":"response.created","response":{"id":"r2"}}`,
				`{"type":"response.output_audio_transcript.delta","response_id":"r2","item_id":"i2","delta":"It is on."}`,
				`{"type":"response.output_audio.delta","response_id":"r2","item_id":"i2","delta":"` + tone + `"}`,
			}
		}
		return []string{
			`{"type":"response.output_audio.delta","response_id":"r2","item_id":"i2","delta":"` + tone + `"}`,
			`{"type":"response.created","response":{"id":"r3"}}`,
			`{"type":"response.audio_transcript.delta","response_id":"r3","item_id":"i3","delta":"Bye."}`,
			`{"type":"response.done","response":{"id":"r3","status":"completed"}}`,
			`{"type":"conversation.item.input_audio_transcription.completed","item_id":"u3","transcript":"bye"}`,
		}
	})
	session := open(t, ga, s, nil)
	_ = session.Write(make([]int16, 16000))
	var calls []providers.ToolCall
	for d, err := range session.Respond(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, d.ToolCalls...)
	}
	if len(calls) != 1 || calls[0] != (providers.ToolCall{ID: "c1", Name: "lamp", Arguments: "{}"}) {
		t.Errorf("calls %+v", calls)
	}
	for d, err := range session.Respond(t.Context(), []providers.ToolResult{{ID: "c1", Name: "lamp", Output: "done"}}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Sound.PCM) > 0 {
			break
		}
	}
	_ = session.Truncate(40 * time.Millisecond)
	_ = session.Write(make([]int16, 16000))
	text := ""
	for d, err := range session.Respond(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Sound.PCM) > 0 {
			t.Error("sound of the answer before")
		}
		text += d.Text + d.Heard
	}
	if text != "Bye.bye" {
		t.Errorf("got %q", text)
	}
	for _, part := range []string{
		`"role":"assistant"`, `"type":"output_text"`, `"call_id":"c1"`, `"response_id":"r2"`, `"audio_end_ms":40`, `"turn_detection":null`,
		`"instructions":"be kind"`, `"name":"lamp"`, `"language":"zh"`, `"rate":24000`,
	} {
		s.await(t, part)
	}
	if s.query != "/v1/realtime?model=gpt-realtime" || s.header.Get("Authorization") != "Bearer k" {
		t.Errorf("asked for %s with %v", s.query, s.header)
	}
}

func TestQwenHasTheOlderShape(t *testing.T) {
	s := serve(t, func(kind string, _ map[string]any) []string {
		if kind != "response.create" {
			return nil
		}
		return []string{
			`{"type":"response.created","response":{"id":"r"}}`,
			`{"type":"response.audio_transcript.delta","response_id":"r","delta":"Hi."}`,
			`{"type":"response.audio.delta","response_id":"r","item_id":"i","delta":"` + tone + `"}`,
			`{"type":"response.done","response":{"id":"r","status":"completed"}}`,
			`{"type":"conversation.item.input_audio_transcription.completed","transcript":"hello"}`,
		}
	})
	session := open(t, beta, s, func(s *service.Section) { s.Extra = map[string]any{"enable_search": true} })
	_ = session.Write(make([]int16, 16000))
	text, n := "", 0
	for d, err := range session.Respond(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		text += d.Text
		n += len(d.Sound.PCM)
	}
	setup := s.await(t, "session.update")
	for _, part := range []string{`"type":"function"`, `"function":{`, `"modalities":["text","audio"]`, `"input_audio_format":"pcm"`, `"enable_search":true`, `be kind\n\nuser: hi\nassistant: hello`} {
		if !strings.Contains(setup, part) {
			t.Errorf("no %s in %s", part, setup)
		}
	}
	if text != "Hi." || n != outRate/10 || !strings.HasPrefix(s.query, "/api-ws/v1/realtime?model=qwen3.5-omni-flash-realtime") {
		t.Errorf("text %q, %d samples, %s", text, n, s.query)
	}
}

// TestEndings: what becomes of answers that end in another way than usual.
func TestEndings(t *testing.T) {
	const created = `{"type":"response.created","response":{"id":"r"}}`
	for name, tt := range map[string]struct {
		events []string
		want   string // text, or what the error says
		kind   providers.Kind
		turns  int // how often the answer ends so, then it is the usual one
	}{
		"filtered": {[]string{created, `{"type":"response.done","response":{"id":"r","status":"incomplete","status_details":{"type":"incomplete","reason":"content_filter"}}}`}, "filter of contents", providers.BadRequest, 9},
		"filtered later": {[]string{
			created, `{"type":"response.audio_transcript.delta","response_id":"r","delta":"Well."}`,
			`{"type":"response.done","response":{"id":"r","status":"incomplete","status_details":{"reason":"content_filter"}}}`,
		}, "Well.", 0, 9},
		"cancelled by the service": {[]string{created, `{"type":"response.done","response":{"id":"r","status":"cancelled","status_details":{"reason":"turn_detected"}}}`}, "cancelled before it has begun", providers.Unavailable, 9},
		"members of anything": {[]string{
			`{"type":"vendor.news","item":"x","response":5,"error":[],"delta":{}}`, created, `{"type":"response.audio_transcript.delta","response_id":"r","delta":"Hi."}`,
			`{"type":"response.done","response":{"id":"r","status":"completed","usage":{"input_tokens":"many","output_tokens":12.0}}}`,
		}, "Hi.", 0, 9},
		"expired":  {[]string{`{"type":"error","error":{"type":"invalid_request_error","code":"session_expired","message":"Your session hit the maximum duration of 60 minutes."}}`}, "Hi.", 0, 1},
		"nonsense": {[]string{`{"type":"response.created","response":7}`}, "not the JSON expected", providers.Unavailable, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			asked := 0
			s := serve(t, func(kind string, _ map[string]any) []string {
				mu.Lock()
				defer mu.Unlock()
				if kind != "response.create" {
					return nil
				}
				if asked++; asked > 1 && asked <= tt.turns+1 {
					return tt.events
				}
				return []string{created, `{"type":"response.audio_transcript.delta","response_id":"r","delta":"Hi."}`, `{"type":"response.done","response":{"id":"r","status":"completed"}}`, `{"type":"conversation.item.input_audio_transcription.completed","transcript":"x"}`}
			})
			session := open(t, ga, s, nil)
			got := ""
			for range 2 {
				got = ""
				_ = session.Write(make([]int16, 16000))
				for d, err := range session.Respond(t.Context(), nil) {
					if err != nil {
						got += err.Error()
						if failed, ok := errors.AsType[*providers.Error](err); !ok || failed.Kind != tt.kind {
							t.Errorf("error %v, want kind %v", err, tt.kind)
						}
						continue
					}
					got += d.Text
				}
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestKindsOfRefusals(t *testing.T) {
	for words, want := range map[string]providers.Kind{
		`{"error":{"code":"insufficient_quota","message":"You exceeded your current quota, please check your plan and billing details."}}`: providers.NoCredit,
		`{"error":{"message":"You have insufficient permissions for this operation."}}`:                                                    providers.Unauthorized,
		`{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached."}}`:                                                         providers.RateLimited,
		`{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}}`:                     providers.NoCredit,
		`{"error":{"type":"invalid_request_error","param":"session.audio.output.voice","message":"Invalid voice."}}`:                       providers.BadRequest,
		`{"error":{"type":"server_error","message":"The server had an error while processing your request."}}`:                             providers.Unavailable,
	} {
		if refused, ok := errors.AsType[*transport.Refusal](fault([]byte(words))); !ok || refused.Kind != want {
			t.Errorf("%s: %v, want %v", words, refused, want)
		}
	}
}

func FuzzEvent(f *testing.F) {
	for _, seed := range []string{`{"type":"error","error":{"code":5}}`, `{"type":"response.done","response":{"status":"failed","status_details":{"error":{"code":"x"}}}}`, `{}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e event
		if parse(b, &e) == nil {
			w := &wire{stage: running, names: map[string]string{}}
			_, _ = w.part(e)
			_, _ = w.over(e)
		}
	})
}
