//lint:file-ignore SA1019 older clients still have roots

package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// rootsTime is how long a client may take to name its roots again.
const rootsTime = 5 * time.Second

// roots are the folders that clients have named, of those that tell of changes.
type roots struct {
	mu        sync.Mutex
	bySession map[*sdk.ServerSession][]string
}

// known are the roots of a session, if they were named and have not changed.
func (r *roots) known(s *sdk.ServerSession) ([]string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, ok := r.bySession[s]
	return slices.Clone(list), ok
}

// keep notes the roots of a session, and forgets those of sessions that are over.
func (r *roots) keep(s *sdk.ServerSession, list []string, live map[*sdk.ServerSession]struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bySession == nil {
		r.bySession = map[*sdk.ServerSession][]string{}
	}
	for other := range r.bySession {
		if _, lives := live[other]; !lives {
			delete(r.bySession, other)
		}
	}
	r.bySession[s] = list
}

func (r *roots) forget(s *sdk.ServerSession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.bySession, s)
}

// askRoots has the client of a session name its roots.
func (v *view) askRoots(ctx context.Context, s *sdk.ServerSession, tellsChanges bool) ([]string, error) {
	result, err := s.ListRoots(ctx, nil)
	if err != nil {
		return nil, err
	}
	list := make([]string, 0, len(result.Roots))
	for _, root := range result.Roots {
		list = append(list, root.URI)
	}
	if tellsChanges {
		live := map[*sdk.ServerSession]struct{}{}
		for other := range v.server.Sessions() {
			live[other] = struct{}{}
		}
		v.roots.keep(s, list, live)
	}
	return slices.Clone(list), nil
}

// rootsChanged reads the roots of a client again that says that they have changed,
// once, if it has declared that it has any.
func (v *view) rootsChanged(ctx context.Context, req *sdk.RootsListChangedRequest) {
	v.roots.forget(req.Session)
	declared := req.ClientCapabilities()
	if declared == nil || declared.RootsV2 == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rootsTime)
	defer cancel()
	if _, err := v.askRoots(ctx, req.Session, true); err != nil {
		v.gateway.log.Debug("the roots of a client cannot be read", "err", err)
	}
}
