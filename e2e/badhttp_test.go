package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
)

// TestBadHTTP knocks at the doors in wrong ways.
func TestBadHTTP(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	const token = "dvc-right-secret-token"
	s := start(t, setup{env: []string{"XIAOZHI_AUTH__ENABLED=true", "XIAOZHI_AUTH__TOKEN=" + token}})
	const device = "Device-Id: 24:6f:28:bb:02:01"
	for name, c := range map[string]struct {
		path    string
		headers []string
		want    int
	}{
		"wrong token":      {"/xiaozhi/v1/", []string{device, "Authorization: Bearer dvc-wrong-token"}, 401},
		"no token":         {"/xiaozhi/v1/", []string{device}, 401},
		"half a token":     {"/xiaozhi/v1/", []string{device, "Authorization: Bearer dvc-right-secret"}, 401},
		"wrong in query":   {"/xiaozhi/v1/?device-id=x&authorization=Bearer%20dvc-wrong-token", nil, 401},
		"right token":      {"/xiaozhi/v1/", []string{device, "Authorization: Bearer " + token}, 101},
		"without slash":    {"/xiaozhi/v1", []string{device, "Authorization: bearer " + token}, 101},
		"in the query":     {"/xiaozhi/v1/?Device_ID=q&token=" + token, nil, 101},
		"no id":            {"/xiaozhi/v1/", []string{"Authorization: Bearer " + token}, 101}, // a registration may name it
		"no id, no token":  {"/xiaozhi/v1/", nil, 401},
		"long id":          {"/xiaozhi/v1/", []string{"Device-Id: " + strings.Repeat("a", 200), "Authorization: Bearer " + token}, 400},
		"endless header":   {"/xiaozhi/v1/", []string{device, "X-Long: " + strings.Repeat("a", 64<<10), "Authorization: Bearer " + token}, 431},
		"odd id":           {"/xiaozhi/v1/", []string{"Device-Id: a\xffb", "Authorization: Bearer " + token}, 400},
		"unknown path":     {"/xiaozhi/v2/", []string{device, "Authorization: Bearer " + token}, 404},
		"path below":       {"/xiaozhi/v1/more", []string{device, "Authorization: Bearer " + token}, 404},
		"websocket to ota": {"/xiaozhi/ota/", []string{device}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			if got := dialTCP(t, s).upgrade(c.path, c.headers...); got != c.want {
				t.Errorf("%s: %d, want %d", c.path, got, c.want)
			}
		})
	}
	s.awaitLog(ctx, t, "device_id=24:6f:28:bb:02:01", "wrong token")
	s.awaitLog(ctx, t, "device_id=24:6f:28:bb:02:01", "no token")
	if log := s.log.String(); strings.Contains(log, "dvc-") {
		t.Error("a token is in the log")
	}
	badOTA(ctx, t, s)
	badBytes(t, s)
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true})
	if r := ask(ctx, t, d, "what time is it"); r.Frames == 0 {
		t.Error("no answer after all that")
	}
}

// badOTA sends provisioning requests that are wrong in method and body.
func badOTA(ctx context.Context, t *testing.T, s *server) {
	t.Helper()
	huge := bytes.NewReader(bytes.Repeat([]byte("x"), 8<<20))
	for _, c := range []struct {
		method string
		body   io.Reader
		want   int
	}{
		{http.MethodPut, nil, 405},
		{http.MethodDelete, nil, 405},
		{"BREW", nil, 405},
		{http.MethodPost, nil, 200},
		{http.MethodPost, strings.NewReader("no json"), 200},
		{http.MethodPost, strings.NewReader(`{"board":{"ssid":"my"net","type":7},"application":[]}`), 200},
		{http.MethodPost, strings.NewReader(strings.Repeat("[", 60_000)), 200},
		{http.MethodPost, huge, 200},
	} {
		req, err := http.NewRequestWithContext(ctx, c.method, s.ota, c.body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Device-Id", "24:6f:28:bb:02:02")
		resp, err := http.DefaultClient.Do(req)
		if err != nil && c.body == huge {
			continue // the server may hang up on what it does not want to read
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.method, s.ota, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.want || resp.ContentLength != int64(len(body)) || len(body) > 4096 {
			t.Errorf("%s %s: %d, want %d; Content-Length %d of %d bytes", c.method, s.ota, resp.StatusCode, c.want, resp.ContentLength, len(body))
		}
		if c.want == 200 && !json.Valid(body) {
			t.Errorf("answer %q", body)
		}
	}
}

// badBytes sends what is no HTTP at all.
func badBytes(t *testing.T, s *server) {
	t.Helper()
	for name, b := range map[string]string{
		"noise": string(noise(3000)) + "\r\n\r\n", "no version": "GET /\r\n\r\n", "huge header": "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
		"two lengths": "POST /xiaozhi/ota/ HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
		"bad chunk":   "POST /xiaozhi/ota/ HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
	} {
		r := dialTCP(t, s)
		r.bytes([]byte(b))
		_ = r.conn.(*net.TCPConn).CloseWrite()
		r.patience(15 * time.Second)
		if _, err := io.Copy(io.Discard, r.in); isTimeout(err) {
			t.Errorf("%s: the server neither answered nor hung up", name)
		}
		r.conn.Close()
	}
}
