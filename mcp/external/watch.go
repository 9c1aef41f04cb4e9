package external

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxWatched   = 64               // resources of one server
	watchLimit   = 15 * time.Second // of one request about them
	touchedDepth = 16               // changes that wait to be read; more are left out: each says no more than that there was one
)

// Watch says which resources of servers somebody waits for.
type Watch struct {
	Wanted  func(server string) []string   // their URIs, by any goroutine; it must not wait. nil: none are
	Changed func(server, uri, text string) // is told that one has changed, and what text it holds now
}

// watcher follows resources of one server, over each connection anew. The goroutine of run owns what is subscribed.
type watcher struct {
	o       Watch
	server  string
	also    func() []string // URIs that are followed for others, who are told of changes only
	again   chan struct{}   // 1: others are wanted
	touched chan string     // URIs that have changed
	log     *slog.Logger
	mask    mask
}

func newWatcher(o Watch, s *Server) *watcher {
	return &watcher{o: o, server: s.name, also: s.followed.all, again: make(chan struct{}, 1), touched: make(chan string, touchedDepth), log: s.log, mask: s.mask}
}

// listen has it told of changes, beside who is already.
func (w *watcher) listen(options *sdk.ClientOptions) {
	if w.o.Wanted == nil {
		return
	}
	before := options.ResourceUpdatedHandler
	options.ResourceUpdatedHandler = func(ctx context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
		if before != nil {
			before(ctx, r)
		}
		if r.Params == nil {
			return
		}
		select {
		case w.touched <- r.Params.URI:
		default:
		}
	}
}

// waited lists the resources that somebody waits for.
func (w *watcher) waited() []string {
	if w.o.Wanted == nil {
		return nil
	}
	return w.o.Wanted(w.server)
}

// wanted lists all that is to be subscribed to, each once: what somebody waits for first.
func (w *watcher) wanted() []string {
	all := slices.Clone(w.waited())
	for _, uri := range w.also() {
		if !slices.Contains(all, uri) {
			all = append(all, uri)
		}
	}
	return all
}

// run follows what is wanted over a connection, until that ends.
func (w *watcher) run(ctx context.Context, live *session) {
	followed := map[string]bool{}
	for {
		w.follow(ctx, live, followed)
		select {
		case <-ctx.Done():
			return
		case <-live.gone:
			return
		case <-w.again:
		case uri := <-w.touched:
			w.read(ctx, live, uri)
		}
	}
}

// follow subscribes to what is wanted, and no more to what is not.
func (w *watcher) follow(ctx context.Context, live *session, followed map[string]bool) {
	wanted := w.wanted()
	if len(wanted) > maxWatched {
		w.log.Warn("too many resources of an mcp server are waited for", "count", len(wanted), "limit", maxWatched)
		wanted = wanted[:maxWatched]
	}
	for uri := range followed {
		if !slices.Contains(wanted, uri) {
			delete(followed, uri)
			ctx, cancel := context.WithTimeout(ctx, watchLimit)
			_ = live.Unsubscribe(ctx, &sdk.UnsubscribeParams{URI: uri}) // what it tells of it nevertheless is not wanted
			cancel()
		}
	}
	for _, uri := range wanted {
		if followed[uri] {
			continue
		}
		followed[uri] = true
		live.wg.Go(func() { // the newest revision answers when the subscription ends
			err := live.Subscribe(ctx, &sdk.SubscribeParams{URI: uri})
			if err != nil && ctx.Err() == nil && !live.over() {
				w.log.Warn("mcp server does not tell of changes of a resource", "uri", uri, "err", w.mask.err(err))
			}
		})
	}
}

// read tells what a resource that has changed holds.
func (w *watcher) read(ctx context.Context, live *session, uri string) {
	if !slices.Contains(w.waited(), uri) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	found, err := live.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		w.log.Warn("a resource that has changed cannot be read", "uri", uri, "err", w.mask.err(err))
		return
	}
	var text strings.Builder
	for _, c := range found.Contents {
		if c != nil {
			text.WriteString(c.Text)
		}
	}
	w.o.Changed(w.server, uri, text.String())
}

// Rewatch has all servers told that other resources are waited for.
func (set *Set) Rewatch() {
	for _, s := range set.list(nil) {
		wake(s.watcher.again)
	}
}
