//lint:file-ignore SA1019 servers still send messages for a log

package external

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/url"
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
func (d *logLimiter) pass() (ok bool, held int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
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

// copyLog logs what a program writes to its standard error until it ends, and hands it to wrote, without secrets.
func copyLog(r io.Reader, log *slog.Logger, m mask, wrote func(line string)) {
	lines := bufio.NewReaderSize(r, maxLogLine)
	var d logLimiter
	for {
		line, err := lines.ReadSlice('\n')
		text := strings.TrimSpace(strings.ToValidUTF8(string(line), "?"))
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = lines.ReadSlice('\n')
		}
		if text != "" {
			if wrote != nil {
				wrote(m.text(text))
			}
			ok, held := d.pass()
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
	ok, held := s.messages.pass()
	if !ok {
		return
	}
	data, err := json.Marshal(m.Data)
	if err != nil {
		data = []byte(err.Error())
	}
	s.log.Info("mcp server says", "level", string(m.Level), "data", s.mask.text(text.Cut(string(data), maxLogLine)), "left_out", held)
}

// minMasked is how short a secret may be and still be hidden: hiding "1" or
// "true" would hide half of the log.
const minMasked = 6

// mask hides the secrets of a server in what is logged about it.
type mask struct{ replacer *strings.Replacer }

// newMask hides the values of headers, variables and the query of the address.
func newMask(c Config) mask {
	var pairs []string
	if public := PublicURL(c.URL); c.URL != public {
		pairs = append(pairs, c.URL, public)
	}
	hide := func(secret string) {
		if len(secret) >= minMasked {
			pairs = append(pairs, secret, "***")
		}
	}
	for _, value := range c.Headers {
		hide(value)
		_, bare, _ := strings.Cut(value, " ") // Bearer …
		hide(bare)
	}
	for _, value := range c.Env {
		hide(value)
	}
	hide(c.ClientSecret)
	if u, err := url.Parse(c.URL); err == nil {
		for pair := range strings.SplitSeq(u.RawQuery, "&") { // as written and as meant
			_, raw, _ := strings.Cut(pair, "=")
			hide(raw)
			if meant, err := url.QueryUnescape(raw); err == nil && meant != raw {
				hide(meant)
			}
		}
		password, _ := u.User.Password()
		hide(password)
	}
	return mask{strings.NewReplacer(pairs...)}
}

// text is s without secrets.
func (m mask) text(s string) string { return m.replacer.Replace(s) }

// err is the text of err without secrets, "" for nil.
func (m mask) err(err error) string {
	if err == nil {
		return ""
	}
	return text.Cut(m.text(err.Error()), maxErrorText)
}

// maxErrorText is how much of an error is logged, in bytes.
const maxErrorText = 1 << 10
