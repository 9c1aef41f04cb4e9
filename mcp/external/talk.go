//lint:file-ignore SA1019 servers still send messages for a log

package external

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
)

const (
	maxLogLine = 1 << 10          // bytes of one line of a program's standard error; the rest is cut
	logBurst   = 30               // lines that are logged …
	logWindow  = 10 * time.Second // … in such a time; the others are counted
)

// logLimiter lets so many events through in a time and counts the others. Its
// method may be called at the same time.
type logLimiter struct {
	mu     sync.Mutex
	began  time.Time
	passed int
	held   int
}

// pass reports whether an event goes through. held is how many did not in the
// time that has just ended.
func (d *logLimiter) pass(now time.Time) (ok bool, held int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.began) >= logWindow {
		held, d.held = d.held, 0
		d.began, d.passed = now, 0
	}
	if d.passed == logBurst {
		d.held++
		return false, held
	}
	d.passed++
	return true, held
}

// copyLog logs what a program writes to its standard error until it ends.
func copyLog(r io.Reader, log *slog.Logger, m mask) {
	lines := bufio.NewReaderSize(r, maxLogLine)
	var d logLimiter
	for {
		line, err := lines.ReadSlice('\n')
		text := strings.TrimSpace(strings.ToValidUTF8(string(line), "?"))
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = lines.ReadSlice('\n')
		}
		if text != "" {
			ok, held := d.pass(time.Now())
			if held > 0 {
				log.Info("mcp server wrote more to stderr", "lines_left_out", held)
			}
			if ok {
				log.Info("mcp server stderr", "line", m.text(text))
			}
		}
		if err != nil {
			if d.held > 0 {
				log.Info("mcp server wrote more to stderr", "lines_left_out", d.held)
			}
			return
		}
	}
}

// note logs what a server sends for its log, as copyLog does for a program.
func (s *Server) note(m *sdk.LoggingMessageParams) { //nolint:staticcheck // see above
	if m == nil {
		return
	}
	ok, held := s.messages.pass(time.Now())
	if !ok {
		return
	}
	data, err := json.Marshal(m.Data)
	if err != nil {
		data = []byte(err.Error())
	}
	s.log.Info("mcp server says", "level", string(m.Level), "data", s.mask.text(text.Cut(string(data), maxLogLine)), "left_out", held)
}
