package external

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/external/library"
)

// maxFollowed is how many resources of one server are followed for others: half of what is subscribed to at most, so that
// nobody outside takes the places of what is waited for here.
const maxFollowed = maxWatched / 2

// followed owns which resources of a server are followed. Its methods may be called at the same time.
type followed struct {
	mu   sync.Mutex
	uris map[string]struct{}
}

// add notes a resource, and reports whether it is new. The error is that there are too many.
func (f *followed) add(uri string) (added bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, had := f.uris[uri]; had {
		return false, nil
	}
	if len(f.uris) == maxFollowed {
		return false, &mcp.ToolError{Message: fmt.Sprintf("%d resources of this server are followed already", maxFollowed)}
	}
	if f.uris == nil {
		f.uris = map[string]struct{}{}
	}
	f.uris[uri] = struct{}{}
	return true, nil
}

func (f *followed) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.uris))
}

// has reports whether a resource is followed.
func (f *followed) has(uri string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, is := f.uris[uri]
	return is
}

// request sends one request about the library within the time of a call, and gives up when the server leaves. what names it.
func request[T any](ctx context.Context, s *Server, what string, send func(ctx context.Context, live *session) (T, error)) (answer T, err error) {
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	own, stop := context.WithTimeout(own, cmp.Or(s.config.Timeout, defaultTimeout))
	defer stop()
	live, number, err := s.calls.enter(cancel)
	if err != nil {
		return answer, fmt.Errorf("%s: %w", what, err)
	}
	defer s.calls.finish(number)
	if answer, err = send(own, live); err != nil {
		err = s.callError(ctx, own, live, what, err)
	}
	return answer, err
}

// read reads a resource.
func (s *Server) read(ctx context.Context, uri string) (*sdk.ReadResourceResult, error) {
	return request(ctx, s, "resources/read", func(ctx context.Context, live *session) (*sdk.ReadResourceResult, error) {
		return live.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	})
}

// prompt gets a prompt.
func (s *Server) prompt(ctx context.Context, name string, arguments map[string]string) (*sdk.GetPromptResult, error) {
	return request(ctx, s, "prompts/get", func(ctx context.Context, live *session) (*sdk.GetPromptResult, error) {
		return live.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: arguments})
	})
}

// errNoNews says that a server does not tell of changes.
var errNoNews = &mcp.ToolError{Message: "this server does not tell when its resources change"}

// follow has changes of a resource told from now on, over later connections too. The watcher subscribes to it.
func (s *Server) follow(uri string) error {
	_, live := s.calls.beside()
	if live == nil {
		return mcp.ErrClosed
	}
	if about := live.InitializeResult().Capabilities; about == nil || about.Resources == nil || !about.Resources.Subscribe {
		return errNoNews
	}
	added, err := s.followed.add(uri)
	if added {
		wake(s.watcher.again)
	}
	return err
}

// updated takes the word of the server that a resource has changed.
func (s *Server) updated(ctx context.Context, uri string) {
	if s.told != nil && s.followed.has(uri) {
		s.told(ctx, uri)
	}
}

// Shares lists what servers offer beside their tools, for those whose tools that read it pass.
func (set *Set) Shares(passes func(mcp.Tool) bool) (all []library.Share) {
	for _, s := range set.list(func(device string) bool { return device == "" }) {
		l, _ := s.calls.beside()
		if l == nil {
			continue
		}
		passed := &library.Library{}
		for _, t := range s.GetAvailableTools() {
			switch resources, prompts := library.Has(s.name, t); {
			case resources && s.calls.reads(t.Name) != nil && passes(t):
				passed.Resources, passed.Templates = l.Resources, l.Templates
			case prompts && s.calls.reads(t.Name) != nil && passes(t):
				passed.Prompts = l.Prompts
			}
		}
		if resources, prompts := passed.Len(); resources+prompts > 0 {
			all = append(all, set.share(s.name, passed))
		}
	}
	return all
}

// share finds the server anew at each request: it may have come anew since.
func (set *Set) share(name string, l *library.Library) library.Share {
	now := func() (*Server, error) {
		if s := set.Server(name); s != nil {
			return s, nil
		}
		return nil, mcp.ErrClosed
	}
	return library.Share{
		Server: name, Stream: strings.ReplaceAll(name, ".", "-"), Library: l,
		Read: func(ctx context.Context, uri string) (*sdk.ReadResourceResult, error) {
			s, err := now()
			if err != nil {
				return nil, err
			}
			return s.read(ctx, uri)
		},
		Get: func(ctx context.Context, name string, arguments map[string]string) (*sdk.GetPromptResult, error) {
			s, err := now()
			if err != nil {
				return nil, err
			}
			return s.prompt(ctx, name, arguments)
		},
		Follow: func(_ context.Context, uri string) error {
			s, err := now()
			if err != nil {
				return err
			}
			return s.follow(uri)
		},
	}
}
