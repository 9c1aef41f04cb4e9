package connection

import (
	"slices"
	"testing"
	"time"

	"xiaozhi/mcp/rawjson"
)

func TestHelloRead(t *testing.T) {
	type want struct {
		framing  int
		mcp, aec bool
		rate     int
		frame    time.Duration
		odd      []string
	}
	plain := want{framing: 1, rate: 16000, frame: 60 * time.Millisecond}
	with := func(change func(*want)) want { w := plain; change(&w); return w }
	for _, tc := range []struct {
		name   string
		text   string
		header string
		want   want
	}{
		{"nothing but the type", `{"type":"hello"}`, "", plain},
		{
			"firmware", `{"type":"hello","version":3,"features":{"aec":true,"mcp":true,"glyph_push":true},"text_font":{"size":20},"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`, "3",
			with(func(w *want) { w.framing, w.mcp, w.aec = 3, true, true }),
		},
		{"desktop client, 20 ms", `{"type":"hello","version":1,"features":{"mcp":true},"transport":"websocket","audio_params":{"frame_duration":20}}`, "1", with(func(w *want) { w.mcp, w.frame = true, 20*time.Millisecond })},
		{"the hello's version beats the header's", `{"type":"hello","version":2}`, "3", with(func(w *want) { w.framing = 2 })},
		{"the header's version where the hello has none", `{"type":"hello"}`, " 3 ", with(func(w *want) { w.framing = 3 })},
		{"a header of nonsense", `{"type":"hello"}`, "three", plain},
		{"version as a string", `{"type":"hello","version":"3"}`, "", with(func(w *want) { w.framing, w.odd = 3, []string{"version"} })},
		{"version unknown", `{"type":"hello","version":4}`, "2", with(func(w *want) { w.framing, w.odd = 2, []string{"version"} })},
		{"version a fraction", `{"type":"hello","version":1.5}`, "", with(func(w *want) { w.odd = []string{"version"} })},
		{"version huge", `{"type":"hello","version":1e300}`, "", with(func(w *want) { w.odd = []string{"version"} })},
		{"version an object", `{"type":"hello","version":{}}`, "", with(func(w *want) { w.odd = []string{"version"} })},
		{"features an array", `{"type":"hello","features":["mcp"]}`, "", with(func(w *want) { w.odd = []string{"features"} })},
		{"features null", `{"type":"hello","features":null}`, "", plain},
		{"feature flags of other types", `{"type":"hello","features":{"mcp":1,"aec":"no"}}`, "", with(func(w *want) { w.mcp, w.odd = true, []string{"features.mcp", "features.aec"} })},
		{"audio_params null", `{"type":"hello","audio_params":null}`, "", plain},
		{"audio_params a string", `{"type":"hello","audio_params":"opus"}`, "", with(func(w *want) { w.odd = []string{"audio_params"} })},
		{"rate as a string", `{"type":"hello","audio_params":{"sample_rate":"24000"}}`, "", with(func(w *want) { w.rate, w.odd = 24000, []string{"audio_params.sample_rate"} })},
		{"rate of nonsense", `{"type":"hello","audio_params":{"sample_rate":-1,"frame_duration":1e9,"channels":2,"format":"flac"}}`, "", with(func(w *want) {
			w.odd = []string{"audio_params.format", "audio_params.channels", "audio_params.sample_rate", "audio_params.frame_duration"}
		})},
		{"another transport", `{"type":"hello","transport":"udp"}`, "", with(func(w *want) { w.odd = []string{"transport"} })},
		{"transport a number", `{"type":"hello","transport":1}`, "", with(func(w *want) { w.odd = []string{"transport"} })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, err := parseText([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			h := m.read(Peer{Transport: "websocket", Protocol: tc.header})
			if h.Framing != tc.want.framing || h.MCP != tc.want.mcp || h.AEC != tc.want.aec || h.Uplink.Rate != tc.want.rate || h.Uplink.Frame != tc.want.frame {
				t.Errorf("got %+v, want %+v", h, tc.want)
			}
			if !slices.Equal(h.Odd, tc.want.odd) {
				t.Errorf("odd fields %v, want %v", h.Odd, tc.want.odd)
			}
		})
	}
}

func TestHelloAnswer(t *testing.T) {
	got, err := rawjson.Marshal(newHelloAnswer("websocket", "s-1", false))
	want := `{"type":"hello","transport":"websocket","session_id":"s-1","audio_params":{"format":"opus","sample_rate":24000,"channels":1,"frame_duration":60}}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}

// PCM is agreed as docs/protocol.md 4.6 has it, or not at all.
func TestHelloPCM(t *testing.T) {
	for _, tc := range []struct {
		text        string
		pcm, misfit bool
	}{
		{`{"type":"hello","audio_params":{"format":"opus"}}`, false, false},
		{`{"type":"hello","audio_params":{"format":"PCM"}}`, false, false},
		{`{"type":"hello","audio_params":{"format":"pcm"}}`, true, false},
		{`{"type":"hello","features":7,"audio_params":{"format":"pcm","sample_rate":16000,"channels":1,"frame_duration":60}}`, true, false},
		{`{"type":"hello","version":2,"audio_params":{"format":"pcm"}}`, true, true},
		{`{"type":"hello","audio_params":{"format":"pcm","sample_rate":24000}}`, true, true},
		{`{"type":"hello","audio_params":{"format":"pcm","sample_rate":"16000"}}`, true, true},
		{`{"type":"hello","audio_params":{"format":"pcm","sample_rate":1e9}}`, true, true},
		{`{"type":"hello","audio_params":{"format":"pcm","channels":2}}`, true, true},
		{`{"type":"hello","audio_params":{"format":"pcm","frame_duration":20}}`, true, true},
	} {
		m, err := parseText([]byte(tc.text))
		if err != nil {
			t.Fatal(err)
		}
		if h := m.read(Peer{Transport: "websocket"}); h.PCM != tc.pcm || h.Misfit != tc.misfit {
			t.Errorf("%s: pcm %v, misfit %v", tc.text, h.PCM, h.Misfit)
		}
	}
	got, err := rawjson.Marshal(newHelloAnswer("websocket", "s-1", true))
	want := `{"type":"hello","transport":"websocket","session_id":"s-1","audio_params":{"format":"pcm","sample_rate":24000,"channels":1,"frame_duration":60}}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}
