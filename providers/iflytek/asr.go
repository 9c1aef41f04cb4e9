package iflytek

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	soundFrame = 40 * time.Millisecond // 1280 bytes, as the vendor advises
	soundPace  = 2                     // a late connection may catch up so much faster than it is spoken
	maxAnswer  = 1 << 20               // bytes
	longest    = 55 * time.Second      // of a session, which the service ends after 60 s
	classicEnd = 10000                 // ms of silence after which the service ends a session: its maximum
	sparkEnd   = 60000                 // the same of the large model
)

// newASR makes the recogniser of a section.
func newASR(s service.Section) (providers.ASR, error) {
	large := s.Model(service.ASR, spark) != iat
	address := iatAddress
	if large {
		address = sparkAddress
	}
	c, err := newClient(s, address)
	if err != nil {
		return nil, err
	}
	e := &ears{
		client: c, large: large,
		language: s.Text("language", ""), accent: s.Text("accent", "mandarin"), domain: s.Text("domain", ""), extra: s.Extra,
	}
	return recognition.New(recognition.Options{
		Account: c.dialer.Account(), Tries: s.Tries(), Dial: e.dial, Frame: soundFrame, Pace: s.Number("pace", soundPace), Final: s.Timeouts.First, Longest: longest,
	}), nil
}

// ears holds the settings of a recogniser.
type ears struct {
	*client
	large    bool
	language string
	accent   string
	domain   string
	extra    map[string]any
}

// languageOf returns the service's name of a language.
func (e *ears) languageOf(tag string) string {
	base, _, _ := strings.Cut(tag, "-")
	switch {
	case e.language != "":
		return e.language
	case e.large || base != "en":
		return "zh_cn" // with which the large model understands English too
	}
	return "en_us"
}

// business are the parameters of a classic session.
func (e *ears) business(req providers.ASRRequest) map[string]any {
	m := map[string]any{
		"language": e.languageOf(req.Language), "domain": cmp.Or(e.domain, "iat"), "accent": e.accent, "vad_eos": classicEnd, "dwa": "wpgs", "ptt": 1, "nunum": 1,
	}
	maps.Copy(m, e.extra)
	return m
}

// parameter are those of the large model.
func (e *ears) parameter(req providers.ASRRequest) map[string]any {
	m := map[string]any{
		"domain": cmp.Or(e.domain, "slm"), "language": e.languageOf(req.Language), "accent": e.accent, "eos": sparkEnd, "dwa": "wpgs",
		"result": map[string]string{"encoding": "utf8", "compress": "raw", "format": "json"},
	}
	maps.Copy(m, e.extra)
	return map[string]any{"iat": m}
}

// dial opens a session. Its first message goes with the first sound.
func (e *ears) dial(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
	socket, err := e.client.dial(ctx)
	if err != nil {
		return nil, err
	}
	socket.Limit(maxAnswer)
	return &hearing{Socket: socket, ears: e, req: req, text: pieces{}}, nil
}

// hearing is one session of recognition.
type hearing struct {
	*transport.Socket
	ears *ears
	req  providers.ASRRequest

	messages int // of the sender
	text     pieces
	over     bool // of the receiver: the last message came
}

// Send sends a piece of sound.
func (h *hearing) Send(pcm []int16) error {
	status := statusMiddle
	if h.messages == 0 {
		status = statusFirst
	}
	return h.send(status, pcm)
}

// Finish sends the last message.
func (h *hearing) Finish() error { return h.send(statusLast, nil) }

// send sends a message with sound.
func (h *hearing) send(status int, pcm []int16) error {
	sound := make([]byte, 0, 2*len(pcm))
	for _, v := range pcm {
		sound = binary.LittleEndian.AppendUint16(sound, uint16(v))
	}
	h.messages++
	if h.ears.large {
		p := largeSound{}
		p.Audio.Encoding, p.Audio.Rate, p.Audio.Channels, p.Audio.Depth = "raw", h.req.Rate, 1, 16
		p.Audio.Seq, p.Audio.Status, p.Audio.Audio = h.messages, status, sound
		m := largeFrame{Header: largeHeader{h.ears.app, status}, Payload: p}
		if status == statusFirst {
			m.Parameter = h.ears.parameter(h.req)
		}
		return h.WriteJSON(m)
	}
	m := classicFrame{Data: classicSound{status, "audio/L16;rate=16000", "raw", sound}}
	if status == statusFirst {
		m.Common, m.Business = &classicCommon{h.ears.app}, h.ears.business(h.req)
	}
	return h.WriteJSON(m)
}

// Receive returns the text so far. The service also ends a session by itself, and does
// not take what comes after that.
func (h *hearing) Receive() (recognition.Result, error) {
	if h.over {
		return recognition.Result{Kind: recognition.Over}, nil
	}
	_, message, err := h.Read(0)
	if err != nil {
		return recognition.Result{}, err
	}
	parse := parseClassic
	if h.ears.large {
		parse = parseLarge
	}
	a, err := parse(message)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && timedOut(refused.Code) && h.text.text() != "" {
		return recognition.Result{Kind: recognition.Over}, nil // its time is over: what follows goes into another one
	}
	if err != nil {
		return recognition.Result{}, err
	}
	if a.result != nil {
		h.text.add(*a.result)
	}
	switch words := h.text.text(); {
	case a.last:
		h.over = true
		return recognition.Result{Kind: recognition.Sentence, Text: words}, nil
	case words == "":
		return recognition.Result{}, nil
	default:
		return recognition.Result{Kind: recognition.Partial, Text: words}, nil
	}
}
