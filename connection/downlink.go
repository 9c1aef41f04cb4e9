package connection

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp/light"
	"xiaozhi/mcp/rawjson"
)

// downlink turns what conversation and tools say to a device into entries of its
// queue. It is the [wire.Outbox] of the conversation; all its methods may be
// called at the same time.
type downlink struct {
	session  string // id, in every message
	stamps   bool   // packets from the device carry stamps; set before the conversation begins
	log      *slog.Logger
	queue    *outgoing
	writer   *writer
	dialects *dialects
	counts   *counters
	end      func(error)

	registered func() bool // the device has registered tools of its own
}

func newDownlink(s *Session) *downlink {
	d := &downlink{session: s.id, log: s.log, dialects: &dialects{}, counts: s.counts, end: s.life.end}
	d.queue = newOutgoing(func() { s.life.start("writer", d.writer.run) })
	d.writer = &writer{queue: d.queue, transport: s.transport, counts: s.counts, end: s.life.end, done: make(chan struct{})}
	return d
}

// pcm is the codec of a client that speaks PCM; nil: it speaks Opus.
func (d *downlink) pcm() *pcmCodec { return d.writer.pcm.Load() }

// Send queues a control message ([wire.Outbox]).
func (d *downlink) Send(m wire.Message) {
	if d.sendSpeech(m) || d.dialects.mutes(m.Turn) {
		return
	}
	text, err := textOf(d.session, m)
	if err != nil {
		d.log.Error("message to device cannot be written as json", "err", err)
		return
	}
	if text == nil {
		return
	}
	var ok bool
	if m.Kind == wire.MessageTTSStop {
		ok = d.queue.putStop(m.Turn, m.Cut, m.Closing, text)
	} else {
		_, ok = d.queue.putText(text)
	}
	if !ok {
		d.end(ErrStuck)
	}
}

// Audio queues one Opus packet of a turn ([wire.Outbox]). What is kept from the
// device counts as taken: it is spoken all the same.
func (d *downlink) Audio(turn uint64, packet []byte) (stamp uint32, ok bool) {
	if d.dialects.mutes(turn) {
		return d.queue.lastStamp(), true
	}
	if stamp, ok = d.queue.putAudio(turn, packet); !ok {
		d.counts.refused.Add(1)
	}
	return stamp, ok
}

// Lag returns the wait of the oldest queued frame ([wire.Outbox]).
func (d *downlink) Lag() time.Duration { return d.queue.lag() }

// HangUp ends the session in good order ([wire.Outbox]), by the [Reason] with which
// the conversation was asked to end, if it was.
func (d *downlink) HangUp(cause error) {
	if _, asked := errors.AsType[*Reason](cause); !asked {
		cause = &Reason{Text: "conversation hung up", Err: cause}
	}
	d.end(cause)
}

// sendSpeech tells a device that has registered its tools what is said, in the
// light dialect, and reports whether m is a message of that dialect.
func (d *downlink) sendSpeech(m wire.Message) bool {
	var kind string
	switch m.Kind {
	case wire.MessageChunk:
		kind = light.Chunk
	case wire.MessageFinal:
		kind = light.Final
	case wire.MessageThought:
		kind = light.Thought
	default:
		return false
	}
	if !d.registered() {
		return true
	}
	frame, err := light.Message(kind, m.Text)
	if err == nil {
		err = d.sendRPC(frame, d.dialects.bare.Load())
	}
	if err != nil {
		d.log.Debug("ai message not sent", "kind", kind, "err", err)
	}
	return true
}

// refuse answers the registration of a device that is not accepted.
func (d *downlink) refuse(id json.RawMessage, why string) {
	if _, ok := rawjson.String(id); !ok {
		return
	}
	frame, err := light.Refusal(id, why)
	if err == nil {
		err = d.sendRPC(frame, d.dialects.bare.Load())
	}
	if err != nil {
		d.log.Debug("refusal not sent", "err", err)
	}
}

// sendRPC queues a JSON-RPC payload, as it is or in the envelope.
func (d *downlink) sendRPC(payload json.RawMessage, bare bool) error {
	if bare {
		return d.sendText(payload)
	}
	return d.sendWrapped(mcpMessage{d.session, "mcp", payload})
}

// sendWrapped queues a message with a payload of others in it.
func (d *downlink) sendWrapped(message any) error {
	text, err := rawjson.Marshal(message)
	if err != nil {
		return fmt.Errorf("wrap message to device: %w", err)
	}
	return d.sendText(text)
}

// sendText queues a message of others, which must know whether it was taken.
func (d *downlink) sendText(text []byte) error {
	live, ok := d.queue.putText(text)
	if !ok {
		d.end(ErrStuck)
		return ErrStuck
	}
	if !live {
		return ErrLeft
	}
	return nil
}
