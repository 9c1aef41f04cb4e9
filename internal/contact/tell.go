package contact

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// maxReply is the longest answer that firmware can read, in bytes.
const maxReply = 4 << 10

// Asks notes that a device has asked where to connect: its contact begins anew, but for the codes that it still asks with.
func (l *Log) Asks(a Answer) {
	l.noteCaller(a.Caller)
	l.change(a.Caller, func(r *record, now time.Time) {
		r.meet(a.Caller)
		polled := r.marks[Polled]
		same := a.Code != "" && a.Code == r.code
		r.marks.restart(Asked)
		r.host, r.url, r.code, r.asked, r.signal = short(a.Host), short(a.URL), a.Code, now, a.Signal
		r.listens, r.odd, r.level, r.turn = false, nil, Level{}, 0
		r.marks[Asked].raw, r.marks[Answered].raw = cut(a.Request), cut(a.Reply)
		r.marks.reach(Asked, now, a.From, Why{})
		switch why := unreachable(a); {
		case a.Refusal == Nameless || a.Refusal == Often:
			r.marks.fail(Answered, now, a.From, why)
		case why.ID != "":
			r.marks.fail(Answered, now, a.From, why)
		default:
			r.marks.reach(Answered, now, a.From, Why{})
		}
		switch {
		case a.Refusal == Denied || a.Refusal == Closed:
			r.marks.fail(Polled, now, a.From, refused(a.Refusal))
		case a.Code == "" && polled.state == Reached && now.Sub(polled.at) <= pollsStop: // it was accepted, and asks for its token
			polled.note = why("contact/note-accepted")
			r.marks[Polled] = polled
		case a.Code == "":
			r.marks.skip(Polled, Why{})
		case same:
			r.marks[Polled] = polled
		}
	})
}

// unreachable says why a device cannot use what it was told; an empty one: it can.
func unreachable(a Answer) Why {
	told, err := url.Parse(a.URL)
	if err != nil {
		return Why{}
	}
	from, _ := netip.ParseAddr(a.From)
	ip, _ := netip.ParseAddr(told.Hostname())
	local := ip.IsLoopback() || ip.IsUnspecified() || told.Hostname() == "localhost"
	switch {
	case a.Refusal == Nameless || a.Refusal == Often:
		return refused(a.Refusal)
	case strings.Contains(told.Hostname(), ":"):
		return why("contact/answer-ipv6", told.Host)
	case local && from.IsValid() && !from.IsLoopback():
		return why("contact/answer-loopback", told.Host)
	case a.Size > maxReply:
		return why("contact/answer-long", a.Size)
	}
	return Why{}
}

// elsewhere reports whether a device was told another host than that by which it had asked.
func (r *record) elsewhere() bool {
	told, err := url.Parse(r.url)
	return err == nil && r.host != "" && !strings.EqualFold(bare(r.host), told.Hostname())
}

// bare is a host without its port.
func bare(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

func (l *Log) noteCaller(c Caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.callers = append(l.callers, Called{l.now(), c.From, short(c.Device), short(c.Board)})
	if over := len(l.callers) - maxCallers; over > 0 {
		l.callers = append([]Called(nil), l.callers[over:]...)
	}
}

// Polls notes that a device has asked whether it was accepted.
func (l *Log) Polls(p Poll) {
	l.change(p.Caller, func(r *record, now time.Time) {
		r.caller.From = p.From
		if p.Waits {
			r.marks.reach(Polled, now, p.From, why("contact/note-waits", r.code))
			return
		}
		r.code = ""
		r.marks.reach(Polled, now, p.From, why("contact/note-accepted"))
	})
}

// Arrives notes that a device has asked for a socket.
func (l *Log) Arrives(a Arrival) {
	l.change(a.Caller, func(r *record, now time.Time) {
		if a.Caller.Board == "" {
			a.Caller.Board, a.Caller.Firmware = r.caller.Board, r.caller.Firmware
		}
		r.meet(a.Caller)
		if r.marks[Answered].state == Failed { // it could reach it after all
			r.marks[Answered].state = Reached
		}
		r.marks.restart(Connecting)
		r.marks[Connecting].raw = cut(a.Request)
		r.listens, r.odd, r.level, r.turn = false, nil, Level{}, 0
		r.code, r.serial = a.Code, max(r.serial, a.Serial)
		reason := refused(a.Refusal, a.Detail)
		switch {
		case a.Refusal == NotRefused:
			r.marks.reach(Connecting, now, a.From, Why{})
			note := why("contact/note-known")
			if a.Proven {
				note = why("contact/note-proven")
			}
			r.marks.reach(Token, now, a.From, note)
		case a.Refusal.ofToken():
			if a.Code != "" && a.Refusal == Unpaired {
				reason = why("contact/refused-code", a.Code)
			}
			r.marks.reach(Connecting, now, a.From, Why{})
			r.marks.fail(Token, now, a.From, reason)
		default:
			r.marks.fail(Connecting, now, a.From, reason)
		}
	})
}

// Greets notes a hello.
func (l *Log) Greets(g Greeting) {
	l.change(Caller{Device: g.Device}, func(r *record, now time.Time) {
		r.odd = g.Odd
		r.marks[Hello].raw = cut(g.Message)
		note := Why{}
		if len(g.Odd) > 0 {
			note = why("contact/note-odd", short(strings.Join(g.Odd, ", ")))
		}
		if g.Busy {
			r.marks.fail(Hello, now, r.caller.From, refused(Busy))
			return
		}
		failed := r.marks[Token]
		r.marks.reach(Hello, now, r.caller.From, note)
		if failed.state == Failed { // it is told aloud what is missing, and goes
			r.marks[Token] = failed
		}
		if !g.HasMCP {
			r.marks.skip(Tools, why("contact/note-no-tools"))
		}
	})
}

// Lists notes how far the list of tools is read.
func (l *Log) Lists(t List) {
	l.of(t.Device, func(r *record, now time.Time) {
		switch {
		case t.Whole:
			r.marks.note(Tools, mark{state: Reached, at: now, note: why("contact/note-tools", t.Tools, t.Pages)})
		case t.Err != "" && t.Again > 0:
			r.marks.note(Tools, mark{state: Failed, at: now, note: why("contact/tools-again", t.Tools, t.Pages, t.Again.Round(time.Second).String(), short(t.Err))})
		case t.Err != "":
			r.marks.note(Tools, mark{state: Failed, at: now, note: why("contact/tools-silent", t.Tools, t.Pages, short(t.Err))})
		default:
			r.marks.note(Tools, mark{at: now, note: why("contact/note-tools-part", t.Tools, t.Pages)})
		}
	})
}

// note sets a mark that comes beside the others.
func (m *marks) note(s Step, as mark) {
	as.raw, as.from = m[s].raw, m[s].from
	m[s] = as
}

// Listens notes that a device has said that it listens.
func (l *Log) Listens(device string) {
	l.of(device, func(r *record, _ time.Time) { r.listens, r.level = true, Level{} })
}

// Hears notes the first packet of a microphone since the device listens.
func (l *Log) Hears(device string) {
	l.of(device, func(r *record, now time.Time) { r.marks.reach(Sound, now, r.caller.From, Why{}) })
}

// Sounds notes how loud a microphone was.
func (l *Log) Sounds(v Level) {
	l.of(v.Device, func(r *record, _ time.Time) { r.level = v })
}

// Speaks notes that somebody speaks.
func (l *Log) Speaks(device string) {
	l.of(device, func(r *record, now time.Time) {
		r.marks.restart(Words)
		r.turn = 0
		r.marks.reach(Voice, now, r.caller.From, Why{})
	})
}

// Says notes what was heard of an utterance.
func (l *Log) Says(s Said) {
	l.of(s.Device, func(r *record, now time.Time) {
		r.marks.restart(Reply)
		switch {
		case s.Typed:
			r.marks.pass(Words)
			r.marks.skip(Words, why("contact/note-typed"))
		case s.Aloud:
			r.marks.reach(Words, now, "", why("contact/note-aloud"))
		case s.Err != "":
			r.marks.fail(Words, now, "", why("contact/words-failed", short(s.Recognizer), short(s.Err)))
		case s.Rejected:
			r.marks.fail(Words, now, "", why("contact/words-language"))
		case s.Chars == 0:
			r.marks.fail(Words, now, "", why("contact/words-empty", short(s.Recognizer)))
		default:
			r.marks.reach(Words, now, "", why("contact/note-words", s.Chars, short(s.Recognizer)))
		}
	})
}

// Replies notes the first frame of a reply.
func (l *Log) Replies(device string, turn uint64) {
	l.of(device, func(r *record, now time.Time) {
		r.marks.restart(Played)
		words := r.marks[Words]
		r.marks.reach(Reply, now, "", Why{})
		if words.state == Failed {
			r.marks[Words] = words
		}
		r.turn = turn
	})
}

// Ends notes the end of a turn.
func (l *Log) Ends(t Turn) {
	l.of(t.Device, func(r *record, now time.Time) {
		switch {
		case t.Frames == 0 && r.turn == 0 && (t.Err != "" || failing(t.Attempts) != ""):
			r.marks.fail(Reply, now, "", replyFault(t))
		case t.Frames == 0 || r.turn != t.Turn:
		default:
			r.endReply(t, now)
		}
	})
}

// endReply notes how a reply has ended that was heard.
func (r *record) endReply(t Turn, now time.Time) {
	if failing(t.Attempts) != "" {
		r.marks[Reply].note = replyFault(t)
	}
	r.turn = 0
	switch {
	case t.Gone && r.caller.Page:
		r.marks.reach(Played, now, "", why("contact/note-closed"))
	case t.Gone:
		r.marks.fail(Played, now, "", why("contact/played-gone", t.Cause))
	case t.Err != "" && t.Heard == 0: // what was heard was an excuse
		words := r.marks[Words]
		r.marks.fail(Reply, now, "", replyFault(t))
		r.marks[Words] = words
	case t.Err != "":
		r.marks.fail(Played, now, "", why("contact/played-failed", short(t.Err)))
	case t.Cut:
		r.marks.reach(Played, now, "", why("contact/note-cut", t.Cause))
	case t.Underruns > 0:
		r.marks.reach(Played, now, "", why("contact/note-underruns", t.Underruns, t.Frames))
	default:
		r.marks.reach(Played, now, "", why("contact/note-played", t.Frames))
	}
}

// failing names the first service of a turn that failed; "": none did.
func failing(all []Attempt) string {
	for _, a := range all {
		if a.Fault != "" && a.Op != "recognize" {
			return a.Service
		}
	}
	return ""
}

// replyFault says which model or voice has failed, and what took over.
func replyFault(t Turn) Why {
	name := failing(t.Attempts)
	for i, a := range t.Attempts {
		if a.Service != name || a.Fault == "" {
			continue
		}
		for _, later := range t.Attempts[i:] {
			if later.Op == a.Op && later.Answered && later.Service != name {
				return why("contact/reply-instead", short(name), short(a.Fault), short(later.Service))
			}
		}
		return why("contact/reply-failed", short(name), short(cmp.Or(a.Fault, t.Err)))
	}
	return why("contact/reply-error", short(t.Err))
}

// patience is how long a device waits for the answer to its hello at least; most wait ten seconds, as the server does, and
// hang up in the same moment.
const patience = 9 * time.Second

// Leaves notes that a connection has ended. One that a newer connection of the device has followed says nothing of that.
func (l *Log) Leaves(e End) {
	l.of(e.Device, func(r *record, now time.Time) {
		if e.Serial < r.serial {
			return
		}
		switch step, open := r.marks.open(); {
		case e.NoWord:
			r.marks.fail(Hello, now, r.caller.From, why("contact/hello-late"))
		case r.turn != 0 && r.caller.Page:
			r.turn = 0
			r.marks.reach(Played, now, r.caller.From, why("contact/note-closed"))
		case r.turn != 0:
			r.turn = 0
			r.marks.fail(Played, now, r.caller.From, why("contact/played-gone", e.Why))
		case !open || step < Hello || r.marks[step].state == Failed:
		case step == Hello && now.Sub(r.marks[Token].at) >= patience:
			r.marks.fail(Hello, now, r.caller.From, why("contact/hello-late"))
		case step == Hello:
			r.marks.fail(Hello, now, r.caller.From, why("contact/hello-gone", e.Why))
		case step > Voice && e.Gone && !r.caller.Page:
			r.marks.fail(step, now, r.caller.From, why("contact/gone", e.Why))
		}
	})
}
