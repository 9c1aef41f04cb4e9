// Package directory finds the devices that talk now by their id, for everything
// that uses a device from outside its conversation.
package directory

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"xiaozhi/agent/feature/remote"
	"xiaozhi/internal/wire"
)

// ErrNotConnected is returned by [Devices.Find] for a device that holds no
// conversation now.
var ErrNotConnected = errors.New("the device is not connected")

// Info describes a connected device.
type Info struct {
	wire.Session
	Since time.Time // of the connection
}

// Device is a connected device. Its methods may be called at the same time. Those
// that need the conversation return its error once it is over.
type Device interface {
	remote.Device
	Info() Info
	// States returns the states of the device's things by name; nil if it has none.
	States() map[string]map[string]any
	// Transcript returns the last lines of the conversation.
	Transcript() []Line
}

// Watcher is told of changes. Its methods must not wait.
type Watcher interface {
	DeviceChanged(id string)     // it came, left, or has other tools or states
	TranscriptChanged(id string) // something was said
}

// Devices holds the devices that talk now. Its methods may be called at the same time.
type Devices struct {
	watchers []Watcher

	mu   sync.Mutex
	byID map[string]Device
}

// New returns an empty directory.
func New() *Devices { return &Devices{byID: map[string]Device{}} }

// Watch has w told of all changes. It must be called before the first Add.
func (d *Devices) Watch(w Watcher) { d.watchers = append(d.watchers, w) }

// Add puts a device in, in the place of an older connection of the same device.
func (d *Devices) Add(device Device) {
	id := device.Info().DeviceID
	d.mu.Lock()
	d.byID[id] = device
	d.mu.Unlock()
	d.Changed(id)
}

// Remove takes a device out, unless a newer connection of it is there.
func (d *Devices) Remove(device Device) {
	id := device.Info().DeviceID
	d.mu.Lock()
	if d.byID[id] == device {
		delete(d.byID, id)
	}
	d.mu.Unlock()
	d.Changed(id)
}

// List returns the devices in the order of their ids.
func (d *Devices) List() []Device {
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.byID))
	d.mu.Unlock()
	slices.SortFunc(all, func(a, b Device) int { return cmp.Compare(a.Info().DeviceID, b.Info().DeviceID) })
	return all
}

// Find returns the device with an id, or [ErrNotConnected].
func (d *Devices) Find(id string) (Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if device, ok := d.byID[id]; ok {
		return device, nil
	}
	return nil, ErrNotConnected
}

// Changed tells the watchers that a device has other tools or states.
func (d *Devices) Changed(id string) {
	for _, w := range d.watchers {
		w.DeviceChanged(id)
	}
}

const maxLines = 200

// Line is one thing that was said.
type Line struct {
	Time time.Time
	Role string // user or assistant
	Text string
}

// Transcript keeps the last 200 lines of one conversation. It may be read while it grows.
type Transcript struct {
	mu    sync.Mutex
	lines []Line
}

// Add appends a line; an empty text is none.
func (t *Transcript) Add(role, text string) {
	if text == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == maxLines {
		t.lines = slices.Delete(t.lines, 0, 1)
	}
	t.lines = append(t.lines, Line{Time: time.Now(), Role: role, Text: text})
}

// Lines returns a copy of all lines, the oldest first.
func (t *Transcript) Lines() []Line {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines)
}

// Transcribe returns an outbox that passes everything on to out and adds what user
// and assistant say to t. The watchers are told of each line.
func (d *Devices) Transcribe(id string, t *Transcript, out wire.Outbox) wire.Outbox {
	return transcribing{out, t, func() {
		for _, w := range d.watchers {
			w.TranscriptChanged(id)
		}
	}}
}

type transcribing struct {
	wire.Outbox
	transcript *Transcript
	changed    func()
}

// Send passes a message on.
func (t transcribing) Send(m wire.Message) {
	switch m.Kind { //nolint:exhaustive // the others hold nothing that was said
	case wire.MessageSTT:
		t.transcript.Add("user", m.Text)
		t.changed()
	case wire.MessageFinal:
		t.transcript.Add("assistant", m.Text)
		t.changed()
	}
	t.Outbox.Send(m)
}
