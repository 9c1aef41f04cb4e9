package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// TestServerCommitsByItself: a server that finds turns itself has nothing left to commit at our
// end, and its last words come after it has said so.
func TestServerCommitsByItself(t *testing.T) {
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		c, ok := s.Line(w, r, nil)
		if !ok {
			return
		}
		defer c.Close()
		say := func(m string) { _ = c.Say(servicetest.Text(m)) }
		say(`{"type":"session.created","session":7}`)
		for heard := false; ; {
			sent, err := c.Next(0)
			var m struct{ Type string }
			if err != nil || json.Unmarshal(sent.Data, &m) != nil {
				return
			}
			switch m.Type {
			case "session.update":
				say(`{"type":"session.updated"}`)
			case "input_audio_buffer.append":
				if !heard {
					say(`{"type":"input_audio_buffer.committed","item_id":"1"}`)
				}
				heard = true
			case "input_audio_buffer.commit":
				say(`{"type":"error","error":{"type":"invalid_request_error","code":"input_audio_buffer_commit_empty","message":"buffer too small"}}`)
				say(`{"type":"conversation.item.input_audio_transcription.completed","item_id":"1","transcript":"hello","usage":"none"}`)
			}
		}
	})
	v, _ := VendorOf("openai")
	a, err := v.kind().ASR(service.Section{Name: "o", Key: "k", BaseURL: s.URL() + "/v1", Settings: map[string]any{"mode": "realtime"}})
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
