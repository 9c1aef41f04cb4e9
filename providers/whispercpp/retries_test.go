package whispercpp

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// TestRetries: a server that is overloaded is asked as often as the section says.
func TestRetries(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	two := 2
	for _, test := range []struct {
		retries *int
		want    int64
	}{{nil, 1}, {&two, 3}} {
		asked.Store(0)
		a, err := New(service.Section{Name: "home", BaseURL: server.URL, Retries: test.retries, Settings: map[string]any{}})
		if err != nil {
			t.Fatal(err)
		}
		stream, err := a.Open(t.Context(), providers.ASRRequest{Rate: 16000})
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Write(make([]int16, 16000))
		_ = stream.CloseWrite()
		for _, err = range stream.Transcripts() {
		}
		if err == nil || asked.Load() != test.want {
			t.Errorf("asked %d times, want %d (%v)", asked.Load(), test.want, err)
		}
	}
}
