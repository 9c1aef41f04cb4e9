//lint:file-ignore SA1019 older clients still have roots

package catalog

import (
	"context"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// rootsTime bounds the time that a client may take to name its roots again.
const rootsTime = 5 * time.Second

// roots holds the folders that clients have named, of clients that tell of changes.
type roots struct {
	mu        sync.Mutex
	bySession map[*sdk.ServerSession]*rootsRead
}

// rootsRead is one reading of a client's roots, for all calls that want them
// meanwhile. list and err are set when done is closed.
type rootsRead struct {
	done chan struct{}
	list []string
	err  error
}

// reading returns the reading of a session's roots that counts. If mine is true, it
// is a new one that the caller has to do; fresh asks for that. The readings of all
// sessions that are not live are forgotten.
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

// rootsOf returns the roots of a client that tells of changes: as it named them
// last, or as it names them now, if fresh is set.
func (v *View) rootsOf(ctx context.Context, s *sdk.ServerSession, fresh bool) ([]string, error) {
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
		} // the call that read it may have been given up: it is read again
	}
}

// listRoots asks the client of a session for its roots.
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

// rootsChanged reads the roots of a client again that tells of a change, if it has
// declared that it has any.
func (v *View) rootsChanged(ctx context.Context, req *sdk.RootsListChangedRequest) {
	declared := req.ClientCapabilities()
	if declared == nil || declared.RootsV2 == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rootsTime)
	defer cancel()
	if _, err := v.rootsOf(ctx, req.Session, true); err != nil {
		v.log.Debug("the roots of a client cannot be read", "err", err)
	}
}
