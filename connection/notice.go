package connection

import (
	"context"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
)

// The door itself has two things to say aloud, and says them without a
// conversation or an engine: that it is too busy to let a device in, and that
// the server stops. A notice is a reply like any other to the device: tts start,
// its sentence, paced frames, tts stop. Then the connection ends.

// NoticeKind says what a notice is about.
type NoticeKind int

// The notices.
const (
	NoticeBusy     NoticeKind = iota // too much to do for one device more
	NoticeStopping                   // the server stops, and nothing new is begun
)

// Notice is a phrase as text and as sound that was encoded before.
type Notice struct {
	Text    string
	Packets [][]byte // Opus in the format of audio.Reply; shared, never written to
	Closing []byte   // one silent packet, for a notice that is cut
}

// The times of a notice.
const (
	noticeGuard = 105 * time.Millisecond // from tts start to the first frame (section 3.1)
	noticeLead  = 4                      // frames sent ahead
	noticeAfter = 100 * time.Millisecond // from the end of play-out to tts stop
	noticeWait  = 5 * time.Second        // for the device to listen; then it is let go without a word
	noticeGreet = 300 * time.Millisecond // without a listen start after a wake word
	noticePress = 10 * time.Second       // for a button that is held to be let go
	noticeTurn  = ^uint64(0)             // no turn of a conversation has this number
)

// doorman says one notice to one device. While a connection has one, its
// conversation is neither heard nor told anything. The device's events come from
// the reader, one goroutine runs it.
type doorman struct {
	c      *conn
	notice Notice
	cause  error           // the end of the connection
	events chan wire.Event // 8; what finds it full is ignored
	over   chan struct{}   // closed when it has said all it will
}

func newDoorman(c *conn, n Notice, cause error) *doorman {
	return &doorman{c: c, notice: n, cause: cause, events: make(chan wire.Event, 8), over: make(chan struct{})}
}

// note takes in what the device does. It never waits.
func (d *doorman) note(ev wire.Event) {
	select {
	case d.events <- ev:
	default:
	}
}

// turnAway waits until the device can hear, says the notice and ends the connection.
func (d *doorman) turnAway(ctx context.Context) {
	if !d.awaitListening(ctx) {
		close(d.over)
		d.c.end(d.cause)
		return
	}
	d.announce(ctx)
}

// awaitListening waits until the device has opened its microphone: before that
// it refuses a reply. A wake word is followed by a listen start, or by none. A
// button that is held has to be let go: with that a device is idle, whatever it
// is being told.
func (d *doorman) awaitListening(ctx context.Context) bool {
	timer := time.NewTimer(noticeWait)
	defer timer.Stop()
	awake := false
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return awake
		case ev := <-d.events:
			switch ev := ev.(type) {
			case wire.ListenStart:
				if ev.Mode != wire.Manual {
					return true
				}
				awake = true
				timer.Reset(noticePress)
			case wire.ListenStop:
				return true
			case wire.Detect:
				awake = true
				timer.Reset(noticeGreet)
			case wire.Abort:
				d.c.put(wire.Message{Kind: wire.MessageTTSStop})
			}
		}
	}
}

// announce says the notice to a device that listens, and ends the connection
// when the device has heard it or cuts it. The device gets its tts stop in every
// case, also when ctx ends first.
func (d *doorman) announce(ctx context.Context) {
	defer d.c.end(d.cause)
	defer close(d.over)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	began := time.Now()
	first := began.Add(noticeGuard)
	d.c.put(wire.Message{Kind: wire.MessageTTSStart, Turn: noticeTurn})
	if !d.hold(ctx, timer, began, first) {
		d.cut(0)
		return
	}
	d.c.put(wire.Message{Kind: wire.MessageSentenceStart, Turn: noticeTurn, Text: d.notice.Text})
	for i, packet := range d.notice.Packets {
		due := first.Add(time.Duration(max(0, i-noticeLead+1)) * audio.Reply.Frame)
		if !d.hold(ctx, timer, began, due) {
			d.cut(i)
			return
		}
		if _, ok := d.c.out.putAudio(noticeTurn, packet); !ok {
			d.c.counts.refused.Add(1)
		}
	}
	heard := first.Add(time.Duration(len(d.notice.Packets)) * audio.Reply.Frame)
	if !d.hold(ctx, timer, began, heard.Add(noticeAfter)) {
		d.cut(len(d.notice.Packets))
		return
	}
	d.c.put(wire.Message{Kind: wire.MessageTTSStop, Turn: noticeTurn})
}

// hold waits until a moment. False: the device cuts the notice, or ctx has ended.
func (d *doorman) hold(ctx context.Context, timer *time.Timer, began, until time.Time) bool {
	timer.Reset(time.Until(until))
	for {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case ev := <-d.events:
			if cuts(ev, began) {
				return false
			}
		}
	}
}

// cuts reports whether the device ends a notice that began then by what it does.
// The listen start that belongs to a wake word does not; a wake word or a text
// does, which comes before it.
func cuts(ev wire.Event, began time.Time) bool {
	switch ev.(type) {
	case wire.Abort, wire.ListenStop, wire.Detect:
		return true
	case wire.ListenStart:
		return time.Since(began) > time.Second
	}
	return false
}

// cut ends the notice before its time, after so many frames.
func (d *doorman) cut(sent int) {
	m := wire.Message{Kind: wire.MessageTTSStop, Turn: noticeTurn, Cut: true}
	if sent > 0 {
		m.Closing = d.notice.Closing
	}
	d.c.put(m)
}
