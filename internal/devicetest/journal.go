package devicetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// Kind tells the kinds of events apart.
type Kind string

// The kinds of events.
const (
	KindReceived  Kind = "received"  // a text message from the server; Type, State, Text, Emotion, Raw
	KindSent      Kind = "sent"      // a text message to the server; Type, State, Text, Raw
	KindFrame     Kind = "frame"     // an Opus packet from the server; Size is its length
	KindState     Kind = "state"     // the device's state changed; State is the new one
	KindTool      Kind = "tool"      // a tool was run; Type is its name, Text its result or error
	KindViolation Kind = "violation" // Type is the rule, Text the detail
	KindReply     Kind = "reply"     // a reply is complete; Reply holds it
	KindClosed    Kind = "closed"    // the connection is gone; Text says how
)

// Event is one thing that happened on the wire or inside the device.
type Event struct {
	At      time.Time
	Kind    Kind
	Type    string
	State   string
	Text    string
	Emotion string
	Size    int         // bytes of the message
	Raw     []byte      // of text messages
	Reply   *Reply      // of KindReply
	Light   *LightReply // of the final that completes it
}

// EndsTools reports whether the device has just sent the last page of its tools.
func (e Event) EndsTools() bool {
	return e.Kind == KindSent && e.Type == "mcp" &&
		bytes.Contains(e.Raw, []byte(`"tools":[`)) && !bytes.Contains(e.Raw, []byte(`"nextCursor"`))
}

// Stats are counters of one connection. Its fields are what a test or a load asks about afterwards.
type Stats struct {
	TextIn       int // text messages received
	FramesIn     int // Opus packets received
	TextOut      int
	FramesOut    int
	Dropped      int // packets that were not played: wrong state, no room, broken
	Flushed      int // packets thrown away by a change of state
	Underruns    int
	UnknownTypes int // messages of a type that the device does not know
	Unheard      int // frames that Say could not send because the microphone was off
	Replies      int
	Pings        int
	ToolCalls    int
	Crashes      int // by commands to things that were not exactly as they should be
}

// ErrClosed is returned when what was waited for cannot come any more.
var ErrClosed = errors.New("the device's connection is closed")

// Journal holds what happened on one connection, in order: its events, the
// breaches of the protocol and counters. All methods may be called at the same time.
type Journal struct {
	mu         sync.Mutex
	events     []Event
	violations []Violation
	stats      Stats
	changed    chan struct{} // closed and replaced at each new event
	cursor     int           // how far Wait has read
	replies    int           // how far WaitReply has read
	ended      bool
}

func newJournal() *Journal { return &Journal{changed: make(chan struct{})} }

// Events returns all events so far.
func (j *Journal) Events() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

// Violations returns all breaches so far.
func (j *Journal) Violations() []Violation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.violations)
}

// Stats returns the counters so far.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

// Watch gives every event, past and to come, until ctx or the connection ends.
func (j *Journal) Watch(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for i := 0; ; i++ {
			e, err := j.next(ctx, i)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// Wait returns the first event that matches, among those after the one that Wait
// last returned. It fails when ctx or the connection ends first.
func (j *Journal) Wait(ctx context.Context, match func(Event) bool) (Event, error) {
	return j.wait(ctx, &j.cursor, match)
}

// WaitText waits, as [Journal.Wait] does, for a message of the given type, and state if that is not empty.
func (j *Journal) WaitText(ctx context.Context, kind, state string) (Event, error) {
	return j.Wait(ctx, func(e Event) bool {
		return e.Kind == KindReceived && e.Type == kind && (state == "" || e.State == state)
	})
}

// WaitReply returns the next complete reply, each one once.
func (j *Journal) WaitReply(ctx context.Context) (*Reply, error) {
	e, err := j.wait(ctx, &j.replies, func(e Event) bool { return e.Kind == KindReply })
	return e.Reply, err
}

func (j *Journal) count(change func(*Stats)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.stats)
}

func (j *Journal) add(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.addLocked(e)
}

func (j *Journal) addLocked(e Event) {
	j.events = append(j.events, e)
	j.wake()
}

// wake lets those go on that wait for a change. The caller holds mu.
func (j *Journal) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *Journal) violate(at time.Time, rule Rule, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	v := Violation{At: at, Rule: rule, Detail: fmt.Sprintf(format, args...)}
	j.violations = append(j.violations, v)
	j.addLocked(Event{At: at, Kind: KindViolation, Type: string(rule), Text: v.Detail})
}

func (j *Journal) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.events)
}

// end marks that no event follows.
func (j *Journal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	j.wake()
}

// next gives event i, waiting for it until ctx or the journal ends.
func (j *Journal) next(ctx context.Context, i int) (Event, error) {
	for {
		j.mu.Lock()
		changed, ended := j.changed, j.ended
		if i < len(j.events) {
			e := j.events[i]
			j.mu.Unlock()
			return e, nil
		}
		j.mu.Unlock()
		if ended {
			return Event{}, ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// wait finds the first event from *cursor on that matches, and moves the cursor behind it.
func (j *Journal) wait(ctx context.Context, cursor *int, match func(Event) bool) (Event, error) {
	j.mu.Lock()
	i := *cursor
	j.mu.Unlock()
	for {
		e, err := j.next(ctx, i)
		if err != nil {
			return Event{}, err
		}
		i++
		if match(e) {
			j.mu.Lock()
			*cursor = max(*cursor, i)
			j.mu.Unlock()
			return e, nil
		}
	}
}

// Rule names one requirement of the device protocol that a server can break.
type Rule string

// Timed says whether a rule is about time, so that a busy machine can make a good server break it.
func (r Rule) Timed() bool {
	switch r {
	case RuleHelloLate, RuleLateClose, RuleStartAfterAbort, RuleStopEarly, RuleStopLate, RuleStopMissing, RuleAbortSlow, RuleAbortFrames,
		RuleSentenceEarly, RuleEarlyFrame, RuleFrameDropped, RuleQueueFull, RuleLeadHigh, RuleLeadLow, RuleUnderrun:
		return true
	default:
		return false
	}
}

// The rules of opening a connection (sections 1.3, 2.1 and 2.3).
const (
	RuleOTA            Rule = "ota"             // a provisioning reply that a device cannot use
	RuleUpgrade        Rule = "upgrade"         // extensions or subprotocols that were not asked for
	RuleHelloTransport Rule = "hello_transport" // no string transport "websocket": reboots the device
	RuleHelloLate      Rule = "hello_late"      // no hello within 10 s
	RuleHelloAgain     Rule = "hello_again"     // more than one hello on a connection
	RuleHelloAudio     Rule = "hello_audio"     // a rate or frame length the device cannot decode
	RuleBeforeHello    Rule = "before_hello"    // anything sent before the hello
	RuleSessionID      Rule = "session_id"      // missing, malformed, or not the hello's
)

// The rules of text messages (sections 2.5, 3 and 5).
const (
	RuleJSON       Rule = "json"        // not one JSON object
	RuleType       Rule = "type"        // type, state, text or emotion missing or not a string
	RuleTooLong    Rule = "too_long"    // text over 8 KiB or binary over 1.5 KiB
	RuleTooDeep    Rule = "too_deep"    // JSON nested 16 levels or more
	RuleAbortEcho  Rule = "abort_echo"  // a message of type abort sent to a device
	RuleEmotion    Rule = "emotion"     // a face that not all displays have
	RuleCommand    Rule = "command"     // a system command that no firmware knows
	RuleGlyphs     Rule = "glyph_push"  // glyphs for a device that did not ask for them
	RuleStale      Rule = "stale"       // a channel left without data for over 120 s
	RuleLateClose  Rule = "late_close"  // TCP still open 1 s after the Close frame
	RuleFlood      Rule = "flood"       // more messages than the main task can ever keep up with
	RuleIoT        Rule = "iot"         // a command that crashes older firmware, or one sent to newer firmware
	RuleMCPSilent  Rule = "mcp_silent"  // a request that the firmware drops without an answer
	RuleMCPID      Rule = "mcp_id"      // an id that is a duplicate or outside 1..2147483647
	RuleMCPBusy    Rule = "mcp_busy"    // a second tools/call while one is in flight
	RuleMCPRequest Rule = "mcp_request" // other defects of a request: version, vision url, stackSize
)

// The rules of a reply (sections 3.1, 3.2.4, 3.4, 4.2 and 4.3).
const (
	RuleStartTwice       Rule = "start_twice"        // tts start inside a reply
	RuleStartConnecting  Rule = "start_connecting"   // tts start while the device is connecting: refused
	RuleStartAfterAbort  Rule = "start_after_abort"  // tts start before the stop that an abort is owed
	RuleStopUnpaired     Rule = "stop_unpaired"      // tts stop with neither a start nor an abort
	RuleStopEarly        Rule = "stop_early"         // tts stop before the sound was played
	RuleStopLate         Rule = "stop_late"          // tts stop more than 120 ms after play-out
	RuleStopMissing      Rule = "stop_missing"       // no tts stop at all
	RuleAbortSlow        Rule = "abort_slow"         // tts stop more than 50 ms after an abort
	RuleAbortFrames      Rule = "abort_frames"       // more than the closing frame after an abort
	RuleAbortLoud        Rule = "abort_loud"         // a cut reply that does not end with a silent frame
	RuleSentenceEarly    Rule = "sentence_early"     // subtitle more than 360 ms before its sound
	RuleOutsideReply     Rule = "outside_reply"      // sentence_start or emotion outside a reply
	RuleSTTInReply       Rule = "stt_in_reply"       // stt between tts start and tts stop
	RuleEarlyFrame       Rule = "early_frame"        // sound within 100 ms after tts start
	RuleFrameOutside     Rule = "frame_outside"      // sound before tts start or after tts stop
	RuleFrameDropped     Rule = "frame_dropped"      // sound that met a device which is not speaking
	RuleQueueFull        Rule = "queue_full"         // sound for which the device had no room
	RuleTimestamp        Rule = "timestamp"          // playback timestamps that do not fit the hello
	RuleFraming          Rule = "framing"            // a header that does not say what follows it
	RulePacket           Rule = "packet"             // not mono Opus, or not decodable
	RulePacketDuration   Rule = "packet_duration"    // a packet that is not as long as the hello said
	RuleLeadHigh         Rule = "lead_high"          // more sound sent ahead than allowed
	RuleLeadLow          Rule = "lead_low"           // less than 180 ms ahead (Limits.StrictLead)
	RuleUnderrun         Rule = "underrun"           // sound that came after the speaker fell silent (Limits.StrictLead)
	RuleCloseInsideReply Rule = "close_inside_reply" // connection closed by the server inside a reply
)

// The rules for peers of the light dialect (docs/mcp.md, "Dialects").
const (
	RuleLightBytes   Rule = "light_bytes"   // a frame that differs from the written form
	RuleLightFraming Rule = "light_framing" // an envelope where frames are bare, or none where they are not
	RuleLightForeign Rule = "light_foreign" // sound, or a message that is no JSON-RPC, to a peer that said no hello
	RuleLightID      Rule = "light_id"      // a call whose id is empty or was used before
	RuleLightReply   Rule = "light_reply"   // a second final of a reply
)

// Violation is one breach of a rule, seen at a moment.
type Violation struct {
	At     time.Time
	Rule   Rule
	Detail string
}

// String is the rule and what happened, without the time.
func (v Violation) String() string {
	if v.Detail == "" {
		return string(v.Rule)
	}
	return fmt.Sprintf("%s: %s", v.Rule, v.Detail)
}

// ViolationError is a violation after which a device cannot go on. Dial returns it.
type ViolationError struct{ Violation }

// Error is the rule and what happened.
func (e *ViolationError) Error() string { return "device protocol: " + e.String() }
