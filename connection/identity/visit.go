package identity

import (
	"context"
	"net"
	"slices"
	"time"
)

// Visit is a device that asks or connects, as it introduces itself.
type Visit struct {
	Address  string // Device-Id, in any spelling
	ClientID string // a secret: never logged
	Token    string // that it shows; never logged
	From     string // address that it comes from, without a port
	Near     bool   // that is this machine or a private network
	Secure   bool   // nobody on the way can read the answer
	Page     bool   // it is a web page
	Shared   bool   // it shows the token that all devices share
}

// Guest is a device as the server treats it.
type Guest struct {
	ID      string     // what all that is kept of the device is kept under
	Name    string     // given by a person; "": none
	Unknown bool       // it may not use what belongs to a known device
	Proven  bool       // it has shown the pair's own token
	Lost    bool       // it has shown that once, and now none or a wrong one
	Regular bool       // it is known for a day, or was accepted by a person: it always finds room
	Private bool       // nothing of what is said is kept
	Page    bool       // a person has opened it in a browser
	Away    *AwayError // nil: it may talk
}

// AwayError is why a device is turned away.
type AwayError struct {
	Verdict Verdict
	Code    string // that a person must accept; "": there is none
	Taken   bool   // another connection has proven to be this device
}

// Error says it in English, for the log. The code is not in it.
func (a *AwayError) Error() string {
	switch {
	case a.Taken:
		return "another connection has proven to be this device"
	case a.Verdict == NoPairing:
		return "no new devices are accepted (auth.pairing: closed)"
	case a.Verdict == AsStranger:
		return "the Device-Id belongs to another client (devices.unknown: refuse)"
	case a.Verdict == Denied:
		return "the device was refused by a person"
	case a.Code == "":
		return "the device must be paired, but too many wait for that"
	default:
		return "the device must be paired first"
	}
}

// Arrive says how a device is treated that connects.
func (b *Book) Arrive(v Visit) Guest {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, see := b.meet(v)
	see.Proof = b.prove(e, v)
	verdict := b.step(e, Arrived, see)
	g := Guest{ID: e.ID, Name: e.Name, Proven: see.Proof == Right, Lost: see.Proof == Missing && e.State.known()}
	switch verdict {
	case Welcome:
		g.Regular = e.regular()
	case AsStranger:
		b.notice(e, v, "device says the Device-Id of another client: it is a stranger")
		g.Unknown = b.o.Unknown != AllowAll
		if b.o.Unknown == RefuseThem {
			g.Away = &AwayError{Verdict: AsStranger}
		}
	case MustPair, NoPairing, Denied:
		g.Unknown, g.Away = true, &AwayError{Verdict: verdict}
		if verdict == MustPair {
			g.Away.Code = b.pairing(e, v).Code
		}
		b.notice(e, v, "device turned away: "+g.Away.Error())
	}
	return g
}

// Knows returns what all that is kept of a visitor is kept under, and whether its pair holds its Device-Id, without
// noting the visit.
func (b *Book) Knows(v Visit) (id string, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	address, client := Canonical(v.Address), clientHash(v.ClientID)
	e := b.byID[address]
	if e == nil || e.Client == client {
		return address, e != nil && e.State.known()
	}
	_, id = b.stranger(address, client)
	return id, false
}

// prove checks the token that a connection shows. Where too many wrong ones came from, only pairs are believed that have
// shown theirs there before. The caller holds mu.
func (b *Book) prove(e *entry, v Visit) Proof {
	if b.o.Shared {
		return Unneeded // it is the same for all
	}
	tokens, proof := e.Tokens.check(v.Token)
	from, right := net.JoinHostPort(v.From, "0"), ""
	if proof == Right {
		right = e.ID
	}
	if v.Token != "" && proof != Unneeded && !b.guesses.Listens(from, right) {
		b.notice(e, v, "device is not believed: too many wrong tokens came from its address")
		return Missing
	}
	switch {
	case proof == Missing && e.State.known():
		if v.Token != "" {
			b.guesses.Wrong(from)
		}
		e.failed = true
		b.notice(e, v, "device shows no token or a wrong one, but has used its own before")
	case proof == Right:
		e.failed = false
		if e.keepsToken() {
			e.token = "" // it need not be told again
		}
		if tokens.Used != e.Tokens.Used || len(tokens.Offered) != len(e.Tokens.Offered) {
			e.Tokens = tokens
			b.touch(e.ID)
		}
	}
	return proof
}

// Description holds what a device tells of itself in its OTA request.
type Description struct {
	Board    string
	Firmware string
	Keeps    bool // it is firmware, which keeps a token that is left out
}

// Papers answer an OTA request.
type Papers struct {
	Guest
	Token     string // "": none is told
	Challenge string // with the code in Away
}

// Provision says what a device is told that asks where to connect. The answer may
// be given when it returns.
func (b *Book) Provision(ctx context.Context, v Visit, d Description) Papers {
	p, dirty := b.provision(v, d)
	if dirty { // a disk that does not write keeps nobody from talking, nor does another device that is being forgotten
		ctx, cancel := context.WithTimeout(ctx, commitTime)
		defer cancel()
		b.written(ctx)
	}
	return p
}

func (b *Book) provision(v Visit, d Description) (p Papers, dirty bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, see := b.meet(v)
	b.describe(e, d)
	verdict := b.step(e, Asked, see)
	p.ID, p.Name, p.Unknown = e.ID, e.Name, verdict != Welcome
	switch verdict {
	case Welcome:
		p.Token = b.token(e, v, see)
	case AsStranger:
		b.notice(e, v, "device says the Device-Id of another client: it is a stranger")
	case MustPair:
		pairing := b.pairing(e, v)
		p.Away, p.Challenge = &AwayError{Verdict: verdict, Code: pairing.Code}, pairing.Challenge
	case NoPairing, Denied:
		p.Away = &AwayError{Verdict: verdict}
		b.notice(e, v, "device turned away: "+p.Away.Error())
	}
	return p, b.dirty[e.ID]
}

// describe takes what a device tells of itself. The first time it says whether it
// keeps tokens; later it can only become stricter, so that nobody gets a token by
// looking like a client that keeps none.
func (b *Book) describe(e *entry, d Description) {
	keeps := d.Keeps || e.Told && e.Keeps
	if e.Told && e.Keeps == keeps && e.Board == d.Board && e.Firmware == d.Firmware {
		return
	}
	e.Told, e.Keeps, e.Board, e.Firmware = true, keeps, d.Board, d.Firmware
	if b.byID[e.ID] == e {
		b.touch(e.ID)
	}
}

// keepsToken reports whether the device keeps a token that is left out.
func (e *entry) keepsToken() bool { return e.Keeps && e.State != Browser }

// token returns the token that a known device is told; "": none. The caller holds mu.
func (b *Book) token(e *entry, v Visit, see Sight) string {
	h := handout{
		mode: see.Mode, near: see.Near, secure: v.Secure,
		used: e.Tokens.Used != "", keeps: e.keepsToken(), failed: e.failed,
	}
	if b.o.Shared || !h.due() {
		return ""
	}
	hash := hashOf(e.token)
	if e.token == "" || hash != e.Tokens.Used && !slices.Contains(e.Tokens.Offered, hash) {
		e.token = newToken()
		e.Tokens = e.Tokens.offer(hashOf(e.token))
		b.touch(e.ID)
	}
	return e.token
}

// Activate reports whether a device must go on waiting for a person.
func (b *Book) Activate(v Visit) (waits bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.expire(now)
	e, _ := b.meet(v)
	p, write := b.desk.extend(e.ID, now)
	if write {
		b.touch(e.ID)
	}
	return p != nil && !e.State.known()
}

// meet returns the entry of a visitor's pair, a new one that is not kept yet if there
// is none, and what is seen of it. The caller holds mu.
func (b *Book) meet(v Visit) (*entry, Sight) {
	address, client, now := Canonical(v.Address), clientHash(v.ClientID), time.Now()
	see := Sight{Mode: b.Mode(), Near: v.Near || v.Shared, Page: v.Page}
	holder := b.byID[address]
	e, id := b.stranger(address, client)
	if holder != nil && (e == nil || e.State == Newcomer) && holder.agesInto(client, see) {
		if e != nil {
			b.drop(e.ID, ErrCodeExpired)
		}
		holder.Client = client
		b.touch(holder.ID)
	}
	switch {
	case holder != nil && holder.Client == client:
		e = holder
	case holder != nil:
		see.Claimed = holder.State != Newcomer
	case e == nil:
		id = address
	}
	if e == nil {
		e = &entry{Record: Record{ID: id, Address: address, Client: client, First: now, Since: now}}
	}
	e.Seen = now
	if now.Sub(e.noted) >= seenEvery && b.byID[e.ID] == e {
		b.touch(e.ID)
	}
	return e, see
}

// agesInto reports whether a known device that named no Client-Id, as old firmware
// does, now names one. Nobody could be kept from saying nothing, so nothing is lost.
func (e *entry) agesInto(client string, see Sight) bool {
	return e.Client == "" && client != "" && e.State.known() && e.Tokens.Used == "" && see.Near && see.Mode == Open
}

// stranger returns the entry of a pair that does not hold its address, or nil and
// the id that it gets: the shortest one that no pair has whose hash begins alike.
func (b *Book) stranger(address, client string) (e *entry, id string) {
	free := ""
	for length := 8; length <= len(hashOf("")); length += 8 {
		id = strangerID(address, client, length)
		if e = b.byID[id]; e != nil && e.Client == client {
			return e, id
		}
		if e == nil && free == "" {
			free = id
		}
	}
	return nil, free
}

// step moves a pair by an event of the device's own. The caller holds mu.
func (b *Book) step(e *entry, event Event, see Sight) Verdict {
	next, verdict := Next(e.State, event, see)
	if next == e.State {
		return verdict
	}
	e.State, e.Since = next, time.Now()
	if next.known() {
		e.By = byNobody
		if !b.settle(e) {
			return verdict
		}
		b.became.Log(b.log.Info, "device is known from now on", "device_id", e.ID, "state", next.String(), "board", e.Board)
	} else {
		b.keep(e)
	}
	return verdict
}

// byNobody stands in the place of a person in the records of mode open.
const byNobody = "open"

// settle lets a known pair hold its address, ends its code, and reports whether it could
// be kept. The caller holds mu.
func (b *Book) settle(e *entry) bool {
	b.drop(e.ID, ErrCodeUsed)
	if e.ID != e.Address {
		b.drop(e.Address, ErrCodeExpired)
	}
	e.ID = e.Address
	return b.keep(e)
}

// pairing returns the code of a device, which keeps it while it asks; the zero value
// if there are too many. The caller holds mu.
func (b *Book) pairing(e *entry, v Visit) Pairing {
	now := time.Now()
	b.expire(now)
	if p, write := b.desk.extend(e.ID, now); p != nil {
		if write {
			b.touch(e.ID)
		}
		return *p
	}
	p, err := b.desk.open(e.ID, v.From, now)
	if err != nil {
		b.notice(e, v, "device gets no code: "+err.Error())
		return p
	}
	if !b.keep(e) {
		b.desk.settle(e.ID, ErrCodeExpired)
		return Pairing{}
	}
	b.log.Info("device waits to be paired", "device_id", e.ID, "remote", v.From, "board", e.Board)
	return p
}

// notice logs what a device does wrongly, now and then.
func (b *Book) notice(e *entry, v Visit, what string) {
	if b.notices.due(e.ID, e.Seen) {
		b.log.Warn(what, "device_id", e.ID, "remote", v.From)
	}
}
