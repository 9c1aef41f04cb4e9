package app

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A body that is announced and never comes holds nothing for long, whoever it is
// sent to.
func TestBodyTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := pipes{make(chan net.Conn), make(chan struct{})}
		s := &App{}
		web := &http.Server{Handler: s.beforeMux(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })), ReadHeaderTimeout: time.Second}
		served := make(chan error, 1)
		go func() { served <- web.Serve(ln) }()
		near, far := net.Pipe()
		ln.come <- far
		began := time.Now()
		if _, err := io.WriteString(near, "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(near)
		if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 204 ")) || time.Since(began) > bodyTime {
			t.Errorf("%q after %v, %v", answer, time.Since(began), err)
		}
		near.Close()
		web.Close()
		<-served
	})
}
