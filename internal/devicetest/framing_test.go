package devicetest

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The vectors of section 11.
func TestFramingVectors(t *testing.T) {
	packet := []byte{0xd8, 0xff, 0xfe}
	for protocol, want := range map[int]string{
		1: "d8fffe",
		2: "0002" + "0000" + "00000000" + "00001388" + "00000003" + "d8fffe",
		3: "00" + "00" + "0003" + "d8fffe",
	} {
		got := frameUp(protocol, 5000, packet)
		if hex.EncodeToString(got) != want {
			t.Errorf("framing %d: %x, want %s", protocol, got, want)
		}
		back, timestamp, err := frameDown(protocol, got)
		if err != nil || !bytes.Equal(back, packet) {
			t.Errorf("framing %d back: %x, %v", protocol, back, err)
		}
		if protocol == 2 && timestamp != 5000 {
			t.Errorf("timestamp %d", timestamp)
		}
	}
}

func TestFramingInvalid(t *testing.T) {
	tests := []struct {
		protocol int
		data     string
	}{
		{2, ""},
		{2, "000200000000000000000000000000"},
		{2, "0001000000000000000000000000000100"},
		{2, "0002000100000000000000000000000100"},
		{2, "0002000000000000000000000000000200"},
		{2, "00020000000000000000000080000001ff"},
		{3, "000000"},
		{3, "0100000100"},
		{3, "0000000200"},
	}
	for _, tt := range tests {
		data, err := hex.DecodeString(tt.data)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := frameDown(tt.protocol, data); err == nil {
			t.Errorf("framing %d takes %s", tt.protocol, tt.data)
		}
	}
}

func FuzzFrameDown(f *testing.F) {
	f.Add(uint8(1), []byte("0123456789abcdefgh"))
	f.Add(uint8(2), []byte{0, 0, 0, 1, 9})
	f.Add(uint8(0), []byte{})
	f.Fuzz(func(t *testing.T, n uint8, data []byte) {
		protocol := 1 + int(n)%3 // as many as there are
		packet, timestamp, err := frameDown(protocol, data)
		if err != nil || protocol == 2 && !bytes.Equal(data[4:8], make([]byte, 4)) || protocol == 3 && data[1] != 0 {
			return
		}
		if got := frameUp(protocol, timestamp, packet); !bytes.Equal(got, data) {
			t.Errorf("%x comes back as %x", data, got)
		}
	})
}

func FuzzParseText(f *testing.F) {
	for _, s := range []string{`{"type":"tts","state":"start","session_id":"a"}`, `{"type":1}`, `[`, `{"type":"mcp","payload":{"id":1e99}}`, `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		found := 0
		bad := func(Rule, string, ...any) { found++ }
		m := parseText(raw, bad)
		if m == nil {
			if found == 0 {
				t.Errorf("%q is unusable, but no rule is broken", raw)
			}
			return
		}
		parseHello(m, bad)
		parseRequest(m)
	})
}
