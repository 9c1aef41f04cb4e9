package servicetest

import (
	"bytes"
	"context"
	"net/http"
	"time"
)

// Wait waits for a time. It reports false if the client or the server ended before.
func (s *Server) Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return false
}

// Reply is the answer to a plain request that succeeds, with all that can go wrong on
// its way. The zero values of its fields but Body are useful.
type Reply struct {
	Status int    // 200 if it is 0
	Type   string // of the content
	Body   []byte
	Piece  int           // bytes that are sent at once; 0 sends it whole
	Pause  time.Duration // between pieces
	Broken []byte        // what is sent instead of Body by a server that is Broken
	Filler []byte        // what is sent again and again after the first piece by one that is Huge
}

// Send sends the reply as the fault of the server has it.
func (s *Server) Send(w http.ResponseWriter, r *http.Request, f Fault, reply Reply) {
	if f == Silent {
		s.Wait(r.Context(), time.Hour)
		return
	}
	if f == Slow && !s.pause(r.Context().Done()) {
		return
	}
	if reply.Type != "" {
		w.Header().Set("Content-Type", reply.Type)
	}
	if f == Broken {
		reply.Body = reply.Broken
	}
	if f == Odd {
		reply.Piece = 7
	}
	w.WriteHeader(max(reply.Status, http.StatusOK))
	if reply.Piece == 0 && (f == Cut || f == Closed || f == Huge) {
		reply.Piece = (len(reply.Body) + 1) / 2
	}
	if reply.Piece == 0 {
		reply.Piece = max(len(reply.Body), 1)
	}
	s.pieces(w, r, f, reply)
}

// pieces sends the body in pieces, and ends it too early, too late or never if it must.
func (s *Server) pieces(w http.ResponseWriter, r *http.Request, f Fault, reply Reply) {
	flush := http.NewResponseController(w).Flush
	for body, n := reply.Body, reply.Piece; len(body) > 0; {
		n = min(n, len(body))
		if _, err := w.Write(body[:n]); err != nil || flush() != nil {
			return
		}
		body = body[n:]
		switch f {
		case Cut:
			DropRequest(w)
		case Closed:
			return
		case Huge:
			s.flood(w, r, reply.Filler)
			return
		case Odd:
			n = min(2*n+1, 4095)
		default:
		}
		if reply.Pause > 0 && !s.Wait(r.Context(), reply.Pause) {
			return
		}
	}
}

// flood writes the filler until the client has enough.
func (s *Server) flood(w http.ResponseWriter, r *http.Request, filler []byte) {
	if len(filler) == 0 {
		filler = []byte("a")
	}
	block := bytes.Repeat(filler, max(1, 64<<10/len(filler)))
	for sent := 0; sent < endless && r.Context().Err() == nil && s.ctx.Err() == nil; sent += len(block) {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}
