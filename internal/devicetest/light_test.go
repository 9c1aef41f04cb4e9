package devicetest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// lightServer is a server that plays a script to a Light.
func lightServer(t *testing.T, play func(ws *websocket.Conn)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return // the upgrader has answered
		}
		defer ws.Close()
		play(ws)
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

func TestLightConverses(t *testing.T) {
	for _, enveloped := range []bool{false, true} {
		var got []string
		wrap := func(frame string) string {
			if enveloped {
				return `{"session_id":"s-1","type":"mcp","payload":` + frame + `}`
			}
			return frame
		}
		url := lightServer(t, func(ws *websocket.Conn) {
			for _, say := range [][]string{
				{`{"jsonrpc":"2.0","id":"reg-1","result":{"status":"registered","message":"Tools were successfully registered."}}`},
				{`{"jsonrpc":"2.0","method":"mcp/tool/execute","params":{"tool_name":"lamp","tool_input":{"on":true}},"id":"c1"}`},
				{
					`{"jsonrpc":"2.0","method":"mcp/ai/message","params":{"type":"thought","content":"hm"}}`,
					`{"jsonrpc":"2.0","method":"mcp/ai/message","params":{"type":"chunk","content":"灯开了。"}}`,
					`{"jsonrpc":"2.0","method":"mcp/ai/message","params":{"type":"final","content":"灯开了。"}}`,
				},
			} {
				_, data, err := ws.ReadMessage()
				if err != nil {
					t.Error(err)
					return
				}
				got = append(got, string(data))
				for _, frame := range say {
					_ = ws.WriteMessage(websocket.TextMessage, []byte(wrap(frame)))
				}
			}
			_, _, _ = ws.ReadMessage() // until the peer goes
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		l, err := DialLight(ctx, LightOptions{URL: url, Enveloped: enveloped})
		if err != nil {
			t.Fatal(err)
		}
		message, err := l.Register(ctx, "reg-1", LightTool{
			Name: "lamp", MainType: "remote", SubType: "control", Parameters: json.RawMessage(`{"type":"object"}`),
			Call: func(_ context.Context, input json.RawMessage) string { return `"result":` + string(input) },
		})
		if err != nil || message != "Tools were successfully registered." {
			t.Errorf("confirmation %q, %v", message, err)
		}
		if err := l.Type("开灯"); err != nil {
			t.Error(err)
		}
		reply, err := l.WaitReply(ctx)
		if err != nil || reply.Final != "灯开了。" || !slices.Equal(reply.Chunks, []string{"灯开了。"}) || !slices.Equal(reply.Thoughts, []string{"hm"}) {
			t.Errorf("reply %+v, %v", reply, err)
		}
		l.Close()
		if v := l.Violations(); len(v) != 0 {
			t.Errorf("violations %v", v)
		}
		registration := wrap(`{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":"AA-BB-CC-DD-EE-FF","tools":[` +
			`{"name":"lamp","description":"","main_type":"remote","sub_type":"control","parameters":{"type":"object"}}]},"id":"reg-1"}`)
		if want := strings.Replace(registration, "s-1", "", 1); got[0] != want {
			t.Errorf("registered by %s\nwant %s", got[0], want)
		}
	}
}

// TestLightRules gives frames that are almost right.
func TestLightRules(t *testing.T) {
	const execute = `{"jsonrpc":"2.0","method":"mcp/tool/execute","params":{"tool_name":"lamp","tool_input":{}},"id":"c1"}`
	const final = `{"jsonrpc":"2.0","method":"mcp/ai/message","params":{"type":"final","content":"x"}}`
	for name, test := range map[string]struct {
		frames []string
		rule   Rule
	}{
		"members in another order": {[]string{`{"id":"r","jsonrpc":"2.0","result":{"status":"registered","message":"x"}}`}, RuleLightBytes},
		"one member more":          {[]string{`{"jsonrpc":"2.0","id":"r","result":{"status":"registered","message":"x","n":1}}`}, RuleLightBytes},
		"spaces":                   {[]string{`{"jsonrpc": "2.0","id":"r","result":{"status":"registered","message":"x"}}`}, RuleLightBytes},
		"escapes for HTML":         {[]string{`{"jsonrpc":"2.0","method":"mcp/ai/message","params":{"type":"chunk","content":"\u003c"}}`}, RuleLightBytes},
		"a session id":             {[]string{`{"session_id":"s","jsonrpc":"2.0","method":"mcp/ai/message","params":{"type":"chunk","content":"x"}}`}, RuleLightFraming},
		"the envelope":             {[]string{`{"session_id":"s","type":"mcp","payload":` + final + `}`}, RuleLightFraming},
		"an ordinary message":      {[]string{`{"session_id":"s","type":"tts","state":"start"}`}, RuleLightForeign},
		"no JSON":                  {[]string{`{`}, RuleLightForeign},
		"sound":                    {[]string{"\x00binary"}, RuleLightForeign},
		"an unknown method":        {[]string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`}, RuleLightBytes},
		"an unknown ai message":    {[]string{`{"jsonrpc":"2.0","method":"mcp/ai/message","params":{"type":"smell","content":"x"}}`}, RuleLightBytes},
		"a call twice":             {[]string{execute, execute}, RuleLightID},
		"a call without id":        {[]string{strings.Replace(execute, `"c1"`, `""`, 1)}, RuleLightID},
		"a call of nothing":        {[]string{strings.Replace(execute, "lamp", "fan", 1)}, RuleLightBytes},
		"a call with a list":       {[]string{strings.Replace(execute, "{}", "[]", 1)}, RuleLightBytes},
		"a final of nothing":       {[]string{final}, RuleLightReply},
	} {
		t.Run(name, func(t *testing.T) {
			url := lightServer(t, func(ws *websocket.Conn) {
				_, _, _ = ws.ReadMessage()
				for _, frame := range test.frames {
					kind := websocket.TextMessage
					if strings.HasPrefix(frame, "\x00") {
						kind = websocket.BinaryMessage
					}
					_ = ws.WriteMessage(kind, []byte(frame))
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			l, err := DialLight(ctx, LightOptions{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			lamp := LightTool{Name: "lamp", Call: func(context.Context, json.RawMessage) string { return "" }}
			lamp.Parameters = json.RawMessage(`{}`)
			if _, err := l.Register(ctx, "other", lamp); !errors.Is(err, ErrClosed) {
				t.Errorf("Register: %v", err)
			}
			if !slices.ContainsFunc(l.Violations(), func(v Violation) bool { return v.Rule == test.rule }) {
				t.Errorf("violations %v, want %s", l.Violations(), test.rule)
			}
		})
	}
}

func TestLightRefused(t *testing.T) {
	url := lightServer(t, func(ws *websocket.Conn) {
		_, _, _ = ws.ReadMessage()
		_ = ws.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":"r","error":{"code":-32602,"message":"not you"}}`))
		_, _, _ = ws.ReadMessage()
	})
	l, err := DialLight(t.Context(), LightOptions{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Register(t.Context(), "r"); err == nil || !strings.Contains(err.Error(), "not you") {
		t.Errorf("got %v", err)
	}
	if _, err := DialLight(t.Context(), LightOptions{URL: url + "/\x7f"}); err == nil {
		t.Error("a broken address is dialled")
	}
}
