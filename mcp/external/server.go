//lint:file-ignore SA1019 servers still send messages for a log

// Package external reaches other people's MCP servers and offers their tools:
// programs that it runs, servers on the web, and tool servers that dial in. It
// also offers our own tools to endpoints of others. A Server is one of them, as
// an mcp.Source; a Set owns all. Only the config names programs and addresses.
package external

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/nearby"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external/oauth"
)

// ServerOptions hold the options that all servers share. The zero value works.
type ServerOptions struct {
	Version string       // ours, for clientInfo
	Environ []string     // of which programs inherit the harmless part; nil means os.Environ
	Log     *slog.Logger // nil: discarded
	Watch   Watch        // resources that somebody waits for

	// Grants keeps what servers grant by a login; nil: it lasts as long as the program. ClientURL is where this server
	// describes itself as a client to those that log it in, https; "": nowhere. Browse follows the link of a login as
	// the browser of a person would, and returns the query with which it comes back to Redirect; nil: a person does.
	Grants    oauth.Keeper
	ClientURL string
	Browse    func(ctx context.Context, link string) (url.Values, error)
	Redirect  string

	// Updated is told of resources that have changed, of those that are followed; nil: nobody is.
	Updated func(ctx context.Context, uri string)

	// Answers has our model answer servers whose entries allow it; nil: none does.
	Answers func(ctx context.Context, q Ask) (Answer, error)

	changed func()                                                               // told of each change of a server; nil: nobody is
	rand    func() float64                                                       // 0 to 1; nil means math/rand
	dial    func(ctx context.Context, network, address string) (net.Conn, error) // nil: the network
}

// Server is one external MCP server, as an mcp.Source. It owns the goroutine
// that connects in the background, again after each loss, and reads the list of
// tools; there are tools only while it is connected. All methods may be called
// at the same time.
type Server struct {
	name      string
	entry     string // of one that has dialled in: the name of its token, without a number
	config    Config
	log       *slog.Logger
	mask      mask
	dialling  dialling
	once      bool          // it cannot be reached again: the end of the connection is its end
	relist    chan struct{} // 1: read the list again
	redial    chan struct{} // 1: connect again at once
	calls     calls
	messages  logLimiter // for its log
	condition condition
	life      life
	watcher   *watcher
	login     *oauth.Login // nil: the server is asked without one
	followed  followed
	hearers   hearers
	quota     quota
	answers   func(ctx context.Context, q Ask) (Answer, error)
	told      func(ctx context.Context, uri string) // of resources that have changed; nil: nobody is
}

// NewServer makes the server of a config. It does nothing before Start.
func NewServer(name string, c Config, o ServerOptions) *Server {
	s := newServer(name, c, o)
	d := &dialer{config: c, environ: o.Environ, log: s.log, mask: s.mask, wrote: s.condition.wrote, dial: o.dial}
	if c.Careful && d.dial == nil {
		d.dial = (&net.Dialer{Timeout: dialLimit, Control: nearby.Careful}).DialContext
	}
	if c.LogsIn() {
		s.login = oauth.New(oauth.Options{
			Server: name, Address: c.URL, ClientID: c.ClientID, ClientSecret: c.ClientSecret, Scopes: c.Scopes,
			ClientURL: o.ClientURL, Keeper: o.Grants, Client: loginClient(c.URL), Log: s.log, Browse: o.Browse, Redirect: o.Redirect,
		})
		d.login = s.login
	}
	if d.environ == nil {
		d.environ = os.Environ()
	}
	s.dialling.open, s.dialling.ways = d.open, c.ways()
	if o.Browse != nil {
		for i := range s.dialling.ways { // the person in the browser is a part of the handshake
			s.dialling.ways[i].limit += browseLimit
		}
	}
	return s
}

func newServer(name string, c Config, o ServerOptions) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.rand == nil {
		o.rand = rand.Float64
	}
	s := &Server{
		name: name, config: c, log: o.Log.With("server", name), mask: newMask(c), dialling: dialling{pause: backoff{rand: o.rand}},
		relist: make(chan struct{}, 1), redial: make(chan struct{}, 1),
		calls: calls{running: make(map[uint64]context.CancelCauseFunc)}, condition: condition{changed: o.changed, now: Status{Phase: Resting}}, told: o.Updated, answers: o.Answers,
	}
	s.dialling.busy = s.calls.busy
	options := &sdk.ClientOptions{
		Logger:                 s.log,
		Capabilities:           &sdk.ClientCapabilities{},                                                  // no sampling unless its entry allows it: a server has no claim on that
		LoggingMessageHandler:  func(_ context.Context, r *sdk.LoggingMessageRequest) { s.note(r.Params) }, //nolint:staticcheck // see above
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { wake(s.relist) },

		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { s.hearers.hear(r.Params) },

		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { wake(s.relist) },
		ResourceUpdatedHandler: func(ctx context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
			if r.Params != nil {
				s.updated(ctx, r.Params.URI)
			}
		},
		PromptListChangedHandler: func(context.Context, *sdk.PromptListChangedRequest) { wake(s.relist) },
	}
	if c.Defaults {
		options.ElicitationHandler = s.answer
	} else {
		// It is not told that we answer; what it asks nevertheless is an error, and
		// it has no say in what is sent again.
		options.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
	}
	s.watcher = newWatcher(o.Watch, s)
	s.watcher.listen(options)
	if c.Sampling > 0 && o.Answers != nil {
		options.CreateMessageHandler = s.sample //nolint:staticcheck // see above
	}
	if len(c.Roots) > 0 {
		options.Capabilities.RootsV2 = &sdk.RootCapabilities{}
	}
	s.dialling.peer = sdk.NewClient(&sdk.Implementation{Name: "xiaozhi", Version: o.Version}, options)
	for _, uri := range c.Roots {
		s.dialling.peer.AddRoots(&sdk.Root{URI: uri, Name: path.Base(uri)}) //nolint:staticcheck // see above
	}
	return s
}

// wake puts a token into a signal channel unless one is there.
func wake(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// Name returns the name of the server in the config.
func (s *Server) Name() string { return s.name }

// Start begins to connect and returns at once. The server ends with ctx or with
// Stop. A second Start does nothing.
func (s *Server) Start(ctx context.Context) error {
	return s.life.start(ctx, "start mcp server "+s.name, s.run)
}

// Stop takes the tools away, fails the pending calls with mcp.ErrClosed and
// waits for the end of the connection; a program that does not want to end is
// killed after 7 s. It may be called many times.
func (s *Server) Stop() error {
	s.calls.end()
	s.life.end()
	s.life.wg.Wait()
	if s.login != nil {
		s.login.Close()
	}
	return nil
}

// HasTool reports whether the server has the tool now.
func (s *Server) HasTool(name string) bool {
	tools, _ := s.calls.list()
	return has(tools, name)
}

// GetAvailableTools lists the tools in the server's order; none while it is away.
func (s *Server) GetAvailableTools() []mcp.Tool {
	tools, _ := s.calls.list()
	return slices.Clone(tools)
}

// IsReady reports whether the server is connected and its list was read.
func (s *Server) IsReady() bool {
	_, read := s.calls.list()
	return read
}

// ResetConnection forgets the list and connects again; one that dialled in is
// asked for its list again.
func (s *Server) ResetConnection() error {
	if !s.calls.forget() {
		return fmt.Errorf("reset mcp server %s: %w", s.name, mcp.ErrClosed)
	}
	if s.once {
		wake(s.relist)
		return nil
	}
	wake(s.redial)
	return nil
}

var errNotConnected = errors.New("not connected")
