package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Views holds the views of all callers, each made when it is first asked for. All
// methods may be called at the same time.
type Views struct {
	runner  *Runner
	version string // of this server
	log     *slog.Logger

	mu    sync.Mutex
	byKey map[viewKey]*View
	now   *snapshot
	wg    sync.WaitGroup // unused views that end
}

type viewKey struct {
	token  string // its name; "" for the owner's
	rights string // of its account; "" without one
	stream string // "" for all
}

func keyOf(c Caller, stream string) viewKey {
	key := viewKey{token: c.Name(), stream: stream}
	switch a := c.account(); {
	case a != nil:
		key.rights = a.rights() + fmt.Sprint(c.Token.Streams)
	case c.Token != nil && c.Token.Only != nil: // whatever the tokens of the settings are called
		key.rights = "only"
	}
	return key
}

// viewIdle limits the life of a view of an account's token that nobody uses: there
// may be any number of them, one after the other.
const viewIdle = 10 * time.Minute

// NewViews makes the views of a registry, whose tools runner runs. version is that
// of this server.
func NewViews(r *Registry, runner *Runner, version string, log *slog.Logger) *Views {
	vs := &Views{runner: runner, version: version, log: log, byKey: map[viewKey]*View{}, now: &snapshot{}}
	r.watch(vs.apply)
	return vs
}

// Of returns a caller's view of a stream, "" for all. It returns false if there is
// no such stream for the caller.
func (vs *Views) Of(c Caller, stream string) (*View, bool) {
	key := keyOf(c, stream)
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if stream != "" && (!c.Sees(stream) || !slices.Contains(vs.now.streams, stream)) {
		return nil, false
	}
	if v := vs.byKey[key]; v != nil {
		v.asked = time.Now()
		return v, true
	}
	v := newView(vs, key, c)
	v.asked = time.Now()
	v.apply(vs.now)
	vs.byKey[key] = v
	return v, true
}

// Kept is [Views.Of] for a request of a session: the stream may be away for a while.
func (vs *Views) Kept(c Caller, stream string) (*View, bool) {
	vs.mu.Lock()
	v := vs.byKey[keyOf(c, stream)]
	vs.mu.Unlock()
	if v != nil {
		return v, true
	}
	return vs.Of(c, stream)
}

// Streams returns the streams there are for a caller, sorted.
func (vs *Views) Streams(c Caller) []string {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(vs.now.streams), func(stream string) bool { return !c.Sees(stream) })
}

// Tools returns how many tools are offered.
func (vs *Views) Tools() int {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	tools := 0
	for k := range vs.now.all {
		if k.kind == kindTool {
			tools++
		}
	}
	return tools
}

// Updated tells clients that subscribed to them that resources have changed.
func (vs *Views) Updated(ctx context.Context, uris ...string) {
	for _, v := range vs.all() {
		for _, uri := range uris {
			if v.has(kindResource, uri) {
				_ = v.server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri})
			}
		}
	}
}

// Sweep forgets views of streams that are gone, and of accounts, that are not in use. It
// must not be called after Close.
func (vs *Views) Sweep() {
	var gone []*View
	vs.mu.Lock()
	for key, v := range vs.byKey {
		old := key.rights != "" && time.Since(v.asked) > viewIdle
		if (old || key.stream != "" && !slices.Contains(vs.now.streams, key.stream)) && v.unused() {
			delete(vs.byKey, key)
			gone = append(gone, v)
		}
	}
	vs.mu.Unlock()
	for _, v := range gone {
		vs.wg.Go(v.close) // it waits for calls that are under way
	}
}

// Close ends the sessions of all views and waits for them.
func (vs *Views) Close() {
	for _, v := range vs.all() {
		v.close()
	}
	vs.wg.Wait()
}

func (vs *Views) apply(s *snapshot) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.now = s
	for _, v := range vs.byKey {
		v.apply(s)
	}
}

func (vs *Views) all() []*View {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return slices.Collect(maps.Values(vs.byKey))
}
