package volcframe

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"strings"
	"testing"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

func TestFramesWeSend(t *testing.T) {
	for name, test := range map[string]struct {
		f    Frame
		want string
	}{
		"full request":     {Frame{Kind: TypeRequest, JSON: true, Payload: []byte("{}")}, "11 10 10 00 00 00 00 02 7b 7d"},
		"last audio":       {Frame{Kind: TypeAudio, Flags: FlagLast, Payload: []byte{1, 0, 2, 0}}, "11 22 00 00 00 00 00 04 01 00 02 00"},
		"start connection": {Frame{Kind: TypeRequest, Flags: FlagEvent, JSON: true, Event: EventStartConnection, Payload: []byte("{}")}, "11 14 10 00 00 00 00 01 00 00 00 02 7b 7d"},
		"start session": {
			Frame{Kind: TypeRequest, Flags: FlagEvent, JSON: true, Event: EventStartSession, ID: "abcd", Payload: []byte("{}")},
			"11 14 10 00 00 00 00 64 00 00 00 04 61 62 63 64 00 00 00 02 7b 7d",
		},
	} {
		if got := test.f.Bytes(); !bytes.Equal(got, unhex(test.want)) {
			t.Errorf("%s: % x, want %s", name, got, test.want)
		}
	}
}

func zipped(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.Bytes()
}

func TestFramesWeGet(t *testing.T) {
	z := zipped(`{"a":1}`)
	for name, test := range map[string]struct {
		in   []byte
		want Frame
		last bool
	}{
		"sound":         {unhex("11 b4 00 00 00 00 01 60 00 00 00 04 61 62 63 64 00 00 00 02 05 06"), Frame{Kind: TypeSound, Flags: FlagEvent, Event: EventTTSResponse, ID: "abcd", Payload: []byte{5, 6}}, false},
		"answer":        {unhex("11 91 10 00 00 00 00 03 00 00 00 02 7b 7d"), Frame{Kind: TypeAnswer, Flags: 1, JSON: true, Sequence: 3, Payload: []byte("{}")}, false},
		"last answer":   {unhex("11 93 10 00 ff ff ff fd 00 00 00 02 7b 7d"), Frame{Kind: TypeAnswer, Flags: 3, JSON: true, Sequence: -3, Payload: []byte("{}")}, true},
		"last, no seq":  {unhex("11 92 10 00 00 00 00 02 7b 7d"), Frame{Kind: TypeAnswer, Flags: 2, JSON: true, Payload: []byte("{}")}, true},
		"refusal":       {unhex("11 f0 10 00 02 ae a5 91 00 00 00 02 7b 7d"), Frame{Kind: TypeRefusal, JSON: true, Code: 45000081, Payload: []byte("{}")}, false},
		"packed":        {append(unhex("11 90 11 00 00 00 00"), append([]byte{byte(len(z))}, z...)...), Frame{Kind: TypeAnswer, JSON: true, Payload: []byte(`{"a":1}`)}, false},
		"longer header": {unhex("12 90 10 00 ff ff ff ff 00 00 00 02 7b 7d"), Frame{Kind: TypeAnswer, JSON: true, Payload: []byte("{}")}, false},
		"no payload":    {unhex("11 94 10 00 00 00 00 98 00 00 00 01 61"), Frame{Kind: TypeAnswer, Flags: 4, JSON: true, Event: 152, ID: "a"}, false},
	} {
		got, err := Parse(test.in)
		if err != nil || !bytes.Equal(got.Payload, test.want.Payload) || got.Last() != test.last {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		got.Payload, test.want.Payload = nil, nil
		if got.Kind != test.want.Kind || got.Flags != test.want.Flags || got.JSON != test.want.JSON || got.Sequence != test.want.Sequence ||
			got.Event != test.want.Event || got.ID != test.want.ID || got.Code != test.want.Code {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	for _, torn := range []string{"", "11", "21 90 10 00 00 00 00 00", "10 90 10 00", "11 90 10 00 00 00 00 09 7b", "11 f0 10 00 02", "11 90 11 00 00 00 00 02 7b 7d", "11 90 10 00 ff ff ff ff"} {
		if f, err := Parse(unhex(torn)); err == nil {
			t.Errorf("%s was taken for %+v", torn, f)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, seed := range []string{
		"11 b4 00 00 00 00 01 60 00 00 00 04 61 62 63 64 00 00 00 02 05 06", "11 93 10 00 ff ff ff fd 00 00 00 02 7b 7d",
		"11 f0 10 00 02 ae a5 91 00 00 00 02 7b 7d", "1f 90 11 00 00 00 00 02 1f 8b",
	} {
		f.Add(unhex(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Parse(b)
		if err == nil && len(got.Payload) > maxFrame {
			t.Errorf("a payload of %d bytes", len(got.Payload))
		}
	})
}
