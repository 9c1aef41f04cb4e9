package routine

import (
	"context"
	"crypto/subtle"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"xiaozhi/mcp"
)

// What bounds loops and storms.
const (
	burst      = 3           // runs of one routine that events begin at once
	houseLimit = 600         // runs of all routines that events begin in an hour
	houseBurst = 30          // at once
	maxDepth   = 3           // a routine that was caused by one that was caused by one … begins no other
	causes     = time.Minute // what a device does so long after it was told something of a routine may be due to that
	warnEach   = time.Minute // that something came too often
	maxEvent   = 2000        // characters of what has happened
)

// keyPrefix begins the keys of what devices are to say: routine/ID/DEPTH/…
const keyPrefix = "routine/"

// Event is something that has happened.
type Event struct {
	Tool     string // that has run
	Source   string // of Tool
	Device   string // on which it has, or "" for a tool that ran on none
	Name     string // of Device
	Failed   bool   // of Tool
	Server   string // of Resource
	Resource string // that has changed
	Text     string // a result, what a resource holds, what a hook was sent
}

// fits reports whether a routine waits for an event.
func (o *On) fits(e Event) bool {
	switch {
	case o == nil:
		return false
	case o.Tool != "":
		if _, ok := mcp.Fits([]string{o.Tool}, e.Source, e.Tool, mcp.FunctionName(e.Tool)); e.Tool == "" || !ok || o.Failed != e.Failed {
			return false
		}
		if o.Device != "" && !strings.EqualFold(o.Device, e.Device) && !strings.EqualFold(o.Device, e.Name) {
			return false
		}
	case o.Resource != "":
		if o.Server != e.Server || o.Resource != e.Resource {
			return false
		}
	default:
		return false
	}
	return o.Contains == "" || strings.Contains(strings.ToLower(e.Text), strings.ToLower(o.Contains))
}

// Happened begins the routines that wait for an event. It does not wait.
func (b *Book) Happened(e Event) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.all {
		if one.On.fits(e) && !one.Disabled {
			b.trigger(one, e, b.depths.after(e.Device, now), now)
		}
	}
}

// Opens reports whether a token is that of the hook of a routine.
func (b *Book) Opens(id, token string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[id].opens(token)
}

func (e *entry) opens(token string) bool {
	return e != nil && !e.Disabled && e.Hash != "" && e.On != nil && e.On.Hook && subtle.ConstantTimeCompare([]byte(e.Hash), []byte(hashOf(token))) == 1
}

// Hook begins the routine of a hook. The error is [ErrNone], also for a token that is wrong, or [ErrOften].
func (b *Book) Hook(id, token, sent string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.all[id]
	if !e.opens(token) {
		return ErrNone
	}
	if e.On.Contains != "" && !strings.Contains(strings.ToLower(sent), strings.ToLower(e.On.Contains)) {
		return nil
	}
	if !b.trigger(e, Event{Text: sent}, 0, time.Now()) {
		return ErrOften
	}
	return nil
}

// trigger begins a routine because of an event, unless that is too often. depth says how many routines in a row have caused
// it. b.mu is held.
func (b *Book) trigger(e *entry, ev Event, depth int, now time.Time) bool {
	if depth > maxDepth || b.busy >= maxBusy || !e.limit.AllowN(now, 1) || !b.house.AllowN(now, 1) {
		e.Outcome, e.Why = Limited, ""
		if now.Sub(e.warned) >= warnEach {
			e.warned = now
			b.o.Log.Warn("a routine was begun too often, or by itself", "routine", e.ID, "depth", depth, "at_once", b.busy)
		}
		return false
	}
	r := e.Routine
	run := Run{
		Key:  fmt.Sprintf("%s%s/%d/%s", keyPrefix, r.ID, depth, b.o.NewID()),
		Ends: now.Add(r.late()), Device: ev.Device, Event: clean(ev.Text),
	}
	b.run(func(ctx context.Context) { b.carry(ctx, r, run, false) })
	return true
}

// clean makes what a stranger has sent a text.
func clean(sent string) string {
	if !utf8.ValidString(sent) {
		sent = strings.ToValidUTF8(sent, "\uFFFD")
	}
	words := []rune(strings.TrimSpace(sent))
	return string(words[:min(len(words), maxEvent)])
}

// Told notes that a device is told something, and what it does then may be due to that; over: it has been. key is that of a run.
func (b *Book) Told(device, key string, over bool) {
	rest, ours := strings.CutPrefix(key, keyPrefix)
	if !ours {
		return
	}
	parts := strings.Split(rest, "/")
	if len(parts) < 3 {
		return
	}
	depth, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil {
		return
	}
	b.depths.note(device, key, depth, over, time.Now())
}

// depths tell how many routines in a row may have caused what a device does. The zero value is ready. Its methods may be called at
// any time.
type depths struct {
	mu  sync.Mutex
	all map[string]map[string]cause // by device, by key
}

// cause is a run that a device is told of.
type cause struct {
	depth int
	until time.Time // zero: it is being told
}

func (d *depths) note(device, key string, depth int, over bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[string]map[string]cause{}
	}
	of := d.all[device]
	if of == nil {
		of = map[string]cause{}
		d.all[device] = of
	}
	c := cause{depth: depth}
	if over {
		c.until = now.Add(causes)
	}
	of[key] = c
	d.sweep(now)
}

// after returns how many routines in a row may have caused what a device does now.
func (d *depths) after(device string, now time.Time) (depth int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep(now)
	for _, c := range d.all[device] {
		depth = max(depth, c.depth+1)
	}
	return depth
}

// sweep drops what is over for long.
func (d *depths) sweep(now time.Time) {
	for device, of := range d.all {
		for key, c := range of {
			if !c.until.IsZero() && now.After(c.until) {
				delete(of, key)
			}
		}
		if len(of) == 0 {
			delete(d.all, device)
		}
	}
}
