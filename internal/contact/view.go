package contact

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/nearby"
)

// Contact is the contact of one device as people and programs see it.
type Contact struct {
	Device   string    `json:"device"` // its id, or "?" with the address of callers that say none
	Known    bool      `json:"known"`
	From     string    `json:"from,omitempty"`
	Board    string    `json:"board,omitempty"`
	Firmware string    `json:"firmware,omitempty"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Complete time.Time `json:"complete,omitzero"` // when it was heard and answered last
	Code     string    `json:"code,omitempty"`    // with which it waits for a person
	Host     string    `json:"asked_host,omitempty"`
	URL      string    `json:"told_url,omitempty"`
	Level    *float64  `json:"level_db,omitempty"` // of its microphone, below full scale, since it listens
	Steps    []Mark    `json:"steps"`
	Open     string    `json:"open,omitempty"`   // the step to look at; "": all is well
	Causes   []Why     `json:"causes,omitempty"` // what that may be due to, the likeliest first
}

// Mark is a step of a contact.
type Mark struct {
	Step  string    `json:"step"`
	Title Why       `json:"title"`
	State State     `json:"state"`
	At    time.Time `json:"at,omitzero"`
	From  string    `json:"from,omitempty"`
	Note  Why       `json:"note,omitzero"`
	Raw   bool      `json:"raw"` // what was sent is kept: [Log.Raw]
}

// Around tells of the server, and of what stands before it.
type Around struct {
	PrivateCertificate bool // https is answered with a certificate that devices do not take
	NoUpgrade          bool // a proxy before the server lets no sockets through
	Port               string
}

// List returns the contacts of all devices, the newest first, without their causes.
func (l *Log) List() []Contact {
	var ids []string
	for _, h := range l.Heads() {
		ids = append(ids, h.Device)
	}
	return l.Of(ids...)
}

// Head is a device that has called, without its steps: a thousand of them are told of for every page that shows devices.
type Head struct {
	Caller
	First, Last time.Time
	Why         Why       // it was not let in when it came last; an empty one: it was, or did not come
	Refused     time.Time // when that was
}

// Heads lists all devices that have called, the newest first.
func (l *Log) Heads() []Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Head, 0, len(l.records))
	for _, r := range l.records {
		why, at := r.marks.refusal()
		all = append(all, Head{r.caller, r.first, r.last, why, at})
	}
	slices.SortFunc(all, func(a, b Head) int { return cmp.Or(b.Last.Compare(a.Last), strings.Compare(a.Device, b.Device)) })
	return all
}

// Of returns the contacts of devices, in their order, without their causes. What is not known is left out.
func (l *Log) Of(ids ...string) []Contact {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Contact, 0, len(ids))
	for _, id := range ids {
		if r := l.records[id]; r != nil {
			all = append(all, r.view())
		}
	}
	return all
}

// Get returns the contact of a device. One that has never called is told of with its causes too; seen is false then.
func (l *Log) Get(device string, around Around) (c Contact, seen bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, seen := l.records[device]
	if !seen {
		r = &record{caller: Caller{Device: device}}
	}
	c = r.view()
	if step, open := r.marks.open(); open {
		c.Causes = r.causes(step, l.now(), around)
	}
	return c, seen
}

// Raw returns what was sent in a step, without secrets; "": it is not kept.
func (l *Log) Raw(device string, s Step) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.records[device]; r != nil {
		return r.marks[s].raw
	}
	return ""
}

func (r *record) view() Contact {
	c := Contact{
		Device: r.caller.Device, Known: r.caller.Known, From: r.caller.From, Board: r.caller.Board, Firmware: r.caller.Firmware,
		First: r.first, Last: r.last, Complete: r.complete, Code: r.code, Host: r.host, URL: r.url,
	}
	if step, open := r.marks.open(); open {
		c.Open = step.String()
	}
	if r.level.Length > 0 {
		c.Level = &r.level.Loud
	}
	c.Steps = make([]Mark, 0, len(r.marks))
	for s, m := range r.marks {
		c.Steps = append(c.Steps, Mark{Step(s).String(), title(Step(s)), m.state, m.at, m.from, m.note, m.raw != ""})
	}
	return c
}

func title(s Step) Why {
	return why([...]string{
		"contact/step-ota", "contact/step-answer", "contact/step-activation", "contact/step-socket", "contact/step-token", "contact/step-hello",
		"contact/step-tools", "contact/step-sound", "contact/step-voice", "contact/step-words", "contact/step-reply", "contact/step-played",
	}[s])
}

// Limits of what is taken for a cause.
const (
	pollsStop = 45 * time.Second // without a question of a device that waits to be accepted
	silent    = -60.0            // dB below full scale
	quiet     = -42.0
	weak      = -70 // dBm
)

// causes says what it may be due to that a step is missing or went wrong, the likeliest first.
func (r *record) causes(s Step, now time.Time, a Around) (all []Why) {
	add := func(when bool, id string, args ...any) {
		if when {
			all = append(all, why(id, args...))
		}
	}
	if m := r.marks[s]; m.state == Failed && m.note.ID != "" {
		all = append(all, m.note)
	}
	switch s {
	case Asked:
		add(true, "contact/ota-once")
		add(true, "contact/ota-address")
		add(true, "contact/ota-port", cmp.Or(a.Port, "8000"))
		add(true, "contact/ota-https")
		add(true, "contact/ota-wifi")
		add(true, "contact/ota-firewall")
	case Answered:
		add(r.marks[s].note.ID != "contact/refused-nameless", "contact/answer-public", r.host)
	case Polled:
		add(r.marks[s].state == Missing && now.Sub(r.asked) > pollsStop, "contact/activation-stopped")
		add(r.code != "", "contact/activation-code", r.code)
	case Connecting:
		r.socketCauses(add, now, a)
	case Token:
		add(r.marks[s].note.ID == "contact/refused-token", "contact/token-restart")
		add(r.marks[s].note.ID == "contact/refused-stranger", "contact/token-erased")
	case Hello:
		add(a.NoUpgrade || !nearby.IsHost(r.caller.From), "contact/hello-proxy")
		add(true, "contact/hello-other")
	case Tools:
		add(r.marks[s].state == Missing, "contact/tools-waiting")
		add(true, "contact/tools-busy")
	case Sound:
		add(!r.listens, "contact/sound-listen")
		add(slices.ContainsFunc(r.odd, func(f string) bool { return strings.HasPrefix(f, "audio_params") }), "contact/sound-format", strings.Join(r.odd, ", "))
		add(r.listens, "contact/sound-muted")
	case Voice:
		r.voiceCauses(add)
	case Words:
		add(r.marks[s].state == Missing, "contact/words-waiting")
		add(r.marks[s].state == Failed, "contact/words-test")
	case Reply:
		add(r.marks[s].state == Missing, "contact/reply-waiting")
		add(true, "contact/reply-test")
	case Played:
		add(r.marks[s].state == Missing, "contact/played-waiting")
		add(r.marks[s].note.ID == "contact/played-failed", "contact/reply-test")
	}
	if id := r.marks[s].note.ID; r.marks[s].state == Failed && (id == "contact/played-gone" || id == "contact/gone") {
		add(r.signal == 0, "contact/gone-wifi")
		add(r.signal != 0 && r.signal <= weak, "contact/gone-weak", r.signal)
		add(r.signal > weak && r.signal != 0, "contact/gone-power", r.signal)
	}
	return all
}

func (r *record) socketCauses(add func(when bool, id string, args ...any), now time.Time, a Around) {
	told, _ := url.Parse(r.url)
	secure := told != nil && told.Scheme == "wss"
	if r.code != "" && r.marks[Polled].state == Reached { // it asks for no socket before it is accepted
		add(now.Sub(r.last) > pollsStop, "contact/activation-stopped")
		add(true, "contact/activation-code", r.code)
		return
	}
	if r.marks[Connecting].state == Failed {
		add(r.marks[Connecting].note.ID == "contact/refused-upgrade", "contact/socket-upgrade")
		return
	}
	if told != nil {
		add(r.elsewhere(), "contact/socket-elsewhere", r.host, told.Host)
		add(secure && a.PrivateCertificate, "contact/socket-private", told.Host)
	}
	add(a.NoUpgrade, "contact/socket-upgrade")
	add(true, "contact/socket-wake")
	add(secure && !a.PrivateCertificate, "contact/socket-certificate")
	if told != nil {
		add(!a.NoUpgrade, "contact/socket-port", told.Host)
	}
	add(true, "contact/socket-mqtt")
}

func (r *record) voiceCauses(add func(when bool, id string, args ...any)) {
	heard := r.level.Length > 0
	add(heard && r.level.Loud < silent, "contact/voice-silent", r.level.Loud)
	add(heard && r.level.Loud >= silent && r.level.Loud < quiet, "contact/voice-quiet", r.level.Loud)
	add(heard && r.level.Loud >= quiet, "contact/voice-noise", r.level.Loud)
	add(!heard, "contact/voice-unread")
	add(slices.ContainsFunc(r.odd, func(f string) bool { return strings.HasPrefix(f, "audio_params") }), "contact/sound-format", strings.Join(r.odd, ", "))
}
