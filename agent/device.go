package agent

import (
	"context"
	"sync"
	"time"

	"xiaozhi/agent/history"
	"xiaozhi/agent/speak"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
)

const (
	keepDevice  = 10 * time.Minute // how long a device's record is kept after its last connection
	keepWaiting = 24 * time.Hour   // how long, when something waits to be told
	alarmSoon   = 30 * time.Minute // a timer that is due so soon keeps the channel open
	mostRecords = 4096             // of devices; of more, those are forgotten that were away longest and have nothing waiting
)

// Device holds what outlives a connection, by Device-Id. It is lent to one
// conversation at a time, which alone may touch it; only its inbox is open to
// others.
type Device struct {
	id      string
	history history.Log
	learned turn.Learned
	role    string // the prompt that the user chose; "" for the configured one
	news    announcements
	alarms  alarms
	song    *playing // what plays or is paused; nil: no music
	calls   think.Budget
	mail    *inbox

	returned time.Time
	wanted   int           // who waits for it or holds it; guarded by Devices.mu
	slot     chan struct{} // size 1: holds a token while the record is free
}

// waiting reports whether the record holds something that must not be lost.
func (d *Device) waiting() bool {
	return len(d.news.waiting) > 0 || len(d.alarms.list) > 0 || d.mail.waiting()
}

// keep returns the time for which the record is kept after its last connection: as
// long as it is waiting, until a while after its last alarm.
func (d *Device) keep() time.Duration {
	if !d.waiting() {
		return keepDevice
	}
	if n := len(d.alarms.list); n > 0 {
		return keepWaiting + max(0, d.alarms.list[n-1].due.Sub(d.returned))
	}
	return keepWaiting
}

// expecting reports whether something is to come soon, for which the channel
// stays open.
func (d *Device) expecting(now time.Time) bool {
	return len(d.news.waiting) > 0 || d.mail.waiting() ||
		(len(d.alarms.list) > 0 && d.alarms.list[0].due.Sub(now) <= alarmSoon)
}

// Devices keeps the records. Its methods may be called at the same time.
type Devices struct {
	stagger speak.Stagger // of the replies that they hear

	mu   sync.Mutex
	byID map[string]*Device
}

// NewDevices makes an empty set of records. Close ends it.
func NewDevices() *Devices { return &Devices{byID: map[string]*Device{}} }

// Close cancels all jobs and waits for them. No conversation may run any more.
func (d *Devices) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dev := range d.byID {
		dev.mail.close()
	}
}

// acquire waits until no other conversation holds the device's record.
func (d *Devices) acquire(ctx context.Context, id string) (*Device, error) {
	d.mu.Lock()
	dev, ok := d.byID[id]
	if !ok {
		dev = d.record(id)
	}
	dev.wanted++
	d.mu.Unlock()
	select {
	case <-dev.slot:
		dev.history.Unpack()
		return dev, nil
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		dev.wanted--
		return nil, context.Cause(ctx)
	}
}

// record makes the empty record of a device. The caller holds mu.
func (d *Devices) record(id string) *Device {
	dev := &Device{id: id, slot: make(chan struct{}, 1), mail: newInbox()}
	dev.slot <- struct{}{}
	d.byID[id] = dev
	return dev
}

// release ends a loan, and forgets records that nobody has needed for long.
func (d *Devices) release(dev *Device) {
	dev.history.Pack()
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	dev.returned = now
	dev.wanted--
	dev.slot <- struct{}{}
	var longest *Device
	for _, other := range d.byID {
		if other.wanted > 0 {
			continue
		}
		keep := other.keep()
		if !other.waiting() && (longest == nil || other.returned.Before(longest.returned)) {
			longest = other
		}
		if now.Sub(other.returned) > keep {
			d.forget(other)
		}
	}
	if len(d.byID) > mostRecords && longest != nil {
		d.forget(longest)
	}
}

// forget drops a record that nobody holds. The caller holds mu.
func (d *Devices) forget(dev *Device) {
	dev.mail.close() // no job runs any more: they have their own limit
	delete(d.byID, dev.id)
}
