package elevenlabs

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// TestTooLittleToCommit: less than a word is no failure, but a quota that is used up is.
func TestTooLittleToCommit(t *testing.T) {
	for samples, fails := range map[int]bool{3200: false, 32000: true} {
		var s *servicetest.Server
		s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
			c, ok := s.Line(w, r, nil)
			if !ok {
				return
			}
			defer c.Close()
			_ = c.Say(servicetest.Text(`{"message_type":"session_started","session_id":"x","config":7}`))
			for {
				sent, err := c.Next(0)
				if err != nil {
					return
				}
				var m chunk
				if json.Unmarshal(sent.Data, &m) == nil && m.Commit {
					_ = c.Say(servicetest.Text(`{"message_type":"commit_throttled","error":"too little"}`))
				}
			}
		})
		a, err := NewASR(service.Section{Name: "el", Key: servicetest.Key, BaseURL: s.WS()})
		if err != nil {
			t.Fatal(err)
		}
		stream, err := a.Open(t.Context(), providers.ASRRequest{Rate: 16000})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stream.Write(make([]int16, samples)), stream.CloseWrite()); err != nil {
			t.Fatal(err)
		}
		for tr, err := range stream.Transcripts() {
			if (err != nil) != fails || tr.Text != "" {
				t.Errorf("%d samples: %+v, %v", samples, tr, err)
			}
		}
	}
}
