package connection

import (
	"context"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
)

// NoticeKind is the occasion of a notice.
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
	noticeGuard = 105 * time.Millisecond // from tts start to the first frame (docs/protocol.md 3.1)
	noticeLead  = 4                      // frames sent ahead
	noticeAfter = 100 * time.Millisecond // from the end of play-out to tts stop
	noticeWait  = 5 * time.Second        // for the device to listen; then it is let go without a word
	noticeGreet = 300 * time.Millisecond // without a listen start after a wake word
	noticePress = 10 * time.Second       // for a button that is held to be let go
	noticeTurn  = ^uint64(0)             // no turn of a conversation has this number
)

// speech says one notice to one device: a reply like any other to it, tts start,
// its sentence, paced frames, tts stop. Then the session ends. The device's events
// come from the reader, one goroutine runs it.
type speech struct {
	farewell *farewell
	notice   Notice
	cause    error           // the end of the session
	events   chan wire.Event // 8; what finds it full is ignored
	over     chan struct{}   // closed when all was said
}

// note takes in what the device does. It never waits.
func (s *speech) note(ev wire.Event) {
	select {
	case s.events <- ev:
	default:
	}
}

// turnAway waits until the device can hear, says the notice and ends the connection.
func (s *speech) turnAway(ctx context.Context) {
	if !s.awaitListening(ctx) {
		close(s.over)
		s.farewell.down.end(s.cause)
		return
	}
	s.say(ctx)
}

// awaitListening waits until the device has opened its microphone: before that
// it refuses a reply. A wake word is followed by a listen start, or by none. A
// button that is held has to be let go: with that a device is idle, whatever it
// is being told.
func (s *speech) awaitListening(ctx context.Context) bool {
	timer := time.NewTimer(noticeWait)
	defer timer.Stop()
	awake := false
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return awake
		case ev := <-s.events:
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
				s.put(wire.Message{Kind: wire.MessageTTSStop})
			}
		}
	}
}

// say says the notice to a device that listens, and ends the connection
// when the device has heard it or cuts it. The device gets its tts stop in every
// case, also when ctx ends first.
func (s *speech) say(ctx context.Context) {
	defer s.farewell.down.end(s.cause)
	defer close(s.over)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	began := time.Now()
	first := began.Add(noticeGuard)
	s.put(wire.Message{Kind: wire.MessageTTSStart, Turn: noticeTurn})
	if !s.hold(ctx, timer, began, first) {
		s.cut(0)
		return
	}
	s.put(wire.Message{Kind: wire.MessageSentenceStart, Turn: noticeTurn, Text: s.notice.Text})
	for i, packet := range s.notice.Packets {
		due := first.Add(time.Duration(max(0, i-noticeLead+1)) * audio.Reply.Frame)
		if !s.hold(ctx, timer, began, due) {
			s.cut(i)
			return
		}
		s.farewell.down.audio(noticeTurn, packet)
	}
	heard := first.Add(time.Duration(len(s.notice.Packets)) * audio.Reply.Frame)
	if !s.hold(ctx, timer, began, heard.Add(noticeAfter)) {
		s.cut(len(s.notice.Packets))
		return
	}
	s.put(wire.Message{Kind: wire.MessageTTSStop, Turn: noticeTurn})
}

// hold waits until a moment. False: the device cuts the notice, or ctx has ended.
func (s *speech) hold(ctx context.Context, timer *time.Timer, began, until time.Time) bool {
	timer.Reset(time.Until(until))
	for {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case ev := <-s.events:
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
func (s *speech) cut(sent int) {
	m := wire.Message{Kind: wire.MessageTTSStop, Turn: noticeTurn, Cut: true}
	if sent > 0 {
		m.Closing = s.notice.Closing
	}
	s.put(m)
}

// put queues a control message of the notice itself.
func (s *speech) put(m wire.Message) {
	f := s.farewell
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down.write(m)
}
