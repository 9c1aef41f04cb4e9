package device

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// toolList is a device's tools as far as they are known.
type toolList struct {
	tools    []mcp.Tool
	held     *[]mcp.Tool // of the cache: tools is what it points to
	read     bool        // at least one page came
	pages    int         // that came
	complete bool        // all pages came
	stale    bool        // it is of an earlier connection, or the device says it changed, and reading it failed
}

func (l toolList) has(name string) bool {
	return slices.ContainsFunc(l.tools, func(t mcp.Tool) bool { return t.Name == name })
}

// add appends the tools of a page; a name that is there already, and what is
// over the limits of a list, is left out and counted.
func (l *toolList) add(page []mcp.Tool) (skipped int) {
	l.read = true
	size := 0
	for _, tool := range l.tools {
		size += tool.Size()
	}
	for _, tool := range page {
		if l.has(tool.Name) || len(l.tools) == mcp.MaxTools || size+tool.Size() > mcp.MaxToolList {
			skipped++
			continue
		}
		size += tool.Size()
		l.tools = append(l.tools, tool)
	}
	return skipped
}

// lister owns the list of a device's tools: it reads the list, keeps it, and
// reads it again when there is a reason to.
type lister struct {
	client  *Client
	log     *slog.Logger
	refresh chan struct{}  // 1: read the list if it is not complete
	relist  chan struct{}  // 1: read the list again
	wg      sync.WaitGroup // run
	last    time.Time      // when the list was read last; of run

	mu       sync.Mutex
	begin    func() // begins run in its goroutine; nil before start
	reading  bool   // run has begun, and will look for reasons before it ends
	ended    bool
	list     toolList
	recalled *ServerInfo // whose list it is, while it is the one remembered
}

// start takes the list that is remembered of the device and begins to read its present one.
func (l *lister) start(ctx context.Context) {
	l.mu.Lock()
	if old, ok := l.client.options.Lists.last.Get(l.client.options.Device); ok {
		l.list = toolList{tools: *old.tools, held: old.tools, complete: true, stale: true}
		l.recalled = &old.info
		l.log.Debug("device tools remembered", "tools", len(l.list.tools), "name", old.info.Name, "version", old.info.Version)
	}
	l.begin = func() { l.wg.Go(func() { l.run(ctx) }) }
	l.mu.Unlock()
	l.want(l.refresh)
}

// end takes the tools away for good.
func (l *lister) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.list = toolList{}
}

// reset forgets the list and reads it again.
func (l *lister) reset() {
	l.mu.Lock()
	l.list, l.recalled = toolList{}, nil
	l.mu.Unlock()
	l.want(l.relist)
}

// want notes a reason to read the list and sees to it that run looks for it.
func (l *lister) want(reason chan<- struct{}) {
	select {
	case reason <- struct{}{}:
	default: // it is noted already
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begin == nil || l.reading || l.ended {
		return
	}
	l.reading = true
	l.begin()
}

// has reports whether the list has the tool.
func (l *lister) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list.has(name)
}

// all returns the tools. The caller owns the slice.
func (l *lister) all() []mcp.Tool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list.tools)
}

// ready reports whether a list was read on this connection.
func (l *lister) ready() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list.read
}

// current reports whether the list is all that the device has, as far as we know.
func (l *lister) current() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list.complete && !l.list.stale
}

// identified forgets the remembered list if the device has other firmware now.
func (l *lister) identified(info ServerInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recalled != nil && *l.recalled != info {
		l.log.Info("device tools forgotten: it has another firmware now", "was", l.recalled.Version, "is", info.Version)
		l.list, l.recalled = toolList{}, nil
	}
}

// run initialises the session and reads the list, as often as there are reasons, and ends
// when there are none: most devices are idle most of the time. There is at most one.
func (l *lister) run(ctx context.Context) {
	if l.last.IsZero() && len(l.all()) > 0 { // remembered ones
		l.tell()
	}
	for l.reason(ctx) {
		l.last = time.Now()
		l.readTools(ctx)
	}
}

// reason reports whether the list must be read. If not, the next reason begins run again.
// A burst of reasons makes one list, not sooner than relistPause after the last.
func (l *lister) reason(ctx context.Context) bool {
	for {
		select {
		case <-l.relist:
			if !sleep(ctx, max(relistGather, relistPause-time.Since(l.last))) {
				return false
			}
			select {
			case <-l.relist: // said again meanwhile: the same list will show it
			default:
			}
			return true
		default:
		}
		select {
		case <-l.refresh:
			if !l.current() {
				return true
			}
		default:
			l.mu.Lock()
			l.reading = ctx.Err() == nil && len(l.relist)+len(l.refresh) > 0
			again := l.reading
			l.mu.Unlock()
			if !again {
				return false
			}
		}
	}
}

// readTools initialises if needed and reads the list, again after each pause of
// listRetry while it fails or is incomplete. After the last, Refresh tries again.
func (l *lister) readTools(ctx context.Context) {
	for attempt := 0; ; attempt++ {
		live, err := l.client.session(ctx)
		var list toolList
		if err == nil {
			list, err = l.readPages(ctx, live)
		}
		lists := l.client.options.Lists
		if list.read {
			list.held = lists.share(list.tools)
			list.tools = *list.held
			l.keep(list)
		}
		if list.complete {
			l.remember(lists, list.held)
		}
		if ctx.Err() == nil {
			p := Progress{Tools: len(list.tools), Pages: list.pages, Whole: list.complete, Err: err}
			if attempt < len(listRetry) {
				p.Again = listRetry[attempt]
			}
			l.told(p)
		}
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case attempt == len(listRetry):
			l.log.Warn("device tools not read", "err", err, "attempts", attempt+1)
			l.mu.Lock()
			l.list.stale = true
			l.mu.Unlock()
			return
		}
		l.log.Debug("device tools not read yet", "err", err, "retry_in", listRetry[attempt])
		if !sleep(ctx, listRetry[attempt]) {
			return
		}
	}
}

// remember keeps a whole list, if it is another than before.
func (l *lister) remember(lists *ListCache, tools *[]mcp.Tool) {
	o, info := &l.client.options, l.client.ServerInfo()
	if !lists.remember(o.Device, info, tools) || o.Keep == nil {
		return
	}
	if doc, ok := encodeList(info, *tools); ok {
		o.Keep(doc)
	}
}

// readPages walks tools/list. With an error the list holds the pages before it.
func (l *lister) readPages(ctx context.Context, live *liveSession) (toolList, error) {
	var list toolList
	var cursor string
	seen := make(map[string]bool)
	for pages := 1; ; pages++ {
		p, err := readPage(ctx, live, cursor)
		if err != nil {
			return list, fmt.Errorf("tools/list page %d: %w", pages, err)
		}
		list.pages = pages
		if p.next != "" {
			l.told(Progress{Tools: len(list.tools) + len(p.tools), Pages: pages})
		}
		if n := list.add(p.tools); n > 0 {
			l.log.Warn("device tools left out", "count", n, "page", pages)
		}
		if p.next == "" {
			list.complete = true
			return list, nil
		}
		if repeated := seen[p.next]; repeated || pages == maxPages {
			// Asking again would bring the same: this is all there is to have.
			l.log.Warn("device tool list does not end", "pages", pages, "repeated_cursor", repeated)
			list.complete = true
			return list, nil
		}
		seen[p.next] = true
		cursor = p.next
	}
}

// readPage asks for one page.
func readPage(ctx context.Context, live *liveSession, cursor string) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	live.link.takePage() // one that came too late for its request
	if _, err := live.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor}); err != nil {
		return page{}, err
	}
	return live.link.takePage(), nil
}

// keep makes list the known one, unless it lacks pages and the known one does not.
func (l *lister) keep(list toolList) {
	l.mu.Lock()
	if l.ended || (l.list.complete && !list.complete) {
		l.list.read = l.list.read || !l.ended
		l.mu.Unlock()
		return
	}
	changed := l.list.held != list.held
	l.list, l.recalled = list, nil
	l.mu.Unlock()
	l.log.Info("device tools listed", "tools", len(list.tools), "complete", list.complete, "changed", changed)
	if changed {
		l.tell()
	}
}

// tell says that the list is another one.
func (l *lister) tell() {
	if l.client.options.OnTools != nil {
		l.client.options.OnTools()
	}
}

// told says how far the list is read.
func (l *lister) told(p Progress) {
	if l.client.options.OnList != nil {
		l.client.options.OnList(p)
	}
}

// sleep waits for d; false: ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
