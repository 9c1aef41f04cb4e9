package offer

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"xiaozhi/internal/lru"
	"xiaozhi/mcp/gateway/catalog"
)

// Times of a follower.
const (
	settleTime  = 100 * time.Millisecond // for a device's further changes, before they are told
	settleLimit = 500 * time.Millisecond // and no longer than this
	sharedPoll  = time.Second            // between two looks at other servers
)

// Follower keeps what a registry has of devices, other servers and the folder of
// declarative tools in step with them. Devices are followed from [Follower.Wake] on:
// a server whose tools are not used keeps none of them. With forty tools each, they
// would be half of what a device costs. All methods may be called at the same time.
type Follower struct {
	registry *catalog.Registry
	o        Options
	updated  func(ctx context.Context, uris ...string)
	warned   *lru.Cache[string, struct{}] // tools that cannot be offered, and why

	woken  sync.Once
	taking sync.Mutex    // held while devices are taken in: the newest word is the last
	wake   chan struct{} // size 1: devices have changed

	mu      sync.Mutex
	changes changes
}

// changes are the devices, by id, that have changed since they were taken in.
type changes struct {
	awake  bool // they are followed
	dirty  map[string]struct{}
	spoken map[string]struct{} // something was said with them
}

// NewFollower makes a follower, which takes in the tools of other servers at once.
// updated tells clients of resources that have changed.
func NewFollower(r *catalog.Registry, o Options, updated func(ctx context.Context, uris ...string)) *Follower {
	f := &Follower{
		registry: r, o: o, updated: updated, wake: make(chan struct{}, 1),
		changes: changes{dirty: map[string]struct{}{}, spoken: map[string]struct{}{}}, warned: lru.New[string, struct{}](maxWarned, 0),
	}
	if o.Files != nil {
		o.Files.taken = func(p *catalog.Part) { r.Set(catalog.PartFiles, p) }
	}
	f.takeShared()
	return f
}

// Run follows until ctx ends. It is called once.
func (f *Follower) Run(ctx context.Context) {
	var wg sync.WaitGroup
	if f.o.Files != nil {
		wg.Go(func() { f.o.Files.follow(ctx) })
	}
	f.follow(ctx)
	wg.Wait()
}

// Wake takes in what devices offer, the first time that it is called.
func (f *Follower) Wake() {
	f.woken.Do(func() {
		f.mu.Lock()
		f.changes.awake = true // from here on changes are followed: none is missed
		f.mu.Unlock()
		if f.o.Devices != nil {
			f.takeDevices(idsOf(f.o.Devices.List()))
		}
	})
}

// Asleep returns what the devices offer whose streams sees allows, by stream, until
// Wake is called; after that nil.
func (f *Follower) Asleep(sees func(stream string) bool) map[string]*catalog.Part {
	f.mu.Lock()
	awake := f.changes.awake
	f.mu.Unlock()
	if awake || f.o.Devices == nil {
		return nil
	}
	parts := map[string]*catalog.Part{}
	for _, id := range idsOf(f.o.Devices.List()) {
		if stream := catalog.StreamOf(id); sees(stream) && parts[stream] == nil {
			if p := f.devicePart(id); p != nil {
				parts[stream] = p
			}
		}
	}
	return parts
}

// DeviceChanged notes that a device came, left, or has other tools or states now.
// It never waits.
func (f *Follower) DeviceChanged(id string) { f.note(f.changes.dirty, id) }

// TranscriptChanged notes that something was said with a device. It never waits.
func (f *Follower) TranscriptChanged(id string) { f.note(f.changes.spoken, id) }

func (f *Follower) note(set map[string]struct{}, id string) {
	f.mu.Lock()
	set[id] = struct{}{}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// follow takes in changes until ctx ends: those of devices once they have been
// quiet for a moment, so that one coming makes one change.
func (f *Follower) follow(ctx context.Context) {
	poll := time.NewTicker(sharedPoll)
	defer poll.Stop()
	settle := time.NewTimer(time.Hour)
	settle.Stop()
	defer settle.Stop()
	var first time.Time // of the changes that are waiting
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
			if first.IsZero() {
				first = time.Now()
			}
			settle.Reset(max(0, min(settleTime, time.Until(first.Add(settleLimit)))))
		case <-settle.C:
			first = time.Time{}
			f.takeChanged(ctx)
		case <-poll.C:
			f.takeShared()
		}
	}
}

// takeChanged takes in the devices that have changed, and tells of their resources.
func (f *Follower) takeChanged(ctx context.Context) {
	f.mu.Lock()
	dirty, spoken := maps.Clone(f.changes.dirty), maps.Clone(f.changes.spoken)
	clear(f.changes.dirty)
	clear(f.changes.spoken)
	awake := f.changes.awake
	f.mu.Unlock()
	if !awake {
		return
	}
	var uris []string
	if len(dirty) > 0 && f.o.Devices != nil {
		f.takeDevices(slices.Collect(maps.Keys(dirty)))
		uris = append(uris, uriDevices)
	}
	for id := range dirty {
		uris = append(uris, deviceURI(id, partStatus), deviceURI(id, partStates))
	}
	for id := range spoken {
		uris = append(uris, deviceURI(id, partTranscript))
	}
	f.updated(ctx, uris...)
}

// takeDevices makes the registry have what devices offer now, or that they have
// left: in one step, since each step costs as much as all that is offered.
func (f *Follower) takeDevices(ids []string) {
	f.taking.Lock()
	defer f.taking.Unlock()
	parts := make(map[string]*catalog.Part, len(ids))
	for _, id := range ids {
		parts["device:"+id] = f.devicePart(id)
	}
	f.registry.SetChanged(parts)
}

func (f *Follower) takeShared() {
	if f.o.Shared != nil {
		f.registry.SetChanged(map[string]*catalog.Part{catalog.PartShared: f.sharedPart()})
	}
}

// maxWarned bounds the memory of warnings.
const maxWarned = 512

// addTool adds a tool to p. What is wrong with one is logged the first time it is met.
func (f *Follower) addTool(p *catalog.Part, t catalog.Tool) {
	err := p.AddTool(t)
	if err == nil {
		return
	}
	name := catalog.JoinName(t.Stream, t.Name)
	key := name + "\x00" + err.Error()
	_, known := f.warned.Get(key)
	f.warned.Put(key, struct{}{}, 1)
	if !known {
		f.o.Log.Warn("tool is not offered outward", "tool", name, "err", err)
	}
}
