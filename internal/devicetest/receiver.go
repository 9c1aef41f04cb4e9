package devicetest

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/audio"
)

const (
	staleAfter = 120 * time.Second // silence after which the firmware takes a channel for dead
	closeLimit = time.Second       // from Close frame to the end of TCP
	closeGrace = 5 * time.Second   // how long a late end is waited for
	pongLimit  = 5 * time.Second
)

// receiver is the network task of the device, a goroutine: it reads the socket,
// judges each message at its arrival, and hands text to the main task.
type receiver struct {
	link     *link
	body     *body
	journal  *Journal
	main     *mainTask
	downlink *downlink
	requests *requests
	freezer  *freezer
	options  Options

	greeted chan error // the outcome of the hello; holds one
	lastIn  time.Time  // last text or binary message
}

// run reads until the connection ends.
func (r *receiver) run() {
	defer close(r.link.gone)
	for {
		kind, data, err := r.link.ws.ReadMessage()
		if err != nil {
			r.finish(time.Now(), err)
			return
		}
		r.freezer.pass()
		now := time.Now()
		r.checkStale(now)
		switch kind {
		case websocket.TextMessage:
			r.onText(now, data)
		case websocket.BinaryMessage:
			r.downlink.receive(now, data)
		}
	}
}

// finish notes how the connection ended. After a Close frame it waits for the
// server to end TCP, as the firmware leaves that to it.
func (r *receiver) finish(now time.Time, err error) {
	ours := r.link.closed.Load()
	r.body.mu.Lock()
	open := r.body.check.reply != nil && !r.body.check.isCut()
	r.body.mu.Unlock()
	how := "by the device"
	var closing *websocket.CloseError
	switch {
	case ours:
	case errors.As(err, &closing) && closing.Code != websocket.CloseAbnormalClosure:
		how = fmt.Sprintf("by the server: close %d %s", closing.Code, closing.Text)
		r.main.deliver(job{act: func() error { r.main.enter(now, Idle); return nil }, done: make(chan error, 1)})
		raw := r.link.ws.NetConn()
		_ = raw.SetReadDeadline(now.Add(closeGrace)) // else the transport is gone already
		_, _ = io.Copy(io.Discard, raw)              // ends with the connection or at the deadline; both are judged by the clock
		if took := time.Since(now); took > closeLimit+r.options.Limits.Tolerance && !r.link.closed.Load() {
			r.journal.violate(time.Now(), RuleLateClose, "TCP was open for %s after the Close frame", took)
		}
	default:
		how = "by the server: " + err.Error()
	}
	if !ours {
		r.checkStale(now)
		if open {
			r.journal.violate(now, RuleCloseInsideReply, "%s", how)
		}
	}
	r.link.ws.Close()
	r.journal.add(Event{At: time.Now(), Kind: KindClosed, Text: how})
}

func (r *receiver) checkStale(now time.Time) {
	quiet := now.Sub(r.lastIn)
	r.lastIn = now
	if quiet > staleAfter+r.options.Limits.Tolerance {
		r.journal.violate(now, RuleStale, "no data for %s", quiet)
	}
}

func (r *receiver) onText(now time.Time, raw []byte) {
	bad := func(rule Rule, format string, args ...any) { r.journal.violate(now, rule, format, args...) }
	m := parseText(raw, bad)
	r.journal.count(func(s *Stats) { s.TextIn++ })
	if m == nil {
		r.journal.add(Event{At: now, Kind: KindReceived, Size: len(raw), Raw: raw})
		return
	}
	r.journal.add(Event{
		At: now, Kind: KindReceived, Type: m.kind, State: m.state, Text: m.text, Emotion: m.emotion, Size: len(raw), Raw: raw,
	})
	switch hello := r.link.hello.Load(); {
	case m.kind == "hello":
		if hello != nil {
			bad(RuleHelloAgain, "a second hello on this connection")
		} else {
			r.onHello(now, m, bad)
		}
		return
	case hello == nil:
		bad(RuleBeforeHello, "%s before the hello", m.kind)
	case !m.hasSession:
		bad(RuleSessionID, "%s message without session_id", m.kind)
	case m.session != hello.session:
		bad(RuleSessionID, "%s message with session_id %q, the hello said %q", m.kind, m.session, hello.session)
	}
	r.follow(now, m)
	if !r.main.deliver(job{message: m, at: now}) {
		bad(RuleFlood, "%d messages wait for the main task; %s is lost", jobsLimit, m.kind)
	}
}

func (r *receiver) onHello(now time.Time, m *inbound, bad breach) {
	h, err := parseHello(m, bad)
	if pcm := h.format == "pcm"; err == nil && pcm != r.options.Sound.PCM {
		bad(RuleHelloAudio, "format %q, which is not what was offered", h.format)
	}
	if err != nil {
		bad(RuleHelloTransport, "%s", err)
		r.greet(&ViolationError{Violation{At: now, Rule: RuleHelloTransport, Detail: err.Error()}})
		return
	}
	r.body.mu.Lock()
	err = r.body.speaker.open(h.rate)
	r.body.mu.Unlock()
	r.link.hello.Store(&h)
	if err != nil {
		err = &ViolationError{Violation{At: now, Rule: RuleHelloAudio, Detail: err.Error()}}
	}
	r.body.enter(now, cmp.Or(r.options.Profile.traits().rests, Connecting))
	r.greet(err)
}

// greet tells Dial the outcome of the hello; only the first one counts.
func (r *receiver) greet(err error) {
	select {
	case r.greeted <- err:
	default:
	}
}

// follow notes what a message means on the wire, at its arrival.
func (r *receiver) follow(now time.Time, m *inbound) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m.kind {
	case "tts":
		switch m.state {
		case "start":
			m.reply = b.check.start(now, b.speaker.rate)
		case "sentence_start":
			b.check.sentenceStart(now, m.text)
		case "stop":
			m.reply = b.check.stop(now, b.mode)
		}
	case "stt":
		b.check.stt(now, m.text)
	case "llm":
		b.check.emotion(now, m.emotion, m.text)
	case "mcp":
		r.requests.check(now, m, r.options.offersMCP())
	case "abort":
		r.journal.violate(now, RuleAbortEcho, "devices know no abort message")
	case "alert", "system", "custom":
	case "iot":
		if len(r.options.Things) == 0 {
			r.journal.count(func(s *Stats) { s.UnknownTypes++ })
			r.journal.violate(now, RuleIoT, "iot message to a device without things")
		}
	default:
		r.journal.count(func(s *Stats) { s.UnknownTypes++ })
	}
}

// downlink judges the binary messages of the server and hands their sound to the
// loudspeaker, if the device's present state lets it. Only the receiver calls it.
type downlink struct {
	link    *link
	body    *body
	journal *Journal
	sound   Sound
	stamped uint32 // the largest timestamp so far
}

// receive takes a binary message, as the network task of the firmware does.
func (d *downlink) receive(now time.Time, data []byte) {
	if len(data) > maxBinary && !d.sound.PCM {
		d.journal.violate(now, RuleTooLong, "binary message of %d bytes, at most %d", len(data), maxBinary)
	}
	if d.sound.OnFrame != nil {
		d.sound.OnFrame(now, data)
	} else {
		d.journal.add(Event{At: now, Kind: KindFrame, Size: len(data)})
	}
	d.journal.count(func(s *Stats) { s.FramesIn++ })
	if !d.unpack(now, data) {
		d.journal.count(func(s *Stats) { s.Dropped++ })
	}
}

// unpack takes the packet out of its frame and plays it. False: it is lost.
func (d *downlink) unpack(now time.Time, data []byte) bool {
	if d.link.hello.Load() == nil {
		d.journal.violate(now, RuleBeforeHello, "a frame before the hello")
		return false
	}
	packet, timestamp, err := frameDown(d.link.protocol, data)
	if err != nil {
		d.journal.violate(now, RuleFraming, "%s", err)
		return false
	}
	switch { // with echo cancelling timestamps grow, without it they are 0 (4.5); only framing 2 carries them
	case d.link.protocol != 2:
	case !d.sound.AEC && timestamp != 0:
		d.journal.violate(now, RuleTimestamp, "timestamp %d to a device without echo cancelling by the server", timestamp)
	case d.sound.AEC && timestamp <= d.stamped:
		d.journal.violate(now, RuleTimestamp, "timestamp %d after %d: must grow", timestamp, d.stamped)
	}
	d.stamped = max(d.stamped, timestamp)
	length, ok := d.checkPacket(now, packet)
	return ok && d.play(now, packet, length, timestamp)
}

// checkPacket holds what the decoder needs (4.2). False: the packet cannot be played.
func (d *downlink) checkPacket(now time.Time, packet []byte) (time.Duration, bool) {
	if len(packet) == 0 {
		d.journal.violate(now, RulePacket, "an empty frame")
		return 0, false
	}
	if d.sound.PCM {
		return d.checkPCM(now, packet)
	}
	if packet[0]&0x04 != 0 { // the stereo bit (RFC 6716, 3.1)
		d.journal.violate(now, RulePacket, "a stereo packet")
	}
	length, err := audio.PacketDuration(packet)
	if err != nil {
		d.journal.violate(now, RulePacket, "%s", err)
		return 0, false
	}
	agreed := d.link.agreed().packet()
	if length != agreed {
		d.journal.violate(now, RulePacketDuration, "a packet of %s, the hello said %s", length, agreed)
	}
	return length, length <= agreed || d.body.traits.rests != ""
}

// play gives a packet to the reply that it belongs to and to the loudspeaker. It
// reports false for a packet that is lost.
func (d *downlink) play(now time.Time, packet []byte, length time.Duration, timestamp uint32) bool {
	b := d.body
	b.mu.Lock()
	defer b.mu.Unlock()
	reply := b.check.frame(now)
	kept := d.take(now, packet, length, reply, timestamp)
	if reply == nil {
		return kept
	}
	if !kept {
		reply.Dropped++
	}
	if more := reply.Underruns - reply.counted; more > 0 {
		reply.counted = reply.Underruns
		d.journal.count(func(s *Stats) { s.Underruns += more })
	}
	return kept
}

// take puts a packet into the playback queue if the state allows it. The caller holds the body's lock.
func (d *downlink) take(now time.Time, packet []byte, length time.Duration, reply *Reply, timestamp uint32) bool {
	b := d.body
	if b.state != Speaking && !b.traits.anyState && !b.check.startsSoon(now) {
		if b.check.isCut() { // what is on its way when the device cuts a reply is no fault
			// The closing frame is judged, not played.
			b.check.silent = d.decoded(now, b.speaker.decodeWith(cmp.Or(b.speaker.outlived, b.speaker.decoder), packet)).silent
		} else {
			d.journal.violate(now, RuleFrameDropped, "a frame met a device that is %s", b.state)
		}
		return false
	}
	sound := d.decoded(now, b.speaker.decode(packet))
	if sound.pcm == nil && !b.speaker.mute {
		return false
	}
	from, before, kept := b.speaker.accept(now, length, sound, reply, timestamp)
	if !kept {
		d.journal.violate(now, RuleQueueFull, "%d packets wait already", b.speaker.player.limit)
	}
	if !from.IsZero() {
		b.check.placed(now, from, before, length, sound.silent)
	}
	return kept
}

// decoded notes a packet that holds no sound.
func (d *downlink) decoded(now time.Time, sound sample) sample {
	if sound.err != nil {
		d.journal.violate(now, RulePacket, "%s", sound.err)
	}
	return sound
}

// Lengths of the binary headers (2.4).
const (
	header2 = 16
	header3 = 4
)

// frameUp puts the header of the device's framing version before an Opus packet.
func frameUp(protocol int, timestamp uint32, packet []byte) []byte {
	switch protocol {
	case 2:
		b := make([]byte, header2, header2+len(packet))
		binary.BigEndian.PutUint16(b[0:], 2)
		binary.BigEndian.PutUint32(b[8:], timestamp)
		binary.BigEndian.PutUint32(b[12:], uint32(len(packet)))
		return append(b, packet...)
	case 3:
		b := make([]byte, header3, header3+len(packet))
		binary.BigEndian.PutUint16(b[2:], uint16(len(packet)))
		return append(b, packet...)
	default:
		return packet
	}
}

// frameDown takes the header off a binary message. The error says which field lies.
func frameDown(protocol int, data []byte) (packet []byte, timestamp uint32, err error) {
	header := []int{0, 0, header2, header3}[protocol]
	if len(data) < header {
		return nil, 0, fmt.Errorf("framing %d needs a header of %d bytes, got %d", protocol, header, len(data))
	}
	packet = data[header:]
	version, kind, size := protocol, 0, int64(len(packet))
	switch protocol {
	case 2:
		version, kind = int(binary.BigEndian.Uint16(data)), int(binary.BigEndian.Uint16(data[2:]))
		timestamp, size = binary.BigEndian.Uint32(data[8:]), int64(binary.BigEndian.Uint32(data[12:]))
	case 3:
		kind, size = int(data[0]), int64(binary.BigEndian.Uint16(data[2:]))
	}
	switch {
	case version != protocol:
		return nil, 0, fmt.Errorf("framing %d header says version %d", protocol, version)
	case kind != 0:
		return nil, 0, fmt.Errorf("framing %d header says type %d", protocol, kind)
	case size != int64(len(packet)):
		return nil, 0, fmt.Errorf("framing %d header says %d bytes, %d follow", protocol, size, len(packet))
	}
	return packet, timestamp, nil
}
