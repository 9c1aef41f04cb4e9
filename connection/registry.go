package connection

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"xiaozhi/connection/identity"
)

// Registry holds the sessions of all connected devices, one for each, and decides
// which device may come. Its methods may be called at the same time.
type Registry struct {
	opts      Options
	log       *slog.Logger
	languages languages
	messages  budget

	mu       sync.Mutex
	sessions map[string]*Session // by the device's id, or what stands for it (place.key)
	pending  map[string]int      // devices between Reserve and Admit
	live     int                 // devices between Reserve and release
	serial   uint64              // of the last connection
	visitors visitors
	closing  bool
	idle     chan struct{} // closed once closing and live is 0
}

// New makes a registry. It starts nothing.
func New(o Options) *Registry {
	o = o.withDefaults()
	return &Registry{
		opts: o, log: o.Log, languages: newLanguages(),
		sessions: map[string]*Session{}, pending: map[string]int{}, idle: make(chan struct{}),
		visitors: newVisitors(o.MaxDevices),
	}
}

// MaxDevices returns the limit of connected devices.
func (r *Registry) MaxDevices() int { return r.opts.MaxDevices }

// Connected counts the devices that are connected now.
func (r *Registry) Connected() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sessions)
}

// Uploader returns the session, with the id, of the device that a token for pictures
// was given to. connected says that a device with that address is there at all.
func (r *Registry) Uploader(address, token string) (s *Session, id string, connected bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		if s.peer.Address != address {
			continue
		}
		if connected = true; s.mayUpload(token) {
			return s, s.peer.Guest.ID, true
		}
	}
	return nil, "", connected
}

// Talks reports whether a device is connected.
func (r *Registry) Talks(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id] != nil
}

// Forget drops what is kept of a device beside its session.
func (r *Registry) Forget(id string) { r.languages.forget(id) }

// Expel ends the session of a device, if there is one, with [ErrChanged]. It does not
// wait.
func (r *Registry) Expel(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[id]; s != nil {
		s.End(ErrChanged)
	}
}

// Dismiss ends the session of a page, if there is one, with [ErrLeftPage]. It does not wait.
func (r *Registry) Dismiss(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[id]; s != nil {
		s.End(ErrLeftPage)
	}
}

// Why [Registry.Reserve] has no room.
var (
	ErrFull     = errors.New("server is full")
	ErrStopping = errors.New("server is stopping")
)

// Room is kept for one device that is about to connect. Either Admit or Cancel
// must be called, once.
type Room struct {
	registry *Registry
	peer     Peer
	key      string
	visits   string // address that counts it as a visitor; "": it is none
	log      *slog.Logger
}

// place is the place of a session in the registry. The registry's mu guards it.
type place struct {
	key      string // the device's id, or what stands for it
	replaces bool   // it has taken the place of an older session of its device
	visits   string // address that counts it as a visitor; "": it is none
	named    bool   // the device took its identity from its registration
	since    time.Time
}

// Reserve makes room for a device, or returns [ErrFull], [ErrCrowded] or [ErrStopping]. A device
// that is connected already, or about to be, needs no more room than it has. For a
// regular the newest session of one that is none makes room.
func (r *Registry) Reserve(p Peer) (*Room, error) {
	if p.Address != "" && p.Guest.ID == "" {
		p.Guest = r.opts.Identify(p.Visit)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mayReplace(&p.Guest, nil)
	key := p.Guest.ID
	if key == "" || p.Guest.Away != nil {
		key = noPlace()
	}
	if r.closing {
		return nil, ErrStopping
	}
	known := r.sessions[key] != nil || r.pending[key] > 0
	if !known && r.taken() >= r.opts.MaxDevices && (!p.Guest.Regular || !r.makeRoom()) {
		return nil, ErrFull
	}
	r.serial++
	p.Serial = r.serial
	room := &Room{registry: r, peer: p, key: key, log: r.log}
	if p.isVisitor() {
		var err error
		if room.visits, err = r.visitors.enter(&p); err != nil {
			return nil, err
		}
		room.log = r.visitors.log(r.log)
	}
	r.pending[key]++
	r.live++
	return room, nil
}

// noPlace stands for the id of a session that takes nobody's place. No id is like it:
// those are printable.
func noPlace() string { return "\x00" + rand.Text() }

// mayReplace turns a guest away in whose place another session is, own apart, that
// has shown the device's token, unless the guest has as well. The caller holds mu.
func (r *Registry) mayReplace(g *identity.Guest, own *Session) {
	if old := r.sessions[g.ID]; old != nil && old != own && old.peer.Guest.Proven && !g.Proven && !old.Ended() {
		g.Away = &identity.AwayError{Taken: true}
	}
}

// taken counts the devices that are connected or about to be. The caller holds mu.
func (r *Registry) taken() int {
	n := len(r.sessions)
	for key := range r.pending {
		if r.sessions[key] == nil {
			n++
		}
	}
	return n
}

// makeRoom ends the session of a device that is no regular, and reports whether there
// is one: of a visitor, if there is any, and of those of the one that has come last. The
// caller holds mu.
func (r *Registry) makeRoom() bool {
	var last *Session
	for _, s := range r.sessions {
		switch {
		case s.peer.Guest.Regular || s.Ended():
		case last == nil,
			s.peer.isVisitor() && !last.peer.isVisitor(),
			s.peer.isVisitor() == last.peer.isVisitor() && s.place.since.After(last.place.since):
			last = s
		}
	}
	if last == nil {
		return false
	}
	last.End(ErrDisplaced)
	return true
}

// Peer returns the device, with how the server treats it.
func (m *Room) Peer() Peer { return m.peer }

// Cancel gives the room back.
func (m *Room) Cancel() {
	r := m.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle(m.key)
	r.visitors.leave(m.visits)
	r.leave()
}

// Admit begins the session of the device, in the place of an older one, which
// ends. Neither waits for the other. The session ends when ctx does, at the latest.
func (m *Room) Admit(ctx context.Context, t Transport, r Reader) {
	s := newSession(ctx, m, t)
	m.registry.admit(s, m.key) //nolint:contextcheck // it asks whether a session has ended, by its own context
	s.start(r)                 //nolint:contextcheck // the session has a context of its own, made of ctx
}

func (r *Registry) admit(s *Session, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle(key)
	r.mayReplace(&s.peer.Guest, s)
	if s.peer.Guest.Away != nil {
		key = noPlace()
	}
	s.place.key, s.place.since = key, time.Now()
	if old := r.sessions[key]; old != nil {
		s.place.replaces = true
		old.End(ErrReplaced)
	}
	r.sessions[key] = s
	if r.closing {
		s.End(ErrShutdown)
	}
}

// settle takes a device off the pending ones. The caller holds mu.
func (r *Registry) settle(key string) {
	if r.pending[key]--; r.pending[key] <= 0 {
		delete(r.pending, key)
	}
}

// rename gives a session the identity that its device has told, in the place of an
// older session of the device, which ends. One that may not talk has no place. Only
// the session's reader may call it.
func (r *Registry) rename(s *Session, address string) {
	visit := s.peer.Visit
	visit.Address = address
	guest := r.opts.Identify(visit)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mayReplace(&guest, s)
	s.peer.Visit, s.peer.Guest, s.place.named = visit, guest, true
	s.log.Info("device has named itself", "named", guest.ID)
	if !s.peer.isVisitor() {
		r.visitors.leave(s.place.visits)
		s.place.visits = ""
	}
	if guest.Away != nil {
		return
	}
	if r.sessions[s.place.key] == s {
		delete(r.sessions, s.place.key)
		if old := r.sessions[guest.ID]; old != nil {
			old.End(ErrReplaced)
		}
		r.sessions[guest.ID] = s
	}
	s.place.key = guest.ID
}

func (r *Registry) release(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sessions[s.place.key] == s {
		delete(r.sessions, s.place.key)
	}
	r.visitors.leave(s.place.visits)
	r.leave()
}

// leave counts a device out. The caller holds mu.
func (r *Registry) leave() {
	r.live--
	if r.closing && r.live == 0 {
		close(r.idle)
	}
}

// stopAccepting refuses devices from now on and returns the sessions there are.
func (r *Registry) stopAccepting() []*Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closing {
		r.closing = true
		if r.live == 0 {
			close(r.idle)
		}
	}
	sessions := make([]*Session, 0, len(r.sessions))
	for _, s := range r.sessions {
		sessions = append(sessions, s)
	}
	return sessions
}

// replyDrain is how long Shutdown lets replies go on before they are cut. With
// what comes after it the whole drain takes less than 10 s.
const replyDrain = 9500 * time.Millisecond

// Shutdown admits no device any more, asks all sessions to end, and waits for
// them. A reply may go on for up to 9.5 s before it is cut; a user who is listened
// to is told of the end. When ctx ends first, the rest is closed as by Close and
// the error of ctx comes back.
func (r *Registry) Shutdown(ctx context.Context) error {
	sessions := r.stopAccepting()
	for _, s := range sessions {
		s.Drain()
	}
	limit := time.NewTimer(replyDrain)
	defer limit.Stop()
	for {
		select {
		case <-r.idle:
			return nil
		case <-limit.C:
			for _, s := range sessions {
				s.End(ErrShutdown)
			}
		case <-ctx.Done():
			r.Close()
			return ctx.Err()
		}
	}
}

// Close admits no device any more and closes all transports at once, without last
// words. It does not wait for the conversations; Shutdown does.
func (r *Registry) Close() {
	reason := &Reason{Text: "server was closed", Gone: true}
	for _, s := range r.stopAccepting() {
		s.End(reason)
		s.transport.Close(reason)
	}
}

// tooBusy reports whether a device must be turned away. One that replaces its own
// session is no device more.
func (r *Registry) tooBusy(s *Session) bool {
	if r.opts.Load == nil {
		return false
	}
	r.mu.Lock()
	replaces, devices := s.place.replaces, len(r.sessions)
	r.mu.Unlock()
	return !replaces && r.opts.Load.TooBusy(devices)
}

// Language returns the language of a device as a tag of BCP 47: that of its settings,
// else the server's, else that of its OTA request, else Chinese.
func (r *Registry) Language(deviceID string) string {
	return r.languages.of(deviceID, r.opts.Settings(deviceID).Language, r.opts.Language)
}

// Asked remembers the language that a device's OTA request named; "": none.
func (r *Registry) Asked(deviceID, language string) {
	r.SetLanguage(deviceID, language)
	if r.opts.Asked != nil && deviceID != "" {
		r.opts.Asked(deviceID, language)
	}
}

// SetLanguage remembers the language that a device has named.
func (r *Registry) SetLanguage(deviceID, language string) { r.languages.remember(deviceID, language) }
