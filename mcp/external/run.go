package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external/library"
	"xiaozhi/mcp/external/oauth"
)

const (
	firstPause = time.Second      // before the second try
	lastPause  = time.Minute      // between later ones
	steadyTime = 30 * time.Second // a connection that held so long starts the pauses anew
	relistRest = time.Second      // between two lists that a server asked for
)

// life owns the goroutine of something that is started once and ends for good.
// All methods may be called at the same time.
type life struct {
	mu     sync.Mutex
	cancel context.CancelFunc // nil before start
	ended  bool
	wg     sync.WaitGroup
}

// start runs run until ctx or the life ends. A second start does nothing; after
// the end it is an error that names what was to be started.
func (l *life) start(ctx context.Context, what string, run func(context.Context)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return fmt.Errorf("%s: %w", what, mcp.ErrClosed)
	}
	if l.cancel == nil {
		ctx, l.cancel = context.WithCancel(ctx)
		l.wg.Go(func() {
			defer l.end()
			run(ctx)
		})
	}
	return nil
}

// end ends the life and does not wait.
func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.cancel != nil {
		l.cancel()
	}
}

// state reports whether the life was started, and whether it has ended.
func (l *life) state() (started, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cancel != nil, l.ended
}

// run connects, serves, and connects again until ctx ends. It is the server's
// only goroutine and owns the session.
func (s *Server) run(ctx context.Context) {
	defer s.calls.end()
	defer s.condition.settle()
	defer s.condition.enter(Resting)
	for {
		began := time.Now()
		s.condition.enter(Connecting)
		err := s.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, errReset) {
			s.condition.fail(err, s.mask.err(err))
		}
		if time.Since(began) >= steadyTime || errors.Is(err, errReset) {
			s.dialling.pause.tries = 0
		}
		if s.once {
			s.log.Info("mcp tool server left", "why", s.mask.err(err))
			return
		}
		if errors.Is(err, errReset) || errors.Is(err, errStream) && time.Since(began) >= steadyTime {
			continue
		}
		s.condition.enter(Waiting)
		s.condition.settle()
		pause := s.dialling.pause.next(s.log, "mcp server is away", s.mask.err(err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		case <-s.redial:
		}
	}
}

// attempt connects once and serves until the connection ends. The error says why.
func (s *Server) attempt(ctx context.Context) error {
	live, w, err := s.dialling.connect(ctx)
	if err != nil {
		return err
	}
	about := live.InitializeResult()
	it := cmp.Or(about.ServerInfo, &sdk.Implementation{})
	s.log.Info("mcp server connected", "transport", w.transport,
		"name", text.Cut(it.Name, 100), "version", text.Cut(it.Version, 100), "protocol", about.ProtocolVersion)
	defer func() {
		if s.calls.drop() && live.line.hurry != nil {
			live.line.hurry()
		}
		live.close()
	}()
	if !s.calls.open(live) {
		return errNotConnected
	}
	live.wg.Go(func() { s.watcher.run(ctx, live) })
	return s.serve(ctx, live, strings.TrimSpace(text.Cut(it.Name, 100)+" "+text.Cut(it.Version, 100)))
}

var (
	errReset = errors.New("the connection was reset")
	errEnd   = errors.New("the connection ended")
)

// serve reads the list, again whenever it changes, until the connection ends. about is what the server calls itself.
func (s *Server) serve(ctx context.Context, live *session, about string) error {
	for {
		began := time.Now()
		listed, endless, err := live.list(ctx)
		if err != nil {
			return errors.Join(err, live.line.cause())
		}
		share, err := library.List(ctx, live)
		if err != nil {
			s.log.Warn("mcp server has more than could be read", "err", s.mask.err(err))
		}
		s.condition.listed(about, s.keep(live, listed, endless, share), len(listed), share)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-live.gone:
			return errors.Join(errEnd, live.line.cause())
		case err := <-live.line.lost:
			return err
		case <-live.silent:
			return errSilent
		case <-s.redial:
			return errReset
		case <-s.relist:
		}
		select { // a server does not have its list read all the time
		case <-ctx.Done():
			return errEnd
		case <-live.gone:
			return errEnd
		case <-time.After(relistRest - time.Since(began)):
		}
	}
}

// keep makes what a server lists its tools, and returns how many are offered.
func (s *Server) keep(live *session, listed []*sdk.Tool, endless bool, share *library.Library) (offered int) {
	tools, omitted := enlist(s.name, s.entry, s.config, listed)
	s.calls.keep(live, tools, s.reading(tools, share), share)
	s.log.Info("mcp server tools listed", "tools", len(tools), "listed", len(listed))
	if len(omitted) > 0 {
		s.log.Warn("mcp server tools left out", "count", len(omitted), "first", text.Cut(omitted[0], 200))
	}
	if endless {
		s.log.Warn("mcp server tool list does not end", "listed", len(listed))
	}
	return len(tools)
}

// reading are the tools that read what there is beside the tools, unless the server has tools of their names, or its entry
// hides them.
func (s *Server) reading(own []mcp.Tool, share *library.Library) (tools []mcp.Tool) {
	for _, t := range share.Tools(s.name) {
		if t = s.config.placed(s.name, s.entry, t); !has(own, t.Name) && s.config.offers(t) {
			tools = append(tools, t)
		}
	}
	return tools
}

// dialling owns how one server is reached: the ways to it, in the order in which
// they are tried, and the pauses between tries. It is for one goroutine.
type dialling struct {
	open  opener
	ways  []way
	pause backoff
	peer  *sdk.Client
	busy  func() bool // whether calls run
}

// connect tries the ways in their order and returns the one that works, which
// is the first to be tried next time.
func (d *dialling) connect(ctx context.Context) (*session, way, error) {
	var errs []error
	for i, w := range d.ways {
		live, err := connect(ctx, d.open, w, d.peer, d.busy)
		if err == nil {
			d.ways[0], d.ways[i] = w, d.ways[0]
			return live, w, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", w, err))
		if ctx.Err() != nil || errors.Is(err, errUnopened) || errors.Is(err, oauth.ErrWanted) {
			break
		}
	}
	return nil, way{}, errors.Join(errs...)
}

// String names a way in logs.
func (w way) String() string {
	if w.version == "" {
		return string(w.transport)
	}
	return string(w.transport) + " " + w.version
}

// backoff gives the pauses between tries: doubled each time, a fifth more or
// less so that many servers do not come back in step.
type backoff struct {
	tries int
	rand  func() float64 // 0 to 1
}

// next is the pause after one more failure. It is logged on the first, the second,
// the fourth … one: what stays away for a day must not fill the log.
func (b *backoff) next(log *slog.Logger, failure, why string) time.Duration {
	base := min(firstPause<<min(b.tries, 10), lastPause)
	b.tries++
	pause := time.Duration(float64(base) * (0.8 + 0.4*b.rand()))
	if bits.OnesCount(uint(b.tries)) == 1 {
		log.Warn(failure, "err", why, "try", b.tries, "retry_in", pause.Round(time.Millisecond))
	}
	return pause
}
