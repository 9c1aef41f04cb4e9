package doctor

import (
	"crypto/rand"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// PhonePath is below which a phone opens the link that proves that it reaches the server.
const PhonePath = "/console/phone/"

// Limits of links.
const (
	maxLinks = 16 // the oldest makes room
	linkLife = 15 * time.Minute
)

// Links are pages that a phone opens once, without logging in: that proves that it reaches the server, and that no
// firewall stands in between. Its methods may be called at the same time.
type Links struct {
	now    func() time.Time
	opened func() // somebody has opened one; must not wait

	mu    sync.Mutex
	links []*link // the newest last
}

type link struct {
	code  string
	ends  time.Time
	quiet bool // it is one of the doctor's own
	seen  *Opening
}

// Link is a page that waits to be opened.
type Link struct {
	Path   string    `json:"path"`
	Ends   time.Time `json:"ends"`
	Opened *Opening  `json:"opened,omitempty"` // nil: not yet
}

// Opening says who has opened a page.
type Opening struct {
	At      time.Time `json:"at"`
	From    string    `json:"from"`
	Browser string    `json:"browser,omitempty"`
	Here    bool      `json:"here"` // it was this machine, which proves nothing
}

// NewLinks makes none yet. opened is called, if it is not nil, when somebody has opened one.
func NewLinks(now func() time.Time, opened func()) *Links {
	return &Links{now: now, opened: opened}
}

// New makes a page that can be opened once.
func (l *Links) New() Link { return l.add(false) }

// Knock makes a page for a program, and what tells whether it was opened.
func (l *Links) Knock() (path string, came func() bool) {
	made := l.add(true)
	return made.Path, func() bool {
		now, ok := l.Get(strings.TrimPrefix(made.Path, PhonePath))
		return ok && now.Opened != nil
	}
}

// Mark makes the path of a page that marks what the server asks itself.
func (l *Links) Mark() string { return l.add(true).Path }

func (l *Links) add(quiet bool) Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := &link{code: strings.ToLower(rand.Text()[:12]), ends: l.now().Add(linkLife), quiet: quiet}
	l.links = append(l.links, made)
	if over := len(l.links) - maxLinks; over > 0 {
		l.links = slices.Delete(l.links, 0, over)
	}
	return made.shown()
}

func (l *link) shown() Link { return Link{PhonePath + l.code, l.ends, l.seen} }

// Get returns the page of a code. Not ok: there is none, or it is over.
func (l *Links) Get(code string) (Link, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.find(code); at != nil {
		return at.shown(), true
	}
	return Link{}, false
}

// Last returns the newest page that was made for a phone. Not ok: there is none.
func (l *Links) Last() (Link, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range slices.Backward(l.links) {
		if !at.quiet && l.now().Before(at.ends) {
			return at.shown(), true
		}
	}
	return Link{}, false
}

// find returns the page of a code that is not over. The caller holds mu.
func (l *Links) find(code string) *link {
	i := slices.IndexFunc(l.links, func(at *link) bool { return at.code == code && l.now().Before(at.ends) })
	if i < 0 {
		return nil
	}
	return l.links[i]
}

// maxBrowser is how much is kept of what a browser says of itself, in bytes.
const maxBrowser = 120

// Open notes that somebody opens a page; the first counts, but this machine before anybody else. Not ok: there is none.
func (l *Links) Open(code string, from netip.Addr, browser string) (ok bool) {
	l.mu.Lock()
	at := l.find(code)
	news := at != nil && (at.seen == nil || at.seen.Here && !from.IsLoopback())
	if news {
		at.seen = &Opening{l.now(), from.String(), head(browser, maxBrowser), from.IsLoopback()}
		news = !at.quiet
	}
	l.mu.Unlock()
	if news && l.opened != nil {
		l.opened()
	}
	return at != nil
}
