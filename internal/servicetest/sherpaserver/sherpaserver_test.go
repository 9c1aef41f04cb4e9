package sherpaserver

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// floats are 16 bit samples as float32 between -scale and scale.
func floats(pcm []byte, scale float32) []byte {
	var out []byte
	for _, v := range servicetest.Samples(pcm) {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)/32768*scale))
	}
	return out
}

func dial(t *testing.T, s *servicetest.Server) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(s.WS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// listen reads the final text of each segment, until "Done!" or the end.
func listen(t *testing.T, c *websocket.Conn) (segments []string, end string) {
	t.Helper()
	for {
		_, m, err := c.ReadMessage()
		if err != nil || string(m) == "Done!" {
			if err != nil {
				return segments, err.Error()
			}
			return segments, "Done!"
		}
		var r struct {
			Text    string
			Segment int
		}
		if err := json.Unmarshal(m, &r); err != nil {
			t.Fatalf("%q: %v", m, err)
		}
		segments = append(segments, make([]string, max(0, r.Segment+1-len(segments)))...)
		segments[r.Segment] = r.Text
	}
}

func TestStreamingServers(t *testing.T) {
	first, second := servicetest.Halves()
	tone := servicetest.Speech("abcdefghijklmnopqrstuvwxy", rate)
	for name, start := range map[string]func(testing.TB) *servicetest.Server{"Done!": New, "websocket: close 1000 (normal)": NewPython} {
		s := start(t)
		for _, test := range []struct {
			fault servicetest.Fault
			sound []byte
			want  []string
		}{
			{0, floats(tone, 1), []string{servicetest.Words}},
			{0, floats(tone, 32768), []string{""}},
			{0, tone, []string{""}},
			{0, nil, []string{""}},
			{servicetest.Parts, floats(tone, 1), []string{first, second}},
		} {
			s.Fail(test.fault)
			c := dial(t, s)
			for _, p := range servicetest.Pieces(test.sound, 6400) {
				_ = c.WriteMessage(websocket.BinaryMessage, p)
			}
			_ = c.WriteMessage(websocket.TextMessage, []byte("Done"))
			if got, end := listen(t, c); !slices.Equal(got, test.want) || end != name {
				t.Errorf("%q, then %q, want %q and %q", got, end, test.want, name)
			}
		}
	}
}

func TestOfflineServer(t *testing.T) {
	s := NewOffline(t)
	sound := floats(servicetest.Speech("abc", rate), 1)
	head := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, rate), uint32(len(sound)))
	c := dial(t, s)
	for range 2 {
		_ = c.WriteMessage(websocket.BinaryMessage, head)
		for _, p := range servicetest.Pieces(sound, 1001) {
			_ = c.WriteMessage(websocket.BinaryMessage, p)
		}
		_, m, err := c.ReadMessage()
		var r struct{ Text, Lang string }
		if json.Unmarshal(m, &r) != nil || r.Text != servicetest.Words || r.Lang != "<|zh|>" {
			t.Errorf("%q, error %v", m, err)
		}
	}
	for _, test := range []struct {
		kind int
		data []byte
		code int
	}{
		{websocket.TextMessage, []byte("Done"), 1000},
		{websocket.TextMessage, []byte("EOF"), 1000},
		{websocket.BinaryMessage, []byte("short"), 1000},
		{websocket.BinaryMessage, []byte("\x80\x3e\x00\x00\xff\xff\xff\x7f"), 1009},
		{websocket.BinaryMessage, []byte("\x80\x3e\x00\x00\x04\x00\x00\x00more than 4"), 1011},
	} {
		c := dial(t, s)
		_ = c.WriteMessage(test.kind, test.data)
		if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, test.code) {
			t.Errorf("after %q: %v, want %d", test.data, err, test.code)
		}
	}
}
