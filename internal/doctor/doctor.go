package doctor

import (
	"context"
	"sync"
	"time"

	"xiaozhi/internal/contact"
	"xiaozhi/internal/text"
)

// Options make a [Doctor].
type Options struct {
	// Check looks at the server. It returns within ten seconds or so, and when its context ends.
	Check    func(ctx context.Context, links *Links) ([]Finding, contact.Around)
	Contacts *contact.Log
	Now      func() time.Time
}

// Doctor looks at the server when somebody asks, and keeps what it has found. Its methods may be called at the same time.
type Doctor struct {
	o     Options
	links *Links

	looking chan struct{} // size 1: full while the server is looked at
	stale   chan struct{} // size 1: somebody was shown an old report

	mu     sync.Mutex
	last   Report
	around contact.Around
	follow map[int]func()
	nextID int
}

// Report holds findings, sorted, with the worst of their levels.
type Report struct {
	At       time.Time     `json:"at"`
	Took     time.Duration `json:"-"`
	TookMS   int64         `json:"took_ms"`
	Worst    Level         `json:"worst"`
	Findings []Finding     `json:"findings"`
}

// New makes a doctor that has looked at nothing yet.
func New(o Options) *Doctor {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Doctor{o: o, looking: make(chan struct{}, 1), stale: make(chan struct{}, 1), follow: map[int]func(){}}
	d.links = NewLinks(o.Now, d.tell)
	return d
}

// Links are the pages that phones open.
func (d *Doctor) Links() *Links { return d.links }

// Contacts are those of devices.
func (d *Doctor) Contacts() *contact.Log { return d.o.Contacts }

// How long a report is good for who does not want a new one.
const (
	fresh = time.Minute      // as it is
	shown = 10 * time.Minute // while another one is made
)

// Report returns what was found lately. After a minute another report is made, of which followers are told; only when there
// is none of the last ten minutes it is waited for.
func (d *Doctor) Report(ctx context.Context) (Report, error) {
	last := d.Last()
	age := d.o.Now().Sub(last.At)
	if last.At.IsZero() || age >= shown {
		return d.Run(ctx)
	}
	if age >= fresh {
		select {
		case d.stale <- struct{}{}:
		default: // it is on its way
		}
	}
	return last, nil
}

// Watch makes new reports where old ones were shown, until ctx ends.
func (d *Doctor) Watch(ctx context.Context) {
	for {
		select {
		case <-d.stale:
			_, _ = d.Run(ctx) // its only error is that of ctx
		case <-ctx.Done():
			return
		}
	}
}

// Last returns the last report; its time is zero if there is none.
func (d *Doctor) Last() Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// Run looks at the server now. Who comes while somebody else is looking waits and gets the same. The error is that of ctx.
func (d *Doctor) Run(ctx context.Context) (Report, error) {
	begun := d.o.Now()
	select {
	case d.looking <- struct{}{}:
		defer func() { <-d.looking }()
	case <-ctx.Done():
		return Report{}, context.Cause(ctx)
	}
	if last := d.Last(); last.At.After(begun) {
		return last, nil
	}
	found, around := d.o.Check(ctx, d.links)
	if err := context.Cause(ctx); err != nil {
		return Report{}, err
	}
	r := reportOf(begun, d.o.Now(), found)
	d.mu.Lock()
	d.last, d.around = r, around
	d.mu.Unlock()
	d.tell()
	return r, nil
}

// Contact returns the contact of a device with what is known of the server, which is looked at if it never was. seen says
// that the device has ever called.
func (d *Doctor) Contact(ctx context.Context, id string) (c contact.Contact, seen bool) {
	if d.Last().At.IsZero() {
		_, _ = d.Run(ctx) // its only error is that of ctx: nobody reads on
	}
	d.mu.Lock()
	around := d.around
	d.mu.Unlock()
	return d.o.Contacts.Get(id, around)
}

// Follow has f called whenever there is another report, or a phone has opened a page, until stop is called. f must not wait.
func (d *Doctor) Follow(f func()) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.nextID
	d.nextID++
	d.follow[id] = f
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.follow, id)
	}
}

func (d *Doctor) tell() {
	d.mu.Lock()
	all := make([]func(), 0, len(d.follow))
	for _, f := range d.follow {
		all = append(all, f)
	}
	d.mu.Unlock()
	for _, f := range all {
		f()
	}
}

// head is the beginning of a line that a stranger tells.
func head(s string, limit int) string { return text.Cut(text.Line(s), limit) }

// ReportOf makes a report of what was found since begun.
func ReportOf(begun time.Time, found []Finding) Report { return reportOf(begun, time.Now(), found) }

func reportOf(begun, now time.Time, found []Finding) Report {
	return Report{At: now, Took: now.Sub(begun), TookMS: now.Sub(begun).Milliseconds(), Worst: Worst(found), Findings: sorted(found)}
}
