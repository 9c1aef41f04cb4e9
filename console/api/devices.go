package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/text/message"
)

// Device is a device, for programs.
type Device struct {
	ID       string      `json:"id"`
	Name     string      `json:"name,omitempty"`
	Board    string      `json:"board,omitempty"`
	Firmware string      `json:"firmware,omitempty"`
	Agent    string      `json:"agent,omitempty"`
	From     string      `json:"from,omitempty"`
	Known    bool        `json:"known"`
	Mine     bool        `json:"mine"`
	State    fleet.State `json:"state"`
	Since    time.Time   `json:"since,omitzero"`
	First    time.Time   `json:"first,omitzero"`
	Seen     time.Time   `json:"seen,omitzero"`
	Talked   time.Time   `json:"talked,omitzero"`
	Code     string      `json:"code,omitempty"`
	Why      string      `json:"why,omitempty"` // it is refused or waits, in both languages
}

// DeviceList is the answer to GET /api/v1/devices.
type DeviceList struct {
	Devices []Device `json:"devices"`
	Before  string   `json:"before,omitempty"` // asks for the next page
}

func shown(d fleet.Device, p account.Person) Device {
	s := Device{
		ID: d.ID, Name: d.Name, Board: d.Board, Firmware: d.Firmware, Agent: d.Agent, From: d.From, Known: d.Known, Mine: p.ID != "" && d.Owner == p.ID,
		State: d.State, Since: d.Since, First: d.First, Seen: d.Seen, Talked: d.Talked, Code: d.Code,
	}
	if d.Why.ID != "" {
		s.Why = message.Both(d.Why.ID, d.Why.Args...)
	}
	return s
}

// devices lists a page of devices, the one that was seen first last.
func (a *api) devices(w http.ResponseWriter, r *http.Request) {
	page, err := access.PageOf(r)
	var all []fleet.Device
	if err == nil {
		all, err = a.Fleet.List(r.Context())
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	p, list := access.PersonOf(r), DeviceList{Devices: []Device{}}
	for _, d := range all {
		at, after := d.First.UnixMilli(), page.Before.At.UnixMilli()
		if !page.Before.At.IsZero() && (at > after || at == after && d.ID >= page.Before.ID) || !p.Knows(d.Owner) {
			continue
		}
		if len(list.Devices) == page.Limit {
			last := list.Devices[page.Limit-1]
			list.Before = access.Before(last.First, last.ID)
			break
		}
		list.Devices = append(list.Devices, shown(d, p))
	}
	access.Answer(w, http.StatusOK, list)
}

func (a *api) device(w http.ResponseWriter, r *http.Request) {
	d, ok, err := a.Fleet.Get(r.Context(), a.ID(r.PathValue("id")))
	switch {
	case err != nil:
		a.fail(w, r, err)
	case !ok:
		access.Refuse(w, http.StatusNotFound, "api/no-device", message.Both("api/no-device"))
	default:
		access.Answer(w, http.StatusOK, shown(d, access.PersonOf(r)))
	}
}

// How a stream is written.
const (
	eventsEvery = 250 * time.Millisecond // changes of this time are told together
	heartbeat   = 15 * time.Second
	writeTime   = 5 * time.Second
)

// changes collects the ids of devices that have changed; each stands once, so there are no more than devices.
type changes struct {
	mu    sync.Mutex
	ids   map[string]bool
	fresh chan struct{} // of one
}

func newChanges() *changes { return &changes{ids: map[string]bool{}, fresh: make(chan struct{}, 1)} }

func (c *changes) add(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[id] = true
	select {
	case c.fresh <- struct{}{}:
	default: // there is a signal already
	}
}

func (c *changes) take() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := c.ids
	c.ids = map[string]bool{}
	return ids
}

// events tells all devices that the one who asks may know of, then each that changes, until they leave or may no longer.
func (a *api) events(w http.ResponseWriter, r *http.Request) {
	news := newChanges()
	stop := a.Fleet.Follow(news.add)
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := stream{w, http.NewResponseController(w), a.within}
	if out.devices(a, r, nil) != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			if out.write(": \n\n") != nil {
				return
			}
		case <-news.fresh:
			if pause(r.Context(), eventsEvery) != nil || out.devices(a, r, news.take()) != nil {
				return
			}
		}
	}
}

// pause waits, or returns why it did not.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// stream writes events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	within  time.Duration // of one write
}

func (s stream) write(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.within)) // recorders have none
	if _, err := fmt.Fprint(s.w, text); err != nil {
		return err
	}
	err := s.control.Flush()
	_ = s.control.SetWriteDeadline(time.Time{}) // by HTTP/2 it would end a stream that has nothing to tell
	return err
}

// devices writes how devices are; nil: all. Of one that is not there any more it says so.
func (s stream) devices(a *api, r *http.Request, ids map[string]bool) error {
	all, err := a.Fleet.List(r.Context())
	if err != nil {
		return err
	}
	p, text := access.PersonOf(r), ""
	for _, d := range all {
		if ids == nil || ids[d.ID] {
			if p.Knows(d.Owner) {
				text += event("device", shown(d, p))
			}
			delete(ids, d.ID)
		}
	}
	if p.Role == account.Owner { // others do not learn of devices that were not theirs
		for id := range ids {
			text += event("gone", map[string]string{"id": id})
		}
	}
	if ids == nil {
		text += event("ready", struct{}{})
	}
	if text == "" {
		return nil
	}
	return s.write(text)
}

func event(name string, data any) string {
	line, err := json.Marshal(data)
	if err != nil {
		line = []byte(strconv.Quote(err.Error()))
	}
	return "event: " + name + "\ndata: " + string(line) + "\n\n"
}
