package connection

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParseText(t *testing.T) {
	nest := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	for _, tc := range []struct {
		name  string
		text  string
		kind  string
		wrong string
	}{
		{"a message", `{"session_id":"","type":"listen","state":"start"}`, "listen", ""},
		{"unknown members", `{"type":"abort","x":{"y":[1,2]}}`, "abort", ""},
		{"a raw line break in a string", "{\"type\":\"listen\",\"text\":\"a\nb\"}", "listen", ""},
		{"a C string's zero at the end", "{\"type\":\"abort\"}\x00", "abort", ""},
		{"invalid UTF-8", "{\"type\":\"listen\",\"text\":\"a\xff\xfe\"}", "listen", ""},
		{"as deep as allowed", `{"type":"x","payload":` + nest(maxDepth-1) + `}`, "x", ""},
		{"brackets in a string are no depth", `{"type":"x","text":"` + strings.Repeat(`[{\"`, 100) + `"}`, "x", ""},
		{"too deep", `{"type":"x","payload":` + nest(maxDepth) + `}`, "", "33 levels"},
		{"very deep", `{"type":"x","payload":` + nest(200_000) + `}`, "", "levels deep"},
		{"never closed", strings.Repeat(`{"a":`, 100_000), "", "levels deep"},
		{"empty", ``, "", "broken json"},
		{"cut off", `{"type":"listen","sta`, "", "broken json"},
		{"an unescaped quote", `{"type":"listen","text":"my "net""}`, "", "broken json"},
		{"two values", `{"type":"abort"}{"type":"abort"}`, "", "broken json"},
		{"an array", `[{"type":"abort"}]`, "", "broken json"},
		{"a string", `"abort"`, "", "broken json"},
		{"null", `null`, "", "type is missing"},
		{"no type", `{"state":"start"}`, "", "type is missing"},
		{"type null", `{"type":null}`, "", "type is missing"},
		{"type empty", `{"type":""}`, "", "type is missing"},
		{"type a number", `{"type":7}`, "", "not a string"},
		{"type an object", `{"type":{"type":"abort"}}`, "", "not a string"},
		{"big, of mcp", `{"type":"mcp","payload":{"x":"` + strings.Repeat("x", 200<<10) + `"}}`, "mcp", ""},
		{"a bare frame", `{"jsonrpc":"2.0","id":1,"result":{}}`, "mcp", ""},
		{"a bare frame, type null", `{"type":null,"jsonrpc":"2.0"}`, "mcp", ""},
		{"a bare frame, big", `{"jsonrpc":"2.0","result":"` + strings.Repeat("x", 200<<10) + `"}`, "mcp", ""},
		{"a bare frame with a raw line break", "{\"jsonrpc\":\"2.0\",\"result\":\"a\nb\"}", "mcp", ""},
		{"jsonrpc beside a type", `{"type":"abort","jsonrpc":"2.0"}`, "abort", ""},
		{"jsonrpc null", `{"jsonrpc":null}`, "", "type is missing"},
		{"big, of another type", `{"type":"listen","text":"` + strings.Repeat("x", 64<<10) + `"}`, "", "are too much"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, err := parseText([]byte(tc.text))
			if tc.wrong == "" && err != nil || tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)) {
				t.Fatalf("error %v, want %q", err, tc.wrong)
			}
			if m.kind != tc.kind {
				t.Errorf("type %q, want %q", m.kind, tc.kind)
			}
		})
	}
}

func TestParseTextSharesNothing(t *testing.T) {
	data := []byte(`{"type":"mcp","payload":{"id":1}}`)
	m, err := parseText(data)
	if err != nil {
		t.Fatal(err)
	}
	clear(data)
	if string(m.Payload) != `{"id":1}` {
		t.Errorf("payload changed with the read buffer: %q", m.Payload)
	}
}

// A bare frame is handed on as it is, mended where it had to be.
func TestParseTextBare(t *testing.T) {
	for text, want := range map[string]string{
		" {\"jsonrpc\" : \"2.0\"}":                  " {\"jsonrpc\" : \"2.0\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":\"a\nb\"}\x00": `{"jsonrpc":"2.0","id":"a b"} `,
	} {
		data := []byte(text)
		m, err := parseText(data)
		clear(data)
		if err != nil || !m.bare || string(m.Payload) != want {
			t.Errorf("%q: %q, bare %v, %v", text, m.Payload, m.bare, err)
		}
	}
	if m, err := parseText([]byte(`{"type":"mcp","jsonrpc":"2.0","payload":{}}`)); err != nil || m.bare || string(m.Payload) != "{}" {
		t.Errorf("an envelope: %+v, %v", m, err)
	}
}

func TestPayloadIn(t *testing.T) {
	for _, tc := range []struct{ raw, want, wrong string }{
		{`{"id":1}`, `{"id":1}`, ""},
		{` {"id":1} `, `{"id":1}`, ""},
		{`"{\"id\":1}"`, `{"id":1}`, ""},
		{`"hello"`, "", "holds no json"},
		{`"[1]"`, "", "not an object"},
		{`[1]`, "", "not an object"},
		{`7`, "", "not an object"},
		{`null`, "", "without payload"},
		{``, "", "without payload"},
	} {
		got, err := payloadIn(json.RawMessage(tc.raw))
		if string(got) != tc.want || (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: got %q, %v; want %q, %q", tc.raw, got, err, tc.want, tc.wrong)
		}
	}
}

// Nothing that a stranger sends makes a panic, and what is taken for a message
// is one.
func FuzzParseText(f *testing.F) {
	for _, seed := range []string{
		`{"type":"hello","version":1,"features":{"mcp":true},"audio_params":{"sample_rate":16000}}`,
		`{"type":"hello","version":"3","features":[],"audio_params":[],"transport":7}`,
		`{"session_id":"s","type":"listen","state":"detect","text":"你好"}`,
		`{"type":"mcp","payload":"{\"id\":1}"}`,
		"{\"type\":\"abort\"}\x00", `[[[[`, `"`, `{"type":"\ud800"}`, "\x7f\x00{",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseText(data)
		if err != nil {
			return
		}
		if m.kind == "" {
			t.Error("a message without a type")
		}
		h := m.read(Peer{Transport: "websocket", Protocol: "2"})
		if h.Framing < 1 || h.Framing > 3 || h.Uplink.Rate < 8000 || h.Uplink.Frame <= 0 {
			t.Errorf("hello understood as %+v", h)
		}
		if p, err := payloadIn(m.Payload); err == nil && !json.Valid(p) {
			t.Errorf("payload %q is no json", p)
		}
	})
}
