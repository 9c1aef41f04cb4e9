package devicetest

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
)

// The board's tools come in three pages, each under 8000 bytes; user-only tools only when asked for.
func TestToolPages(t *testing.T) {
	tests := []struct {
		name   string
		params string // with a cursor to be filled in
		tools  int
	}{
		{"for the model", `{"cursor":"CURSOR"}`, len(NewBoard().Tools()) - 2},
		{"for people", `{"cursor":"CURSOR","withUserTools":true}`, len(NewBoard().Tools())},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			names := make(map[string]bool)
			pages := 0
			d := talk(t, Options{OpenListen: true, Tools: NewBoard().Tools()}, func(w *wire) {
				w.hello()
				cursor := ""
				for {
					pages++
					w.say(mcp(pages, "tools/list", strings.ReplaceAll(tt.params, "CURSOR", cursor)))
					var m struct {
						Payload struct {
							Result struct {
								Tools []struct {
									Name        string
									Annotations *annotations
								}
								NextCursor string
							}
						}
					}
					text := w.await(`"tools"`)
					if err := json.Unmarshal([]byte(text), &m); err != nil {
						t.Error(err)
					}
					if len(text) > pageBytes+200 {
						t.Errorf("page of %d bytes", len(text))
					}
					for _, tool := range m.Payload.Result.Tools {
						names[tool.Name] = true
					}
					if cursor = m.Payload.Result.NextCursor; cursor == "" || pages > 9 {
						return
					}
				}
			}, nil)
			if pages != 3 || len(names) != tt.tools {
				t.Errorf("%d pages with %d tools, want 3 with %d", pages, len(names), tt.tools)
			}
			if got := d.Violations(); len(got) != 0 {
				t.Errorf("violations: %v", got)
			}
		})
	}
}

// Calls are answered with the firmware's own results and error texts (5.4).
func TestToolCalls(t *testing.T) {
	b := NewBoard()
	extra := []Tool{
		{Name: "self.shot", Call: func(context.Context, Call) (Result, error) { return Result{JPEG: []byte("jpg")}, nil }},
		{Name: "self.fails", Call: func(context.Context, Call) (Result, error) { return Result{}, errors.New(`say "no"`) }},
		{Name: "self.optional", Properties: []Property{{Name: "n", Type: "integer", Default: 5}, {Name: "b", Type: "boolean", Default: true}}, Call: func(_ context.Context, c Call) (Result, error) {
			raw, err := json.Marshal(c.Arguments)
			return Result{Text: string(raw)}, err
		}},
		{Name: "self.huge", Description: strings.Repeat("x", pageBytes)},
	}
	tests := []struct{ method, params, want string }{
		{"initialize", `{"protocolVersion":"2024-11-05"}`, `"serverInfo":{"name":"bread-compact-wifi","version":"2.4.2"}`},
		{"ping", "", `{"message":"Method not implemented: ping"}`},
		{"tools/call", "", "Missing params"},
		{"tools/call", `{}`, "Missing name"},
		{"tools/call", `{"name":7}`, "Missing name"},
		{"tools/call", `{"name":"a","arguments":[]}`, "Invalid arguments"},
		{"tools/call", `{"name":"self.nope"}`, `{"message":"Unknown tool: self.nope"}`},
		{"tools/call", `{"name":"self.audio_speaker.set_volume","arguments":{}}`, "Missing valid argument: volume"},
		{"tools/call", `{"name":"self.audio_speaker.set_volume","arguments":{"volume":"55"}}`, "Missing valid argument: volume"},
		{"tools/call", `{"name":"self.audio_speaker.set_volume","arguments":{"volume":-1}}`, "Value is below minimum allowed: 0"},
		{"tools/call", `{"name":"self.audio_speaker.set_volume","arguments":{"volume":101}}`, "Value exceeds maximum allowed: 100"},
		{"tools/call", `{"name":"self.audio_speaker.set_volume","arguments":{"volume":55.9,"more":1}}`, `"text":"true"}],"isError":false}`},
		{"tools/call", `{"name":"self.get_device_status"}`, `{\"volume\":55}`},
		{"tools/call", `{"name":"self.screen.set_theme","arguments":{"theme":"pink"}}`, `"text":"false"`},
		{"tools/call", `{"name":"self.screen.set_theme","arguments":{"theme":"dark"}}`, `"text":"true"`},
		{"tools/call", `{"name":"self.lamp.turn_on"}`, `"text":"true"`},
		{"tools/call", `{"name":"self.lamp.get_state"}`, `{\"power\":true}`},
		{"tools/call", `{"name":"self.lamp.turn_off"}`, `"text":"true"`},
		{"tools/call", `{"name":"self.optional","arguments":{"n":"x","b":false}}`, `{\"b\":false,\"n\":5}`},
		{"tools/call", `{"name":"self.shot"}`, `"image":"{\"type\":\"image\",\"mimeType\":\"image/jpeg\",\"data\":\"anBn\"}"`},
		{"tools/call", `{"name":"self.fails"}`, `{"message":"say "no""}`},
		{"tools/call", `{"name":"self.camera.take_photo","arguments":{"question":"?"}}`, "Image explain URL or token is not set"},
		{"tools/call", `{"name":"self.sensor.study_dust"}`, `"text":"66"`},
		{"tools/list", `{"cursor":"self.huge"}`, "Failed to add tool self.huge because of payload size limit"},
		{"tools/list", `{"cursor":"self.nope"}`, "Failed to add tool  because of payload size limit"},
	}
	d := talk(t, Options{OpenListen: true, Tools: append(b.Tools(), extra...)}, func(w *wire) {
		w.hello()
		for i, tt := range tests {
			w.say(mcp(i+1, tt.method, tt.params))
			if got := w.await(`"type":"mcp"`); !strings.Contains(got, tt.want) {
				t.Errorf("%s %s: %s, want %s", tt.method, tt.params, got, tt.want)
			}
		}
	}, nil)
	if got := d.Violations(); len(got) != 0 {
		t.Errorf("violations: %v", got)
	}
	if got, want := b.Values(), (Values{Volume: 55, Brightness: 60, Theme: "dark"}); got != want {
		t.Errorf("values %+v, want %+v", got, want)
	}
}

// The camera uploads as section 5.6 says, and judges the reply.
func TestCamera(t *testing.T) {
	tests := []struct {
		name   string
		answer func(w http.ResponseWriter)
		want   string // in the result or the error
		broken bool
	}{
		{"explained", func(w http.ResponseWriter) { io.WriteString(w, `{"success":true}`) }, `{"success":true}`, false},
		{"refused", func(w http.ResponseWriter) { w.WriteHeader(401) }, "Failed to upload photo", false},
		{"chunked", func(w http.ResponseWriter) { w.(http.Flusher).Flush(); io.WriteString(w, "a red disc") }, "a red disc", true},
		{"too long", func(w http.ResponseWriter) { io.WriteString(w, strings.Repeat("a", 8192)) }, "aaa", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				checkUpload(t, r)
				tt.answer(w)
			}))
			defer server.Close()
			broken := false
			call := Call{
				Arguments: map[string]any{"question": "what is \"this\"?"}, Vision: Vision{URL: server.URL, Token: "vis_1"},
				DeviceID: "d", ClientID: "c", client: (Options{}).withDefaults().HTTPClient, violate: func(_ time.Time, _ Rule, _ string, _ ...any) { broken = true },
			}
			got, err := Camera(TestPicture).Call(t.Context(), call)
			text := got.Text
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, tt.want) || broken != tt.broken {
				t.Errorf("%.80s, broken %v", text, broken)
			}
		})
	}
}

func checkUpload(t *testing.T, r *http.Request) {
	t.Helper()
	if r.ContentLength != -1 || r.Header.Get("Authorization") != "Bearer vis_1" || r.Header.Get("Device-Id") != "d" || r.Header.Get("Client-Id") != "c" {
		t.Errorf("length %d, headers %v", r.ContentLength, r.Header)
	}
	form, err := r.MultipartReader()
	if err != nil {
		t.Error(err)
		return
	}
	question, err := form.NextPart()
	if err != nil {
		t.Error(err)
		return
	}
	text, _ := io.ReadAll(question)
	if question.FormName() != "question" || string(text) != "what is \"this\"?" || question.Header.Get("Content-Type") != "" {
		t.Errorf("first part %s: %s, %v", question.FormName(), text, question.Header)
	}
	file, err := form.NextPart()
	if err != nil {
		t.Error(err)
		return
	}
	jpg, _ := io.ReadAll(file)
	if file.FormName() != "file" || file.FileName() != "camera.jpg" || http.DetectContentType(jpg) != "image/jpeg" {
		t.Errorf("second part %s, %s, %s", file.FormName(), file.FileName(), http.DetectContentType(jpg))
	}
}
