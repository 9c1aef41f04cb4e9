package wyoming

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/wyoming"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct{ wire, kind, text, payload string }{
		"data in the line":  {`{"type":"transcript","data":{"text":"a"}}` + "\n", "transcript", "a", ""},
		"data in a block":   {`{"type":"transcript","data_length":12}` + "\n" + `{"text":"a"}`, "transcript", "a", ""},
		"the block wins":    {`{"type":"x","data":{"text":"b","rate":1},"data_length":12}` + "\n" + `{"text":"a"}`, "x", "a", ""},
		"sound":             {"\r\n" + `{"type":"audio-chunk","data":null,"payload_length":4}` + "\r\nabcd", "audio-chunk", "", "abcd"},
		"data of no length": {`{"type":"pong","data_length":0,"payload_length":0,"version":"9"}` + "\n", "pong", "", ""},
	} {
		e, err := decode(bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(c.wire)), 16))
		if err != nil || e.Type != c.kind || e.text("text") != c.text || string(e.Payload) != c.payload {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	for name, wire := range map[string]string{
		"no JSON": "GET / HTTP/1.1\n", "no type": "{}\n", "a huge payload": `{"type":"x","payload_length":999999999}` + "\n",
		"a negative one": `{"type":"x","data_length":-1}` + "\n", "a list of data": `{"type":"x","data_length":2}` + "\n[]",
	} {
		if _, err := decode(bufio.NewReader(strings.NewReader(wire))); !errors.Is(err, errEvent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := decode(bufio.NewReader(strings.NewReader(`{"type":"x","payload_length":4}` + "\nab"))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %v", err)
	}
}

func TestAddress(t *testing.T) {
	for base, want := range map[string]string{
		"tcp://host:10300": "host:10300", "wyoming://host:1": "host:1", "host:10200": "host:10200", "[::1]:2": "[::1]:2",
		"http://host:1": "", "host": "", "tcp://host": "", "": "",
	} {
		if got, err := address(base); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", base, got, err)
		}
	}
}

func TestVoicesAreListed(t *testing.T) {
	s := fake.New(t)
	s.Fail(servicetest.None)
	all, err := listVoices(t.Context(), service.Section{Name: "home", BaseURL: s.URL()})
	if err != nil || len(all) == 0 || all[0].Name == "" {
		t.Errorf("%+v, %v", all, err)
	}
}

func FuzzDecode(f *testing.F) {
	b, err := encode("audio-chunk", format{16000, 2, 1}, []byte("abcd"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"type":"error","data":{"text":"x","code":"y"}}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for range len(b) + 1 {
			e, err := decode(r)
			if err != nil {
				return
			}
			if len(e.Payload) > len(b) {
				t.Fatal("more sound comes out than went in")
			}
			_, _, _ = e.text("text"), e.number("rate", 1), e.Type
		}
		t.Error("events without end")
	})
}

// TestTextInPiecesOnly: a server that streams need not say the whole again.
func TestTextInPiecesOnly(t *testing.T) {
	s := servicetest.NewTCP(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			e, err := decode(in)
			if err != nil {
				return
			}
			if e.Type == "audio-stop" {
				_, _ = c.Write([]byte(`{"type":"transcript-start","version":1}` + "\n" + `{"type":"transcript-chunk","data":{"text":"hel"}}` + "\n" +
					`{"type":"transcript-chunk","data":{"text":"lo"}}` + "\n" + `{"type":"transcript-stop"}` + "\n"))
			}
		}
	})
	a, err := newASR(service.Section{Name: "home", BaseURL: s.URL() + "/"})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := a.Open(t.Context(), providers.ASRRequest{Rate: 16000})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.Write(make([]int16, 16000)), stream.CloseWrite()); err != nil {
		t.Fatal(err)
	}
	for tr, err := range stream.Transcripts() {
		if err != nil || tr.Final && tr.Text != "hello" {
			t.Errorf("%+v, %v", tr, err)
		}
	}
}
