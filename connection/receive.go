package connection

import (
	"cmp"
	"context"
	"encoding/json"

	"xiaozhi/connection/identity"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/rawjson"
)

// Text acts on one text message of the device. data may be used again when it
// returns. All messages of a device are mapped to methods here.
func (s *Session) Text(data []byte) {
	defer s.life.recover("reader")
	s.counts.textIn.Add(1)
	if !s.limits.allowText(len(data)) {
		s.warn("message dropped: the device sends more than it can mean", "bytes", len(data))
		return
	}
	m, err := parseText(data)
	if err != nil {
		s.counts.broken.Add(1)
		s.warn("message dropped", "err", err, "bytes", len(data))
		return
	}
	switch {
	case m.kind == "hello":
		s.hello(m.helloWire)
	case m.kind == "mcp":
		s.rpc(m)
	case s.dialogue.talk == nil:
		s.counts.early.Add(1)
		s.log.Debug("message before hello ignored", "type", text.Cut(m.kind, 32))
	case m.kind == "listen":
		s.listen(m)
	case m.kind == "abort":
		reason, _ := rawjson.String(m.Reason)
		s.post(wire.Abort{Reason: reason})
	case m.kind == "iot" && s.tools.deliverThings(m.thingsWire):
	case m.kind == "iot":
		s.counts.unknown.Add(1)
		s.log.Debug("iot message ignored")
	default:
		s.counts.unknown.Add(1)
		s.log.Debug("message of unknown type ignored", "type", text.Cut(m.kind, 32))
	}
}

// Audio hands one Opus packet to the conversation, or sound to the codec that makes one. stamp is the timestamp of the
// packet that the device was playing meanwhile, 0 where the transport knows none.
// The memory of packet may be used again when it returns.
func (s *Session) Audio(packet []byte, stamp uint32) {
	defer s.life.recover("reader")
	if !s.allowAudio(packet) || len(packet) == 0 {
		return
	}
	hear := func(packet []byte) { s.dialogue.talk.Hear(wire.Packet{Data: packet, Stamp: stamp}) }
	codec := s.down.pcm()
	if codec == nil {
		hear(packet)
		return
	}
	if err := codec.encode(packet, hear); err != nil {
		s.End(err)
	}
}

// agreePCM makes the codec of a client that wants PCM, or returns why it cannot have it.
func (s *Session) agreePCM(h Hello) error {
	switch {
	case !h.PCM:
		return nil
	case h.Misfit:
		return errPCMFormat
	}
	codec, err := newPCMCodec()
	if err != nil {
		return failed("a codec for pcm cannot be made", err)
	}
	s.down.writer.pcm.Store(codec)
	return nil
}

// AudioError counts a packet of sound that the transport cannot read, and warns
// of it with further attributes.
func (s *Session) AudioError(err error, attrs ...any) {
	if s.allowAudio(nil) {
		s.counts.broken.Add(1)
		s.warn("audio frame dropped", append([]any{"err", err}, attrs...)...)
	}
}

// allowAudio reports whether a packet may be heard: the device keeps to its
// limits, and has said hello.
func (s *Session) allowAudio(packet []byte) bool {
	s.counts.framesIn.Add(1)
	if !s.limits.allowSound(packet, s.down.pcm() != nil) {
		s.warn("audio frame dropped: the device sends faster than anybody can speak")
		return false
	}
	if s.dialogue.talk == nil || !s.down.dialects.greeted.Load() {
		s.counts.early.Add(1)
		return false
	}
	return true
}

// AllowControl counts a control frame of the transport, as a ping, and reports
// whether it is to be answered.
func (s *Session) AllowControl() bool { return s.limits.allowText(0) }

// warn logs a warning of what the device did, at most one a second.
func (s *Session) warn(msg string, args ...any) { s.limits.warn(s.log, msg, args...) }

func (s *Session) post(ev wire.Event) {
	if err := s.dialogue.talk.Post(ev); err != nil {
		s.End(overrun(err))
	}
}

// listen reads the three listen messages (docs/protocol.md 3.2).
func (s *Session) listen(m inbound) {
	state, _ := rawjson.String(m.State)
	switch state {
	case "start":
		mode, ok := m.mode()
		if !ok {
			s.warn("unknown listen mode, auto is used", "mode", text.Cut(string(m.Mode), 32))
		}
		s.post(wire.ListenStart{Mode: mode})
		s.tools.refresh()
		s.tools.listening()
	case "stop":
		s.post(wire.ListenStop{})
	case "detect":
		words, ok := rawjson.String(m.Text)
		if !ok && rawjson.Present(m.Text) {
			s.warn("detect text is not a string", "text", text.Cut(string(m.Text), 64))
		}
		s.post(wire.Detect{Text: words})
	default:
		s.counts.unknown.Add(1)
		s.log.Debug("listen message of unknown state ignored", "state", text.Cut(string(m.State), 32))
	}
}

// rpc hands a JSON-RPC payload to the dialect that it is for.
func (s *Session) rpc(m inbound) {
	payload := m.Payload
	if !m.bare {
		var err error
		if payload, err = payloadIn(m.Payload); err != nil {
			s.counts.broken.Add(1)
			s.warn("message dropped", "err", err)
			return
		}
	}
	head := readRPC(payload)
	switch {
	case head.method == methodRegister:
		s.register(head, payload, m.bare)
	case s.dialogue.talk == nil:
		s.counts.early.Add(1)
		s.log.Debug("message before hello ignored", "type", m.kind)
	case !s.tools.deliver(head, payload, m.bare):
		s.counts.unknown.Add(1)
		s.log.Debug("mcp message of a device without mcp ignored")
	}
}

// hello answers the first hello, before anything else is done, and starts the
// conversation, unless a registration has done so. There is exactly one answer
// per session (docs/protocol.md 2.3).
func (s *Session) hello(w helloWire) {
	dialects := s.down.dialects
	if dialects.greeted.Load() {
		s.warn("second hello ignored")
		return
	}
	if s.peer.Address == "" {
		s.End(ErrNoIdentity)
		return
	}
	h := w.read(s.peer)
	if len(h.Odd) > 0 {
		s.log.Warn("hello has fields that are not as they should be", "fields", h.Odd)
	}
	if err := s.agreePCM(h); err != nil {
		s.End(err)
		return
	}
	answer := newHelloAnswer(s.peer.Transport, s.id, h.PCM)
	if g, ok := s.transport.(Greeter); ok {
		s.down.stamps = g.Greet(h, &answer)
	}
	reply, err := rawjson.Marshal(answer)
	if err != nil {
		s.End(failed("hello cannot be written", err))
		return
	}
	s.down.queue.putText(reply)
	dialects.greeted.Store(true)
	s.log.Info("device said hello", "framing", h.Framing, "mcp", h.MCP, "aec", h.AEC, "pcm", h.PCM, "rate", h.Uplink.Rate, "frame", h.Uplink.Frame)
	busy := s.dialogue.talk == nil && s.peer.Guest.Away == nil && s.registry.tooBusy(s)
	s.tellHello(w, &h, busy)
	switch {
	case s.dialogue.talk != nil:
		s.tools.offerMCP(h.MCP)
	case s.peer.Guest.Away != nil:
		s.turnAway(turnedAway(s.peer.Guest.Away))
	case busy:
		s.log.Warn("device turned away: the server is too busy", "lateness", s.registry.opts.Load.Lag())
		s.turnAway(ErrBusy)
	default:
		s.converse(h.MCP)
	}
}

// tellHello tells whoever watches devices of a hello.
func (s *Session) tellHello(w helloWire, h *Hello, busy bool) {
	if report := s.registry.opts.Report; report != nil {
		raw, _ := rawjson.Marshal(w) // its members are JSON already
		report(Report{DeviceID: s.peer.Guest.ID, Serial: s.peer.Serial, Remote: s.peer.Remote, Hello: h, Raw: raw, Busy: busy})
	}
}

// register takes a registration of tools at any time. As the first that a device
// says, it stands for its hello (the light dialect has none), and without a
// Device-Id its mac_addr is the device's identity.
func (s *Session) register(head rpc, payload json.RawMessage, bare bool) {
	s.down.dialects.bare.Store(bare)
	if s.registry.opts.NewLight == nil {
		s.counts.unknown.Add(1)
		s.warn("registration of tools ignored: there is no light dialect here")
		return
	}
	if s.peer.Address == "" {
		address := addressIn(head.params)
		if address == "" {
			s.warn("registration refused: neither a Device-Id nor a mac_addr says who the device is")
			s.down.refuse(head.id, "mac_addr is missing or no address, and the connection has no Device-Id")
			return
		}
		s.registry.rename(s, address)
	}
	if away := s.peer.Guest.Away; away != nil {
		s.refuse(head, away)
		return
	}
	ready, ok := s.tools.register(s.session(), payload)
	if ok && ready && s.dialogue.talk == nil {
		s.log.Info("device registered before any hello")
		s.tellHello(helloWire{}, &Hello{}, false)
		s.converse(false)
	}
}

// refuse answers the registration of a device that may not talk, and tells it why.
func (s *Session) refuse(head rpc, away *identity.AwayError) {
	s.down.refuse(head.id, away.Error())
	if s.dialogue.talk == nil && !s.down.dialects.greeted.Load() {
		s.turnAway(turnedAway(away))
	}
}

func (s *Session) session() wire.Session {
	guest := s.peer.Guest
	set := s.registry.opts.Settings(guest.ID)
	return wire.Session{
		DeviceID: guest.ID, Unknown: guest.Unknown, SessionID: s.id,
		Language: s.registry.Language(guest.ID),
		Private:  guest.Private,
		Name:     cmp.Or(set.Name, guest.Name), Voice: set.Voice, AEC: s.down.stamps,
	}
}

func (s *Session) meet() wire.Session {
	s.met = true
	s.noHello.Stop()
	return s.session()
}

// turnAway lets the device be told that it may not talk, and why.
func (s *Session) turnAway(cause error) {
	session := s.meet()
	if s.registry.opts.NewFarewell == nil {
		s.End(cause)
		return
	}
	s.hold(s.registry.opts.NewFarewell(session, s.down, cause))
}

// converse makes the device's tools and its conversation, and runs them. mcp
// says that a hello has offered MCP.
func (s *Session) converse(mcp bool) {
	session := s.meet()
	sources, ok := s.tools.start(session, mcp)
	if !ok {
		return
	}
	talk, err := s.registry.opts.NewConversation(session, s.down, sources)
	if err != nil {
		s.End(failed("conversation cannot start", err))
		return
	}
	s.hold(talk)
}

func (s *Session) hold(talk Conversation) {
	s.dialogue.begin(talk, func() {
		s.life.start("conversation", func(ctx context.Context) {
			defer s.dialogue.ended()
			if err := talk.Run(ctx); err != nil && ctx.Err() == nil {
				s.End(failed("conversation failed", err))
				return
			}
			s.End(errDone)
		})
	})
}
