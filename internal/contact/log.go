package contact

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/text"
)

// Limits of what is kept.
const (
	maxRecords = 256     // devices; those that are not known make room first, then those that were away longest
	MaxRaw     = 4 << 10 // bytes of a request as it came
	maxCallers = 32
	maxShort   = 256 // bytes of what a device or a service tells
)

// Log keeps the contacts of devices. Its methods may be called at the same time; none of them waits.
type Log struct {
	now func() time.Time

	mu      sync.Mutex
	records map[string]*record
	callers []Called // the newest last
	follow  map[int]func(device string)
	nextID  int
}

// Called says that somebody asked where to connect.
type Called struct {
	At     time.Time `json:"at"`
	From   string    `json:"from"`
	Device string    `json:"device,omitempty"`
	Board  string    `json:"board,omitempty"`
}

// record keeps the contact of one device.
type record struct {
	caller   Caller
	first    time.Time
	last     time.Time
	complete time.Time // when all of it was reached; zero: never
	marks    marks

	host    string // by which it asked
	url     string // that it was told
	code    string // that waits for a person; "": none
	asked   time.Time
	signal  int    // of its Wi-Fi then, in dBm; 0: it did not tell
	serial  uint64 // of its newest connection
	listens bool   // it has said that it listens
	odd     []string
	level   Level
	turn    uint64 // of the reply that plays; 0: none does
}

// New makes an empty log. now may be nil.
func New(now func() time.Time) *Log {
	if now == nil {
		now = time.Now
	}
	return &Log{now: now, records: map[string]*record{}, follow: map[int]func(string){}}
}

// Follow has f called with the id of a device whenever there is something new of it, until stop is called. f must not
// wait; it is called by whoever had something to tell, and may ask the log.
func (l *Log) Follow(f func(device string)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := l.nextID
	l.nextID++
	l.follow[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.follow, id)
	}
}

// Forget drops what is known of a device.
func (l *Log) Forget(device string) {
	l.mu.Lock()
	delete(l.records, device)
	l.callers = slices.DeleteFunc(l.callers, func(c Called) bool { return c.Device == device })
	l.mu.Unlock()
	l.tell(device)
}

// NamelessID is the id under which callers without one are kept.
func NamelessID(from string) string { return "?" + from }

// IsNameless reports whether an id stands for callers of an address that say none.
func IsNameless(id string) bool { return strings.HasPrefix(id, "?") }

// change finds the record of a device, makes it if there is none, has it changed, and tells who follows.
func (l *Log) change(c Caller, how func(r *record, now time.Time)) {
	l.mu.Lock()
	id, now := cmp.Or(c.Device, NamelessID(c.From)), l.now()
	r := l.records[id]
	if r == nil {
		l.makeRoom()
		r = &record{caller: Caller{Device: id}, first: now}
		l.records[id] = r
	}
	r.last = now
	how(r, now)
	if _, open := r.marks.open(); !open {
		r.complete = now
	}
	l.mu.Unlock()
	l.tell(id)
}

// of changes the record of a device, if there is one: talks go on of devices that were forgotten.
func (l *Log) of(device string, how func(r *record, now time.Time)) {
	l.mu.Lock()
	there := l.records[device] != nil
	l.mu.Unlock()
	if there {
		l.change(Caller{Device: device}, how)
	}
}

// makeRoom drops a record if there are too many. The caller holds mu.
func (l *Log) makeRoom() {
	if len(l.records) < maxRecords {
		return
	}
	least := ""
	for id, r := range l.records {
		old := l.records[least]
		if old == nil || !r.caller.Known && old.caller.Known || r.caller.Known == old.caller.Known && r.last.Before(old.last) {
			least = id
		}
	}
	delete(l.records, least)
}

func (l *Log) tell(device string) {
	l.mu.Lock()
	follow := make([]func(string), 0, len(l.follow))
	for _, f := range l.follow {
		follow = append(follow, f)
	}
	l.mu.Unlock()
	for _, f := range follow {
		f(device)
	}
}

// meet takes over what a device tells of itself.
func (r *record) meet(c Caller) {
	r.caller.From, r.caller.Known, r.caller.Page = c.From, c.Known, c.Page
	r.caller.Board = short(cmp.Or(c.Board, r.caller.Board))
	r.caller.Firmware = short(cmp.Or(c.Firmware, r.caller.Firmware))
}

// short bounds what strangers tell.
func short(s string) string { return text.Cut(text.Line(s), maxShort) }

// Callers returns who has asked last where to connect, the newest first, at most n.
func (l *Log) Callers(n int) []Called {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := append([]Called{}, l.callers...)
	slices.Reverse(all)
	return all[:min(n, len(all))]
}
