package device

import (
	"context"
	"fmt"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// toolList is what is known of a device's tools.
type toolList struct {
	tools    []mcp.Tool
	held     *[]mcp.Tool // of the cache: tools is what it points to
	read     bool        // at least one page came
	complete bool        // all pages came
	stale    bool        // it is of an earlier connection, or the device says it changed, and reading it failed
}

func (l toolList) has(name string) bool {
	return slices.ContainsFunc(l.tools, func(t mcp.Tool) bool { return t.Name == name })
}

// add appends the tools of a page; a name that is there already, and what is
// over maxTools, is left out and counted.
func (l *toolList) add(page []mcp.Tool) (skipped int) {
	l.read = true
	for _, tool := range page {
		if l.has(tool.Name) || len(l.tools) == mcp.MaxTools {
			skipped++
			continue
		}
		l.tools = append(l.tools, tool)
	}
	return skipped
}

// run initialises the session and reads the list, as often as there are reasons,
// and ends when there are none: most devices are idle most of the time. There is
// at most one.
func (c *Client) run(ctx context.Context) {
	if c.last.IsZero() && len(c.GetAvailableTools()) > 0 { // remembered ones
		c.tell()
	}
	for c.reason(ctx) {
		c.last = time.Now()
		c.readTools(ctx)
	}
}

// reason reports whether the list must be read; false: not now, and whoever has
// a reason later begins run again. A burst of reasons makes one list, not sooner
// than relistPause after the last.
func (c *Client) reason(ctx context.Context) bool {
	for {
		select {
		case <-c.relist:
			if !sleep(ctx, max(relistGather, relistPause-time.Since(c.last))) {
				return false
			}
			select {
			case <-c.relist: // said again meanwhile: the same list will show it
			default:
			}
			return true
		default:
		}
		select {
		case <-c.refresh:
			if !c.current() {
				return true
			}
		default:
			if c.rest(ctx) {
				return false
			}
		}
	}
}

// relistSoon makes the list be read again.
func (c *Client) relistSoon() {
	c.wake(c.relist)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginReading()
}

// rest reports whether there is no reason to read the list any more, and that
// run ends.
func (c *Client) rest(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil && len(c.relist)+len(c.refresh) > 0 {
		return false
	}
	c.reading = false
	return true
}

// finish closes the session and waits until the SDK's goroutines are done with it.
func (c *Client) finish() {
	c.end()
	c.readers.Wait()
	c.mu.Lock()
	live, cancel := c.live, c.cancel
	c.mu.Unlock()
	cancel()
	if live != nil {
		_ = live.Close()
	}
}

// readTools initialises if needed and reads the list, again after each pause of
// ListRetry while it fails or is incomplete.
func (c *Client) readTools(ctx context.Context) {
	for attempt := 0; ; attempt++ {
		err := c.attempt(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if attempt == len(c.options.ListRetry) {
			c.log.Warn("device tools not read", "err", err, "attempts", attempt+1)
			c.markStale()
			return
		}
		pause := c.options.ListRetry[attempt]
		c.log.Debug("device tools not read yet", "err", err, "retry_in", pause)
		if !sleep(ctx, pause) {
			return
		}
	}
}

// attempt makes sure of the session and reads the list once. The error says
// that it should be tried again.
func (c *Client) attempt(ctx context.Context) error {
	live, err := c.session(ctx)
	if err != nil {
		return err
	}
	list, err := c.readPages(ctx, live)
	if list.read {
		list.held = c.options.Lists.share(list.tools)
		list.tools = *list.held
		c.keep(list)
	}
	if list.complete {
		c.options.Lists.remember(c.options.Device, c.ServerInfo(), list.held)
	}
	return err
}

// session is the initialised session, made if there is none yet.
func (c *Client) session(ctx context.Context) (*liveSession, error) {
	c.mu.Lock()
	live := c.live
	c.mu.Unlock()
	if live != nil {
		return live, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	l := newLink(c)
	peer := c.options.Lists.peer(c.options.Name, c.options.Version)
	s, err := peer.Connect(ctx, l, &sdk.ClientSessionOptions{ProtocolVersion: pinnedVersion})
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	live = &liveSession{ClientSession: s, link: l}
	info := ServerInfo{}
	if r := s.InitializeResult(); r != nil && r.ServerInfo != nil {
		info = ServerInfo{Name: r.ServerInfo.Name, Version: r.ServerInfo.Version, Protocol: r.ProtocolVersion}
	}
	c.log.Info("device mcp initialized", "name", info.Name, "version", info.Version, "protocol", info.Protocol)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live, c.info = live, info
	close(c.up)
	if c.recalled != nil && *c.recalled != info {
		c.log.Info("device tools forgotten: it has another firmware now", "was", c.recalled.Version, "is", info.Version)
		c.list, c.recalled = toolList{}, nil
	}
	if c.ended {
		_ = l.Close()
	}
	return live, nil
}

// readPages walks tools/list. With an error the list holds the pages before it.
func (c *Client) readPages(ctx context.Context, live *liveSession) (toolList, error) {
	var list toolList
	var cursor string
	seen := make(map[string]struct{})
	for pages := 1; ; pages++ {
		p, err := readPage(ctx, live, cursor)
		if err != nil {
			return list, fmt.Errorf("tools/list page %d: %w", pages, err)
		}
		if n := list.add(p.tools); n > 0 {
			c.log.Warn("device tools left out", "count", n, "page", pages)
		}
		if p.next == "" {
			list.complete = true
			return list, nil
		}
		_, repeated := seen[p.next]
		if repeated || pages == maxPages {
			// Asking again would bring the same: this is all there is to have.
			c.log.Warn("device tool list does not end", "pages", pages, "repeated_cursor", repeated)
			list.complete = true
			return list, nil
		}
		seen[p.next] = struct{}{}
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
func (c *Client) keep(list toolList) {
	c.mu.Lock()
	if c.ended || (c.list.complete && !list.complete) {
		c.list.read = c.list.read || !c.ended
		c.mu.Unlock()
		return
	}
	changed := c.list.held != list.held
	c.list, c.recalled = list, nil
	c.mu.Unlock()
	c.log.Info("device tools listed", "tools", len(list.tools), "complete", list.complete, "changed", changed)
	if changed {
		c.tell()
	}
}

// tell says that the list is another one.
func (c *Client) tell() {
	if c.options.OnTools != nil {
		c.options.OnTools()
	}
}

// markStale makes Refresh read the list again although it was complete once.
func (c *Client) markStale() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list.stale = true
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

var _ sdk.Transport = (*link)(nil)
