package external

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external/library"
	"xiaozhi/mcp/external/oauth"
)

// Phase says how far the connection to a server is.
type Phase string

// The phases.
const (
	Resting    Phase = "resting" // not started, or ended for good
	Connecting Phase = "connecting"
	Connected  Phase = "connected" // and its list of tools was read
	Waiting    Phase = "waiting"   // until the next try
	LeftOut    Phase = "left-out"  // its entry cannot be used
)

// Trouble says in what way a server failed.
type Trouble string

// The troubles. "" means none.
const (
	Unreachable Trouble = "unreachable" // nothing answers at its address, or its program does not start
	Unanswered  Trouble = "unanswered"  // it was reached, and has not answered the handshake in time
	Exited      Trouble = "exited"      // its program has ended
	Login       Trouble = "login"       // somebody must log in first
	Failed      Trouble = "failed"      // anything else, as its error says
)

// Where the entry of a server stands.
const (
	InSettings = "settings"
	InFile     = "file"
	DialledIn  = "endpoint" // nowhere: it came by itself
)

// Status tells how a server is, without secrets.
type Status struct {
	Name      string
	From      string // InSettings, InFile or DialledIn
	Transport Transport
	Where     string // its program or its address
	Device    string // whose alone its tools are; "": of all
	Phase     Phase
	Since     time.Time // of the phase
	About     string    // what it calls itself, and its version
	Tools     int       // that it offers here
	Listed    int       // that it has; some may be hidden by its entry
	Restarts  int       // tries to connect after the first
	Trouble   Trouble   // of the last failure
	Error     string    // the last failure in words
	Failed    time.Time // when that was
	Lines     []string  // the last that its program wrote to its standard error
	Resources int       // with templates of resources
	Prompts   int
	LoggedIn  bool // by OAuth
	MoreAsked bool // it wants a login, for the first time or for more rights
}

// maxLines is how many lines of a program's standard error are kept.
const maxLines = 20

// condition keeps how a server is. Its methods may be called at the same time.
type condition struct {
	changed func() // told of each change; nil: nobody is

	mu      sync.Mutex
	now     Status
	settled chan struct{} // closed when a try has ended; nil: nobody waits
}

// change lets f alter the status, and tells of it.
func (c *condition) change(f func(now *Status)) {
	c.mu.Lock()
	f(&c.now)
	c.mu.Unlock()
	if c.changed != nil {
		c.changed()
	}
}

// enter begins a phase.
func (c *condition) enter(p Phase) {
	c.change(func(now *Status) {
		if p == Connecting && !now.Since.IsZero() {
			now.Restarts++
		}
		if now.Phase, now.Since = p, time.Now(); p != Connected {
			now.Tools, now.Listed, now.Resources, now.Prompts = 0, 0, 0, 0
		}
	})
}

// fail notes why a try or a connection has ended. what has no secrets.
func (c *condition) fail(err error, what string) {
	c.change(func(now *Status) { now.Trouble, now.Error, now.Failed = troubleOf(err), what, time.Now() })
}

// listed notes the tools of a connection, and what there is beside them.
func (c *condition) listed(about string, offered, all int, share *library.Library) {
	c.change(func(now *Status) {
		if now.Phase != Connected {
			now.Phase, now.Since = Connected, time.Now()
		}
		now.About, now.Tools, now.Listed = about, offered, all
		now.Resources, now.Prompts = share.Len()
	})
	c.settle()
}

// wrote keeps a line of the program.
func (c *condition) wrote(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.now.Lines) == maxLines {
		c.now.Lines = slices.Delete(c.now.Lines, 0, 1)
	}
	c.now.Lines = append(c.now.Lines, line)
}

// settle wakes who waits for the end of a try.
func (c *condition) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled != nil {
		close(c.settled)
		c.settled = nil
	}
}

// next returns a channel that is closed when a try has ended.
func (c *condition) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled == nil {
		c.settled = make(chan struct{})
	}
	return c.settled
}

func (c *condition) status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now
	now.Lines = slices.Clone(now.Lines)
	return now
}

// errExited says that the program of a server has ended.
var errExited = errors.New("the program ended")

// troubleOf tells the ways of failing apart. One that says most of the cause goes first.
func troubleOf(err error) Trouble {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, oauth.ErrWanted):
		return Login
	case errors.Is(err, errExited):
		return Exited
	case errors.Is(err, errNoHandshake):
		return Unanswered
	case errors.Is(err, errUnopened):
		return Unreachable
	}
	return Failed
}

// Status tells how the server is.
func (s *Server) Status() Status {
	now := s.condition.status()
	now.Name, now.Transport, now.Where = s.name, s.config.Transport, s.config.Command
	if s.config.Transport != Stdio {
		now.Where = PublicURL(s.config.URL)
	}
	if s.login != nil {
		now.LoggedIn, now.MoreAsked = s.login.State()
	}
	return now
}

// Test asks a connected server for its tools, or tries once to connect, and returns how long that took and how many
// tools there are. The error has no secrets.
func (s *Server) Test(ctx context.Context) (took time.Duration, tools int, err error) {
	began := time.Now()
	if live := s.calls.present(); live != nil {
		listed, _, err := live.list(ctx)
		if err != nil {
			err = errors.New(s.mask.err(err))
		}
		return time.Since(began), len(listed), err
	}
	ended := s.condition.next()
	switch s.condition.status().Phase { //nolint:exhaustive // one that connects is waited for
	case Resting:
		return 0, 0, fmt.Errorf("test mcp server %s: %w", s.name, mcp.ErrClosed)
	case Waiting:
		wake(s.redial)
	}
	select {
	case <-ended:
	case <-ctx.Done():
		return time.Since(began), 0, context.Cause(ctx)
	}
	now := s.condition.status()
	if now.Phase != Connected {
		return time.Since(began), 0, errors.New(now.Error)
	}
	return time.Since(began), now.Listed, nil
}

// Statuses tells of all servers by name, those that have dialled in after them, and those whose entry cannot be used
// last.
func (set *Set) Statuses() []Status {
	var all []Status
	for _, s := range set.list(nil) {
		now := s.Status()
		now.From = set.origin(s)
		all = append(all, now)
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	for i := range all {
		if p := set.peers[all[i].Name]; p != nil && all[i].From == DialledIn {
			all[i].Device = p.device
		}
	}
	return append(all, set.leftOut...)
}

func (set *Set) origin(s *Server) string {
	if s.once {
		return DialledIn
	}
	if _, ours := set.options.Servers[s.name]; ours {
		return InSettings
	}
	return InFile
}

// Server returns one of the servers, or nil.
func (set *Set) Server(name string) *Server {
	for _, s := range set.list(nil) {
		if s.name == name {
			return s
		}
	}
	return nil
}

// Follow has follow called whenever a server or its tools change. It must not wait, and is set before Start.
func (set *Set) Follow(follow func()) { set.follow = follow }

// changed tells who follows.
func (set *Set) changed() {
	if set.follow != nil {
		set.follow()
	}
}

// unusable notes what of the file cannot be used.
func (set *Set) unusable(problems map[string]error, whole error) {
	var all []Status
	add := func(name string, err error) {
		all = append(all, Status{Name: name, From: InFile, Phase: LeftOut, Trouble: Failed, Error: text.Cut(err.Error(), maxErrorText)})
	}
	for name, err := range problems {
		add(name, err)
	}
	if whole != nil {
		add(set.options.File, whole)
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	set.mu.Lock()
	set.leftOut = all
	set.mu.Unlock()
	set.changed()
}
