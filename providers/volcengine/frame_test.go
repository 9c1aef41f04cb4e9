package volcengine

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
		f    frame
		want string
	}{
		"full request":     {frame{kind: typeRequest, json: true, payload: []byte("{}")}, "11 10 10 00 00 00 00 02 7b 7d"},
		"last audio":       {frame{kind: typeAudio, flags: flagLast, payload: []byte{1, 0, 2, 0}}, "11 22 00 00 00 00 00 04 01 00 02 00"},
		"start connection": {frame{kind: typeRequest, flags: flagEvent, json: true, event: eventStartConnection, payload: []byte("{}")}, "11 14 10 00 00 00 00 01 00 00 00 02 7b 7d"},
		"start session": {
			frame{kind: typeRequest, flags: flagEvent, json: true, event: eventStartSession, id: "abcd", payload: []byte("{}")},
			"11 14 10 00 00 00 00 64 00 00 00 04 61 62 63 64 00 00 00 02 7b 7d",
		},
	} {
		if got := test.f.bytes(); !bytes.Equal(got, unhex(test.want)) {
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
		want frame
		last bool
	}{
		"sound":         {unhex("11 b4 00 00 00 00 01 60 00 00 00 04 61 62 63 64 00 00 00 02 05 06"), frame{kind: typeSound, flags: flagEvent, event: eventTTSResponse, id: "abcd", payload: []byte{5, 6}}, false},
		"answer":        {unhex("11 91 10 00 00 00 00 03 00 00 00 02 7b 7d"), frame{kind: typeAnswer, flags: 1, json: true, sequence: 3, payload: []byte("{}")}, false},
		"last answer":   {unhex("11 93 10 00 ff ff ff fd 00 00 00 02 7b 7d"), frame{kind: typeAnswer, flags: 3, json: true, sequence: -3, payload: []byte("{}")}, true},
		"last, no seq":  {unhex("11 92 10 00 00 00 00 02 7b 7d"), frame{kind: typeAnswer, flags: 2, json: true, payload: []byte("{}")}, true},
		"refusal":       {unhex("11 f0 10 00 02 ae a5 91 00 00 00 02 7b 7d"), frame{kind: typeRefusal, json: true, code: 45000081, payload: []byte("{}")}, false},
		"packed":        {append(unhex("11 90 11 00 00 00 00"), append([]byte{byte(len(z))}, z...)...), frame{kind: typeAnswer, json: true, payload: []byte(`{"a":1}`)}, false},
		"longer header": {unhex("12 90 10 00 ff ff ff ff 00 00 00 02 7b 7d"), frame{kind: typeAnswer, json: true, payload: []byte("{}")}, false},
		"no payload":    {unhex("11 94 10 00 00 00 00 98 00 00 00 01 61"), frame{kind: typeAnswer, flags: 4, json: true, event: 152, id: "a"}, false},
	} {
		got, err := parseFrame(test.in)
		if err != nil || !bytes.Equal(got.payload, test.want.payload) || got.last() != test.last {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		got.payload, test.want.payload = nil, nil
		if got.kind != test.want.kind || got.flags != test.want.flags || got.json != test.want.json || got.sequence != test.want.sequence ||
			got.event != test.want.event || got.id != test.want.id || got.code != test.want.code {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	for _, torn := range []string{"", "11", "21 90 10 00 00 00 00 00", "10 90 10 00", "11 90 10 00 00 00 00 09 7b", "11 f0 10 00 02", "11 90 11 00 00 00 00 02 7b 7d", "11 90 10 00 ff ff ff ff"} {
		if f, err := parseFrame(unhex(torn)); err == nil {
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
		got, err := parseFrame(b)
		if err == nil && len(got.payload) > maxFrame {
			t.Errorf("a payload of %d bytes", len(got.payload))
		}
	})
}
