package deepgram

import (
	"errors"
	"net/http"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// TestMetadataMayComeEarly: it is the end only after ours.
func TestMetadataMayComeEarly(t *testing.T) {
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		c, ok := s.Line(w, r, nil)
		if !ok {
			return
		}
		defer c.Close()
		say := func(m string) { _ = c.Say(servicetest.Text(m)) }
		say(`{"type":"Metadata","request_id":"x"}`)
		for {
			m, err := c.Next(0)
			if err != nil {
				return
			}
			if m.Type == servicetest.Text("").Type {
				say(`{"type":"Results","is_final":true,"duration":"1.5","channel":{"alternatives":[{"transcript":"hello","confidence":"high","words":7}]}}`)
				say(`{"type":"Metadata","request_id":"x"}`)
			}
		}
	})
	a, err := NewASR(service.Section{Name: "dg", Key: servicetest.Key, BaseURL: s.WS() + "/v1/listen"})
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
		if err != nil || tr.Text != "hello" || s.Conns() != 1 {
			t.Errorf("%+v, %v, %d sockets", tr, err, s.Conns())
		}
	}
}
