package devicetest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// waiting is a server that accepts a device at its n-th question, OTA or /activate.
type waiting struct {
	after  int
	asked  []string
	status int // of the first polls, in place of 202
}

func (s *waiting) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	s.asked = append(s.asked, r.URL.Path+" "+shorten(body))
	w := httptest.NewRecorder()
	reply := strings.TrimSuffix(goodReply, "}")
	switch accepted := len(s.asked) >= s.after; {
	case strings.HasSuffix(r.URL.Path, "/activate") && accepted:
		w.WriteHeader(200)
	case strings.HasSuffix(r.URL.Path, "/activate"):
		w.WriteHeader(max(s.status, 202))
	case accepted:
		w.Header().Set("Content-Length", fmt.Sprint(len(reply)+1))
		io.WriteString(w, reply+"}")
	default:
		reply += `,"activation":{"code":"482913","message":"m","challenge":"c"}}`
		w.Header().Set("Content-Length", fmt.Sprint(len(reply)))
		io.WriteString(w, reply)
	}
	answer := w.Result()
	answer.ContentLength = int64(w.Body.Len())
	return answer, nil
}

// TestBootWaits: each client asks as often as it does, and starts once a reply says no more that it must wait.
func TestBootWaits(t *testing.T) {
	for _, tc := range []struct {
		name    string
		o       Options
		after   int // questions until it is accepted
		codes   int
		took    time.Duration
		polls   string
		refused int
	}{
		{"firmware, accepted at the third poll", Options{}, 4, 1, 6 * time.Second, "/ota/activate {}", 0},
		{"firmware, accepted in the second round", Options{}, 14, 2, 33 * time.Second, "/ota/activate {}", 0},
		{"firmware, and an error", Options{}, 4, 1, 20 * time.Second, "/ota/activate {}", 500},
		{"firmware, its button pressed", Options{Waiting: PollsOnce}, 5, 2, 6 * time.Second, "/ota/activate {}", 0},
		{"firmware before 1.6", Options{Waiting: Reposts60}, 3, 2, 2 * time.Minute, "", 0},
		{"desktop", Options{Waiting: PollsPy, Profile: PyXiaozhi}, 4, 1, 10 * time.Second, `/ota/activate {"Payload":`, 0},
		{"page", Options{Waiting: Ignores, Profile: Browser}, 4, 1, 0, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &waiting{after: tc.after, status: tc.refused}
				tc.o.HTTPClient = &http.Client{Transport: s}
				began, codes := time.Now(), 0
				p, err := Boot(t.Context(), "http://192.0.2.1/ota/", tc.o, func(string) { codes++ })
				if err != nil || (p.Code != "") != (tc.o.Waiting == Ignores) {
					t.Fatalf("%+v, %v", p, err)
				}
				if codes != tc.codes || time.Since(began) != tc.took {
					t.Errorf("%d codes, %v; asked %q", codes, time.Since(began), s.asked)
				}
				if tc.polls != "" && !strings.HasPrefix(s.asked[1], tc.polls) {
					t.Errorf("polls: %q", s.asked[1])
				}
			})
		})
	}
}

// A token that is left out stays as it was, as every member does.
func TestFlashKeepsToken(t *testing.T) {
	replies := []string{`"token":"one",`, ``, `"token":"",`, ``}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		body := `{"server_time":{"timestamp":1795224000000},"websocket":{"url":"ws://h:1/x",` + replies[0] + `"version":1}}`
		replies = replies[1:]
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		io.WriteString(w, body)
	}))
	defer server.Close()
	flash := &Flash{}
	for _, want := range []string{"one", "one", "", ""} {
		if p, err := Provision(t.Context(), server.URL+"/ota/", Options{Flash: flash}); err != nil || p.Token != want {
			t.Errorf("%q, want %q, %v", p.Token, want, err)
		}
	}
}
