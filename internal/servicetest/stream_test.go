package servicetest

import (
	"io"
	"net/http"
	"testing"
	"time"
)

func TestStream(t *testing.T) {
	stop := make(chan struct{})
	f := &struct{ *Server }{}
	f.Server = New(t, func(w http.ResponseWriter, r *http.Request) {
		e := Events{List: [][]byte{Event("", "a"), Event("x", "b")}, Broken: []byte("broken"), Filler: []byte("more")}
		if r.URL.Path == "/stop" {
			e.Stop, e.Pause, e.Last = stop, time.Hour, [][]byte{Event("", "end")}
			time.AfterFunc(20*time.Millisecond, func() { close(stop) })
		}
		f.Stream(w, r, f.Fault(), e)
	}, Cut, Closed, Broken, Odd)
	for _, c := range []struct {
		fault Fault
		path  string
		want  string
		fails bool
	}{
		{None, "/", "data: a\n\nevent: x\ndata: b\n\n", false},
		{None, "/stop", "data: a\n\ndata: end\n\n", false},
		{Closed, "/", "data: a\n\n", false},
		{Cut, "/", "data: a\n\n", true},
		{Broken, "/", "broken", false},
		{Odd, "/", "data: a\r\n\r\nevent: x\r\ndata: b\r\n\r\n", false},
	} {
		f.Fail(c.fault)
		resp, err := http.Get(f.URL() + c.path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != c.want || (err != nil) != c.fails {
			t.Errorf("%v: %q, %v, want %q", c.fault, body, err, c.want)
		}
	}
}
