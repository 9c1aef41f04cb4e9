package websocket

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// The vectors of section 11.
func TestFramingVectors(t *testing.T) {
	packet := []byte{0xd8, 0xff, 0xfe}
	for _, tc := range []struct {
		framing int
		stamp   uint32
		wire    string
	}{
		{1, 5000, "d8fffe"},
		{2, 5000, "0002 0000 00000000 00001388 00000003 d8fffe"},
		{2, 0, "0002 0000 00000000 00000000 00000003 d8fffe"},
		{3, 5000, "00 00 0003 d8fffe"},
	} {
		want := unhex(t, tc.wire)
		got, err := appendFrame(nil, tc.framing, tc.stamp, packet)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("framing %d: got %x, %v, want %x", tc.framing, got, err, want)
		}
		back, _, err := parseFrame(tc.framing, want)
		if err != nil || !bytes.Equal(back, packet) {
			t.Errorf("framing %d: parsed %x, %v", tc.framing, back, err)
		}
	}
}

func TestParseFrame(t *testing.T) {
	for _, tc := range []struct {
		name    string
		framing int
		wire    string
		packet  string
		wrong   string // part of the error
	}{
		{"bare DTX packet of one byte", 1, "78", "78", ""},
		{"empty 1", 1, "", "", ""},
		{"empty 2", 2, "", "", ""},
		{"empty 3", 3, "", "", ""},
		{"2 without payload", 2, "0002 0000 00000000 00000000 00000000", "", ""},
		{"3 without payload", 3, "00 00 0000", "", ""},
		{"2 cut in the header", 2, "0002 0000 00000000 00000000 000000", "", "15 bytes"},
		{"3 cut in the header", 3, "00 00 00", "", "3 bytes"},
		{"2 promises more than there is", 2, "0002 0000 00000000 00000000 00000004 d8fffe", "", "says 4 bytes, 3 are there"},
		{"2 promises four gigabytes", 2, "0002 0000 00000000 00000000 ffffffff d8fffe", "", "says 4294967295"},
		{"2 promises less than there is", 2, "0002 0000 00000000 00000000 00000002 d8fffe", "", "says 2 bytes, 3 are there"},
		{"3 promises more than there is", 3, "00 00 ffff d8fffe", "", "says 65535"},
		{"3 promises nothing but has", 3, "00 00 0000 d8fffe", "", "says 0 bytes, 3 are there"},
		{"2 of type json", 2, "0002 0001 00000000 00000000 00000002 7b7d", "", "type 1"},
		{"3 of type json", 3, "01 00 0002 7b7d", "", "type 1"},
		{"2 with another version in the header", 2, "0007 0000 00000000 00000000 00000001 78", "78", ""},
		{"2 with a timestamp and reserved bits", 2, "0002 0000 deadbeef 00001388 00000001 78", "78", ""},
		{"unknown framing is bare", 9, "7879", "7879", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			packet, _, err := parseFrame(tc.framing, unhex(t, tc.wire))
			if tc.wrong == "" && err != nil || tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)) {
				t.Fatalf("error %v, want %q", err, tc.wrong)
			}
			if err != nil && !errors.Is(err, errFrame) {
				t.Errorf("%v is not errFrame", err)
			}
			if !bytes.Equal(packet, unhex(t, tc.packet)) {
				t.Errorf("packet %x, want %s", packet, tc.packet)
			}
		})
	}
}

func TestAppendFrameTooLong(t *testing.T) {
	kept := []byte("kept")
	got, err := appendFrame(kept, 3, 0, make([]byte, 65536))
	if !errors.Is(err, errFrame) || string(got) != "kept" {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if got, err := appendFrame(nil, 3, 0, make([]byte, 65535)); err != nil || len(got) != 65539 {
		t.Errorf("the longest packet: %d bytes, %v", len(got), err)
	}
}

// What comes in never makes trouble, and what is accepted can be built again.
func FuzzParseFrame(f *testing.F) {
	for _, seed := range []string{"", "78", "00000003d8fffe", "0002000000000000000013880000000" + "3d8fffe", "0002000000000000000000000000ffff78", "0000ffff"} {
		f.Add(3, unhex(f, seed))
		f.Add(2, unhex(f, seed))
	}
	f.Fuzz(func(t *testing.T, framing int, message []byte) {
		packet, _, err := parseFrame(framing, message)
		if err != nil {
			if packet != nil {
				t.Error("a packet beside an error")
			}
			return
		}
		if len(packet) > len(message) {
			t.Fatalf("%d bytes out of %d", len(packet), len(message))
		}
		built, err := appendFrame(nil, framing, 7, packet)
		if err != nil {
			return
		}
		again, _, err := parseFrame(framing, built)
		if err != nil || !bytes.Equal(again, packet) {
			t.Fatalf("built %x, parsed back as %x, %v", built, again, err)
		}
	})
}

func BenchmarkAppendFrame(b *testing.B) {
	packet := make([]byte, 180)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = appendFrame(buf[:0], 2, 5000, packet)
	}
}

func BenchmarkParseFrame(b *testing.B) {
	wire, _ := appendFrame(nil, 3, 0, make([]byte, 180))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := parseFrame(3, wire); err != nil {
			b.Fatal(err)
		}
	}
}
