package servicetest

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// Events are the answer of a service that streams: each is sent by itself.
type Events struct {
	Type   string   // of the content; "text/event-stream" if it is empty
	List   [][]byte // with their ends
	Pause  time.Duration
	Stop   <-chan struct{} // when it is closed nothing more is sent but Last; nil: never
	Last   [][]byte        // sent after List, or after a stop
	Broken []byte          // sent instead by a server that is Broken
	Filler []byte          // sent again and again after the first by one that is Huge
}

// More is a piece of text for fillers: so long that an answer without end is soon too long.
var More = strings.Repeat("more ", 2000)

// Event is a server-sent event of this data; name may be empty.
func Event(name, data string) []byte {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: " + data + "\n\n")
	return b.Bytes()
}

// Stream sends events as the fault of the server has it. It reports whether all, or all
// until a stop, were sent: if not, the client is gone, or the fault wants it so.
func (s *Server) Stream(w http.ResponseWriter, r *http.Request, f Fault, e Events) bool {
	switch f {
	case Silent:
		s.Wait(r.Context(), time.Hour)
		return false
	case Slow:
		if !s.pause(r.Context().Done()) {
			return false
		}
	case Odd:
		e.odd()
	case Broken:
		e.List, e.Last = [][]byte{e.Broken}, nil
	default:
	}
	w.Header().Set("Content-Type", e.Type)
	if e.Type == "" {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	for i, event := range e.List {
		if i > 0 && !s.between(w, r, f, e) {
			return false
		}
		if stopped(e.Stop) {
			break
		}
		if !send(w, event) {
			return false
		}
	}
	for _, event := range e.Last {
		if !send(w, event) {
			return false
		}
	}
	return true
}

// between waits, or does what the fault wants after the first event. False: that was all.
func (s *Server) between(w http.ResponseWriter, r *http.Request, f Fault, e Events) bool {
	switch f {
	case Cut:
		DropRequest(w)
	case Closed:
		return false
	case Huge:
		s.flood(w, r, e.Filler)
		return false
	default:
	}
	if e.Pause <= 0 {
		return true
	}
	timer := time.NewTimer(e.Pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.Stop:
	case <-r.Context().Done():
		return false
	case <-s.ctx.Done():
		return false
	}
	return true
}

// odd cuts the events at odd bytes, and ends lines in the other way.
func (e *Events) odd() {
	var list [][]byte
	for _, event := range e.List {
		list = append(list, Pieces(bytes.ReplaceAll(event, []byte("\n"), []byte("\r\n")), 7)...)
	}
	e.List = list
}

func stopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// send sends an event at once. It reports whether the client is there.
func send(w http.ResponseWriter, event []byte) bool {
	_, err := w.Write(event)
	return err == nil && http.NewResponseController(w).Flush() == nil
}
