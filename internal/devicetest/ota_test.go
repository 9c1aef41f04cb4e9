package devicetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const goodReply = `{"server_time":{"timestamp":1795224000000,"timezone_offset":480},"firmware":{"version":"2.4.2","url":""},
	"websocket":{"url":"ws://192.168.1.10:8000/xiaozhi/v1/","token":"dvc_5f","version":1}}`

// A good reply is read whole, and the request is what the firmware sends.
func TestProvision(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req struct {
			MAC  string `json:"mac_address"`
			Heap string `json:"minimum_free_heap_size"`
		}
		if err := json.Unmarshal(body, &req); err != nil || req.MAC != "aa:bb" || req.Heap == "" {
			t.Errorf("body %s: %v", body, err)
		}
		if r.Method != http.MethodPost || !r.Close || r.ContentLength != int64(len(body)) || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("%s, close %v, length %d, %v", r.Method, r.Close, r.ContentLength, r.Header)
		}
		for _, h := range []string{"Activation-Version", "Device-Id", "Client-Id", "User-Agent", "Accept-Language", "Content-Type"} {
			if r.Header.Get(h) == "" {
				t.Errorf("no %s", h)
			}
		}
		io.WriteString(w, goodReply)
	}))
	defer server.Close()
	p, err := Provision(t.Context(), server.URL+"/xiaozhi/ota/", Options{DeviceID: "aa:bb"})
	if err != nil || len(p.Violations) != 0 {
		t.Fatalf("%v, violations %v", err, p.Violations)
	}
	if p.URL != "ws://192.168.1.10:8000/xiaozhi/v1/" || p.Token != "dvc_5f" || p.Protocol != 1 || p.Firmware != "2.4.2" ||
		p.Zone != 8*time.Hour || p.Time.Year() != 2026 || p.Code != "" {
		t.Errorf("%+v", p)
	}
}

// Each way to break a device at its boot is seen.
func TestProvisionRefuses(t *testing.T) {
	ws := `"websocket":{"url":"ws://h:1/x","token":"","version":1}`
	now := `"server_time":{"timestamp":1795224000000},`
	body := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(s)))
			io.WriteString(w, s)
		}
	}
	tests := []struct {
		name   string
		serve  http.HandlerFunc
		fatal  bool
		detail string // of the error or the violation
	}{
		{"404", http.NotFound, true, "404"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, true, "307"},
		{"201", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) }, true, "201"},
		{"not JSON", body(`<html>`), true, "JSON"},
		{"an array", body(`[]`), true, "JSON"},
		{"empty mqtt", body(`{"mqtt":{},` + now + ws + `}`), true, "mqtt"},
		{"no websocket", body(`{}`), true, "no websocket"},
		{"IPv6", body(`{` + now + `"websocket":{"url":"ws://[::1]:8000/"}}`), true, "IPv6"},
		{"http url", body(`{` + now + `"websocket":{"url":"http://h/"}}`), true, "ws://"},
		{"version v2", body(`{"firmware":{"version":"v2.5","url":""},` + now + ws + `}`), true, "dotted numbers"},
		{"long key", body(`{` + now + `"websocket":{"url":"ws://h:1/x","reconnect_interval":1}}`), true, "15 bytes"},
		{"long token", body(`{` + now + `"websocket":{"url":"ws://h:1/x","token":"` + strings.Repeat("a", 4000) + `"}}`), true, "boot loop"},
		{"token of a number", body(`{` + now + `"websocket":{"url":"ws://h:1/x","token":1}}`), true, "token"},
		{"extra key", body(`{` + now + `"websocket":{"url":"ws://h:1/x","extra":1}}`), false, "extra"},
		{"framing 4", body(`{` + now + `"websocket":{"url":"ws://h:1/x","version":4}}`), false, "version 4"},
		{"no time", body(`{` + ws + `}`), false, "server_time"},
		{"time as text", body(`{"server_time":{"timestamp":"now"},` + ws + `}`), false, "server_time"},
		{"code alone", body(`{"activation":{"code":"123"},` + now + ws + `}`), false, "challenge"},
		{"relative firmware url", body(`{"firmware":{"version":"1.0","url":"/f.bin"},` + now + ws + `}`), false, "absolute"},
		{"force", body(`{"firmware":{"version":"1.0","url":"","force":1},` + now + ws + `}`), false, "force"},
		{"too long", body(`{"pad":"` + strings.Repeat("a", 8192) + `",` + now + ws + `}`), false, "8192"},
		{"chunked", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			io.WriteString(w, goodReply)
		}, false, "chunked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.serve)
			defer server.Close()
			p, err := Provision(t.Context(), server.URL, Options{})
			if tt.fatal {
				if err == nil || !strings.Contains(err.Error(), tt.detail) {
					t.Errorf("error %v, want %s in it", err, tt.detail)
				}
				return
			}
			if err != nil || len(p.Violations) != 1 || !strings.Contains(p.Violations[0].String(), tt.detail) {
				t.Errorf("error %v, violations %v, want one with %s", err, p.Violations, tt.detail)
			}
		})
	}
	if _, err := Provision(t.Context(), "http://a", Options{}); err == nil {
		t.Error("an address of 8 characters was taken")
	}
}
