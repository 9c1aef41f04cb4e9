package provision

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/connection/identity"
)

// doored is an OTA server with a book and a log.
func doored(t *testing.T, mode identity.Mode) (http.Handler, *identity.Book, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	book, err := identity.New(t.Context(), identity.Options{Records: identity.NewMemory(), Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	_, h := otaServer(t, func(o *Options) { o.Book, o.Log = book, slog.New(slog.NewTextHandler(&log, nil)) })
	return h, book, &log
}

// ask posts a request and fails the test if it is not answered as firmware needs it.
func ask(t *testing.T, h http.Handler, remote, device, client string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://192.168.1.10:8000/xiaozhi/ota/", strings.NewReader(firmwareBody))
	r.RemoteAddr = remote
	r.Header = http.Header{"Device-Id": {device}, "Client-Id": {client}, "User-Agent": {"bread-compact-wifi/2.4.1"}}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body := w.Body.String()
	if w.Code != 200 || !strings.Contains(body, `"url":"ws://192.168.1.10:8000/xiaozhi/v1/"`) {
		t.Fatalf("%s: %d %s", device, w.Code, body)
	}
	return body
}

func mac(n int) string { return fmt.Sprintf("02:00:00:00:%02x:%02x", n>>8, n&0xff) }

// TestOTAFloodOfADevice: a pair that asks all the time is answered, but gets no token;
// a minute later it does again. Whoever lacks its Client-Id spends nothing of it.
func TestOTAFloodOfADevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := doored(t, identity.Open)
		ask(t, h, "192.168.1.50:1", mac(1), "own")
		for range 1000 {
			ask(t, h, "192.168.1.66:1", mac(1), "of another")
		}
		for n := range 2 * perDevice {
			if got, want := strings.Contains(ask(t, h, "192.168.1.66:1", mac(1), "own"), `"token"`), n < perDevice-1; got != want {
				t.Fatalf("request %d has a token: %v", n, got)
			}
		}
		time.Sleep(time.Minute)
		if !strings.Contains(ask(t, h, "192.168.1.50:1", mac(1), "own"), `"token"`) {
			t.Error("no token after a minute")
		}
	})
}

// TestOTAFloodOfAnAddress: who asks for ever new devices gets no more codes and fills
// no records; a known device behind the same address notices nothing, nor do others.
func TestOTAFloodOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, book, log := doored(t, identity.Open)
		ask(t, h, "192.168.1.50:1", mac(0xffff), "own")
		for n := range 1000 {
			ask(t, h, fmt.Sprintf("192.168.1.50:%d", n+1), mac(n), "x")
		}
		if n := len(book.List()); n != perAddress {
			t.Errorf("%d records", n)
		}
		if !strings.Contains(ask(t, h, "192.168.1.50:1", mac(0xffff), "own"), `"token"`) {
			t.Error("the known device gets no token")
		}
		if !strings.Contains(ask(t, h, "192.168.1.51:1", mac(0xfffe), "x"), `"token"`) {
			t.Error("another address gets no token")
		}
		if n := strings.Count(log.String(), "\n"); n > 20+1 {
			t.Errorf("%d lines", n)
		}
		time.Sleep(10 * time.Second)
		ask(t, h, "192.168.1.50:1", mac(1), "y")
		if !strings.Contains(log.String(), "suppressed=9") {
			t.Errorf("the log does not say how much it lacks:\n%s", log)
		}
	})
}

// A network of IPv6 counts as one address.
func TestOTAFloodOfANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, book, _ := doored(t, identity.Open)
		for n := range 1000 {
			ask(t, h, fmt.Sprintf("[fd00::%x]:1", n), mac(n), "x")
		}
		if n := len(book.List()); n != perAddress {
			t.Errorf("%d records", n)
		}
	})
}

// TestOTALinesOfBrokenRequests: requests that name nobody do not fill the log either.
func TestOTALinesOfBrokenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, log := doored(t, identity.Ask)
		for range 1000 {
			ask(t, h, "203.0.113.7:1", "", "")
		}
		if n := strings.Count(log.String(), "\n"); n > 20 {
			t.Errorf("%d lines", n)
		}
	})
}

// TestPollFlood: whoever polls all the time is told to wait, and the code that it
// keeps alive ends all the same.
func TestPollFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, book, _ := doored(t, identity.Ask)
		poll := func(device string) int {
			r := httptest.NewRequest(http.MethodPost, "http://192.168.1.10:8000/xiaozhi/ota/activate", strings.NewReader("{}"))
			r.RemoteAddr, r.Header = "192.168.1.50:1", http.Header{"Device-Id": {device}, "Client-Id": {"own"}}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		ask(t, h, "192.168.1.50:1", mac(1), "own")
		if got := poll(mac(1)); got != http.StatusAccepted {
			t.Errorf("waiting: %d", got)
		}
		if _, err := book.Accept(t.Context(), mac(1), "owner"); err != nil {
			t.Fatal(err)
		}
		if got := poll(mac(1)); got != http.StatusOK {
			t.Errorf("accepted: %d", got)
		}
		for n := range 2 * pollsOfDevice {
			if got, want := poll(mac(1)), n < pollsOfDevice-2; (got == http.StatusOK) != want {
				t.Fatalf("poll %d: %d", n, got)
			}
		}
		for n := range 2 * pollsOfAddress {
			poll(mac(n + 2))
		}
		if got := poll(mac(0xffff)); got != http.StatusAccepted {
			t.Errorf("of a busy address: %d", got)
		}
		time.Sleep(time.Minute)
		if got := poll(mac(1)); got != http.StatusOK {
			t.Errorf("a minute later: %d", got)
		}
	})
}
