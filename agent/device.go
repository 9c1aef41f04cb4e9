package agent

import (
	"context"
	"sync"
	"time"
)

// keepDevice is how long a device's record is kept after its last connection.
const keepDevice = 10 * time.Minute

// Device is what outlives a connection, by Device-Id. It is lent to one
// conversation at a time, which alone may touch it.
type Device struct {
	id       string
	history  history
	language string    // of the last turn; "" before the first
	hinted   time.Time // when a hint about recognition was last spoken
	returned time.Time
	wanted   int           // who waits for it or holds it; guarded by Devices.mu
	slot     chan struct{} // size 1: holds a token while the record is free
}

// Devices keeps the records. Its methods may be called at the same time.
type Devices struct {
	mu   sync.Mutex
	byID map[string]*Device
}

// NewDevices makes an empty set of records.
func NewDevices() *Devices { return &Devices{byID: map[string]*Device{}} }

// lend waits until no other conversation holds the device's record.
func (d *Devices) lend(ctx context.Context, id string) (*Device, error) {
	d.mu.Lock()
	dev, ok := d.byID[id]
	if !ok {
		dev = &Device{id: id, slot: make(chan struct{}, 1)}
		dev.slot <- struct{}{}
		d.byID[id] = dev
	}
	dev.wanted++
	d.mu.Unlock()
	select {
	case <-dev.slot:
		return dev, nil
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		dev.wanted--
		return nil, context.Cause(ctx)
	}
}

// giveBack ends a loan, and forgets records that nobody has needed for long.
func (d *Devices) giveBack(dev *Device) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	dev.returned = now
	dev.wanted--
	dev.slot <- struct{}{}
	for id, other := range d.byID {
		if other.wanted == 0 && now.Sub(other.returned) > keepDevice {
			delete(d.byID, id)
		}
	}
}
