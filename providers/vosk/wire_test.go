package vosk

import (
	"errors"
	"net/http"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

func TestParse(t *testing.T) {
	for message, want := range map[string]struct {
		words string
		ended bool
		fails bool
	}{
		`{"partial":"今天 天气 怎么样"}`:                        {"今天天气怎么样", false, false},
		`{"text":"turn on the lamp 好 吗"}`:                {"turn on the lamp 好吗", true, false},
		`{"text":""}`:                                    {"", true, false},
		`{"alternatives":[{"text":"a b"},{"text":"c"}]}`: {"a b", true, false},
		`{"other":1}`:                                    {"", false, false},
		`{"text":`:                                       {"", false, true},
	} {
		words, ended, err := parse([]byte(message))
		if words != want.words || ended != want.ended || (err != nil) != want.fails {
			t.Errorf("%s: %q, %v, %v", message, words, ended, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"partial":"a b"}`))
	f.Add([]byte(`{"text":"a","result":[{"conf":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if words, _, err := parse(b); err != nil && words != "" {
			t.Errorf("%q and %v", words, err)
		}
	})
}

// TestServersThatAnswerSeldom: others than the vendor's own answer not each piece of sound, and
// close when all is said.
func TestServersThatAnswerSeldom(t *testing.T) {
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		c, ok := s.Line(w, r, nil)
		if !ok {
			return
		}
		defer c.Close()
		for {
			m, err := c.Next(0)
			if err != nil {
				return
			}
			if string(m.Data) == farewell {
				_ = c.Say(servicetest.Text(`{"partial":"turn it"}`))
				_ = c.Say(servicetest.Text(`{"text":"turn it on","result":"many","more":1}`))
				c.End(1000, "")
				return
			}
		}
	})
	a, err := New(service.Section{Name: "home", BaseURL: s.WS() + "/"})
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
		if err != nil || tr.Final && tr.Text != "turn it on" {
			t.Errorf("%+v, %v", tr, err)
		}
	}
}
