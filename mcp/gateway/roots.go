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
	bySession map[*sdk.ServerSession]*rootsRead
}

// rootsRead is one reading of a client's roots, which all wait for who want them
// meanwhile. list and err are set when done is closed.
type rootsRead struct {
	done chan struct{}
	list []string
	err  error
}

// reading is the reading of a session's roots that counts. mine: it is a new one,
// which the caller has to do; fresh asks for that. live are the sessions there are:
// those of others are forgotten.
func (r *roots) reading(s *sdk.ServerSession, fresh bool, live map[*sdk.ServerSession]struct{}) (read *rootsRead, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if read = r.bySession[s]; read != nil && !fresh {
		return read, false
	}
	for other := range r.bySession {
		if _, lives := live[other]; !lives {
			delete(r.bySession, other)
		}
	}
	if r.bySession == nil {
		r.bySession = map[*sdk.ServerSession]*rootsRead{}
	}
	read = &rootsRead{done: make(chan struct{})}
	r.bySession[s] = read
	return read, true
}

// over ends a reading. One that failed counts no more.
func (r *roots) over(s *sdk.ServerSession, read *rootsRead) {
	r.mu.Lock()
	if read.err != nil && r.bySession[s] == read {
		delete(r.bySession, s)
	}
	r.mu.Unlock()
	close(read.done)
}

// rootsOf are the roots of a client that tells of changes: as it named them last,
// or as it names them now, if fresh is set.
func (v *view) rootsOf(ctx context.Context, s *sdk.ServerSession, fresh bool) ([]string, error) {
	live := map[*sdk.ServerSession]struct{}{}
	for other := range v.server.Sessions() {
		live[other] = struct{}{}
	}
	for {
		read, mine := v.roots.reading(s, fresh, live)
		if mine {
			read.list, read.err = listRoots(ctx, s)
			v.roots.over(s, read)
			return slices.Clone(read.list), read.err
		}
		select {
		case <-read.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if read.err == nil {
			return slices.Clone(read.list), nil
		} // whoever read it may have been given up: it is read again
	}
}

// listRoots has the client of a session name its roots.
func listRoots(ctx context.Context, s *sdk.ServerSession) ([]string, error) {
	result, err := s.ListRoots(ctx, nil)
	if err != nil {
		return nil, err
	}
	list := make([]string, 0, len(result.Roots))
	for _, root := range result.Roots {
		list = append(list, root.URI)
	}
	return list, nil
}

// rootsChanged reads the roots of a client again that says that they have changed,
// once, if it has declared that it has any.
func (v *view) rootsChanged(ctx context.Context, req *sdk.RootsListChangedRequest) {
	declared := req.ClientCapabilities()
	if declared == nil || declared.RootsV2 == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rootsTime)
	defer cancel()
	if _, err := v.rootsOf(ctx, req.Session, true); err != nil {
		v.gateway.log.Debug("the roots of a client cannot be read", "err", err)
	}
}
