package servicetest

import (
	"io"
	"net/http"
)

// Refuse answers a request, or refuses an upgrade, with a status, headers in pairs and a
// body, by default of JSON. Its Date is by the clock of the server.
func (s *Server) Refuse(w http.ResponseWriter, status int, body string, header ...string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Date", s.Now().UTC().Format(http.TimeFormat))
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// Resume has the ear hear the second half of [Words] only, as in a session that follows
// one which the service has ended.
func (e *Ear) Resume() {
	first, _ := Halves()
	e.told = len(first)
}
