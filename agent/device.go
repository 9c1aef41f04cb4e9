package agent

import (
	"context"
	"sync"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/history"
	"xiaozhi/agent/speak"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

const (
	keepDevice  = 10 * time.Minute // how long a device's record is kept after its last connection
	sweepEvery  = time.Minute      // how often all records are looked at while they are not too many
	mostRecords = 4096             // of devices, beside those that are lent; of more, the least needed is forgotten
)

// Device holds what outlives a connection, by Device-Id. It is lent to one
// conversation at a time, which alone may touch it.
type Device struct {
	id      string
	history history.Log
	learned turn.Learned
	role    role // the agent that the user chose
	queue   announcements
	states  map[string]feature.State // by feature
	calls   think.Budget
	talk    Talk   // that history is of
	next    string // names the talk that begins with the next turn; "": it has no name yet
	kept    kept   // what the keeper has of it

	unknown   bool      // of a device that may not use what belongs to a known one
	made      time.Time // when there was a record first
	returned  time.Time
	forgotten bool          // nobody may get it any more; guarded by Devices.mu
	wanted    int           // who waits for it or holds it; guarded by Devices.mu
	slot      chan struct{} // size 1: holds a token while the record is free
}

// waits returns for how long the record must be kept after its last connection; 0:
// it holds nothing that must not be lost.
func (d *Device) waits() (keep time.Duration) {
	if len(d.queue.waiting) > 0 {
		keep = feature.KeepWaiting
	}
	for _, s := range d.states {
		keep = max(keep, s.Keep(d.returned))
	}
	return keep
}

// Devices keeps the records. Its methods may be called at the same time.
type Devices struct {
	clock      speak.Clock // of the replies that they hear
	closeTimer func()      // of clock; nil: it has none of the system

	mu    sync.Mutex
	byID  map[string]*Device
	swept time.Time // when all were looked at

	loading chan struct{}  // a token for each load that runs; size maxLoads
	loads   sync.WaitGroup // of them
}

// NewDevices makes an empty set of records. Close ends it.
func NewDevices() *Devices {
	return &Devices{byID: map[string]*Device{}, loading: make(chan struct{}, maxLoads)}
}

// Punctual has what all devices hear sent by a timer of the system ([speak.Clock.Punctual]) until Close. It may be called
// before the first conversation.
func (d *Devices) Punctual() (err error) {
	d.closeTimer, err = d.clock.Punctual()
	return err
}

// Close cancels all jobs and waits for them, and for what is being loaded. No conversation may run any more.
func (d *Devices) Close() {
	if d.closeTimer != nil {
		d.closeTimer()
	}
	d.loads.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dev := range d.byID {
		dev.close()
	}
}

// acquire waits until no other conversation holds the device's record.
func (d *Devices) acquire(ctx context.Context, id string) (*Device, error) {
	for {
		dev, err := d.await(ctx, id)
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		forgotten := dev.forgotten
		d.mu.Unlock()
		if !forgotten {
			dev.comeBack(time.Now())
			return dev, nil
		}
		d.release(dev)
	}
}

// comeBack begins another talk with a device that was away for long. Its record may have
// stayed: others are dropped only when one is given back.
func (d *Device) comeBack(now time.Time) {
	if !d.returned.IsZero() && now.Sub(d.returned) > keepDevice {
		d.history.Clear()
		d.endTalk()
	}
}

// endTalk makes the next turn the first of another talk.
func (d *Device) endTalk() { d.talk, d.next = Talk{}, "" }

// await waits until nobody else holds the record that the device has now.
func (d *Devices) await(ctx context.Context, id string) (*Device, error) {
	d.mu.Lock()
	dev, ok := d.byID[id]
	if !ok {
		dev = newDevice(id)
		d.byID[id] = dev
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
		if dev.wanted--; dev.forgotten && dev.wanted == 0 {
			dev.close()
		}
		return nil, context.Cause(ctx)
	}
}

func newDevice(id string) *Device {
	dev := &Device{id: id, made: time.Now(), slot: make(chan struct{}, 1)}
	dev.slot <- struct{}{}
	return dev
}

// set keeps the state of a feature. Only the conversation that has the record calls it.
func (d *Device) set(feat string, state feature.State) {
	if d.states == nil {
		d.states = map[string]feature.State{} // as few devices have any
	}
	d.states[feat] = state
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
	if len(d.byID) > mostRecords || now.Sub(d.swept) >= sweepEvery {
		d.sweep(now)
	}
	if dev.forgotten && dev.wanted == 0 {
		dev.close()
	}
}

// sweep forgets records that nobody has needed for long, and of too many the least needed. d.mu is held.
func (d *Devices) sweep(now time.Time) {
	d.swept = now
	var least *Device
	free := 0
	for _, other := range d.byID {
		if other.wanted > 0 {
			continue
		}
		if now.Sub(other.returned) > max(other.waits(), keepDevice) {
			d.forget(other)
			continue
		}
		if free++; least == nil || other.neededLess(least) {
			least = other
		}
	}
	if free > mostRecords {
		d.forget(least)
	}
}

// neededLess reports whether a record makes room before another one. Those with nothing
// waiting do so first, among them those of devices that are not known, and then those
// that were away longest. Where something waits, the newest makes room: however many
// devices somebody makes up, what waits for the others stays.
func (d *Device) neededLess(than *Device) bool {
	waits, other := d.waits() > 0, than.waits() > 0
	switch {
	case waits != other:
		return !waits
	case d.unknown != than.unknown:
		return d.unknown
	case waits:
		return d.made.After(than.made)
	default:
		return d.returned.Before(than.returned)
	}
}

// Forget drops the record of a device, which gets another one if it comes again. One
// that is lent ends when it is given back.
func (d *Devices) Forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dev := d.byID[id]
	if dev == nil {
		return
	}
	delete(d.byID, id)
	if dev.forgotten = true; dev.wanted == 0 {
		dev.close()
	}
}

// close ends what the features keep. Nobody may hold the record.
func (d *Device) close() {
	for _, s := range d.states {
		s.Close() // no job runs any more: they have their own limit
	}
}

// forget gives up a record that nobody holds, once. The caller holds mu.
func (d *Devices) forget(dev *Device) {
	if d.byID[dev.id] != dev {
		return
	}
	delete(d.byID, dev.id)
	dev.close()
}

// Memory holds what a device's record knows from earlier conversations, as far as
// it decides how the next one goes.
type Memory struct {
	History  []providers.Message `json:",omitempty"`
	Language string              `json:",omitempty"` // of the last turn
	Role     string              `json:",omitempty"` // the agent that the user chose
	Given    Given               `json:",omitzero"`  // by which order the device had another one then
	Hinted   time.Time           `json:",omitzero"`  // when a hint about recognition was last spoken
	Pause    time.Duration       `json:",omitempty"` // learned: the user's pauses
	Fast     int                 `json:",omitempty"` // turns without such a pause
	Echoes   bool                `json:",omitempty"` // the microphone hears what is played
	Spoke    bool                `json:",omitempty"` // somebody speaks with the device
	Waiting  bool                `json:",omitempty"` // jobs, timers, notices or music are there, which Memory does not hold
}

func (d *Device) memory() Memory {
	m := d.learnedMemory()
	m.History, m.Waiting = d.history.Snapshot(), d.waits() > 0
	return m
}

// learnedMemory returns all but what was said.
func (d *Device) learnedMemory() Memory {
	return Memory{
		Language: string(d.learned.Lang), Role: d.role.name, Given: d.role.given, Hinted: d.learned.Hinted,
		Pause: d.learned.Pause.Need, Fast: d.learned.Pause.Fast, Echoes: d.learned.Echoes, Spoke: d.learned.Spoke,
	}
}

// Remember makes the record of a device that has none yet, for a replay.
func (d *Devices) Remember(id string, m Memory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID[id] != nil {
		return
	}
	dev := newDevice(id)
	d.byID[id] = dev
	dev.recall(m)
}

// recall fills a record that is empty.
func (d *Device) recall(m Memory) {
	d.history = history.New(m.History)
	d.role = role{m.Role, m.Given}
	d.learned = turn.Learned{
		Lang: text.Lang(m.Language), Pause: turn.LearnedPause{Need: m.Pause, Fast: m.Fast}, Echoes: m.Echoes, Spoke: m.Spoke, Hinted: m.Hinted,
	}
}
