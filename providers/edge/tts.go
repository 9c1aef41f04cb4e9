package edge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"
	"unicode/utf8"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	firstTime = 10 * time.Second
	nextTime  = 5 * time.Second
	tries     = 2
	most      = 6     // sockets at once, unless the section has another limit: the service blocks who opens many
	opusRate  = 24000 // Hz of PCM where Opus must be decoded
	// A sentence is not longer than this: it guards against an answer without end.
	leastLimit = 30 * time.Second
	perRune    = time.Second
)

// TTS is the voice. It may be used by any number of goroutines at once: each sentence has
// a socket of its own, as with the browser, or the spare one.
type TTS struct {
	*client
	dialer *transport.Dialer
	format string
	spare  spare
}

// New checks a section and makes a voice. It asks the service nothing.
func New(s service.Section) (*TTS, error) {
	c, err := newClient(s)
	if err != nil {
		return nil, err
	}
	t := &TTS{client: c, format: cmp.Or(s.Format, "mp3")}
	if formats[t.format] == "" {
		return nil, fmt.Errorf("%s: format: %q is none of mp3, mp3-96, opus", s.Name, s.Format)
	}
	if t.dialer, err = transport.NewDialer(transport.DialerOptions{
		Account: c.account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers, Clock: &c.clock,
		Most: int(s.Number("most_connections", most)),
	}); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return t, nil
}

// Name returns the provider's name.
func (t *TTS) Name() string { return t.account.Name }

// Synthesize streams the sound of one sentence, each piece as soon as it has come. A text
// without a letter or a digit yields nothing.
func (t *TTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(providers.Sound{}, err)
			return
		}
		p := &player{yield: yield, left: leastLimit + time.Duration(utf8.RuneCountInString(req.Text))*perRune}
		for _, part := range text.Parts(req.Text, maxText, size) {
			if err := t.speak(ctx, req, escape(part), p); err != nil && !p.gone {
				yield(providers.Sound{}, t.account.Wrap(ctx, ctx, "speak", err))
				return
			}
			if p.gone {
				return
			}
		}
	}
}

// dial opens a socket. A refusal that the clocks explain is tried again by the service's clock.
func (t *TTS) dial(ctx context.Context) (*transport.Socket, error) {
	header := t.header()
	header.Set("Origin", origin)
	header.Set("Accept-Encoding", "gzip, deflate, br, zstd")
	socket, err := t.dialer.Dial(ctx, t.address(), header)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && refused.Skewed {
		if socket, err = t.dialer.Dial(ctx, t.address(), header); err != nil {
			return nil, t.explain(err, true)
		}
		return socket, nil
	}
	if err != nil {
		return nil, t.explain(err, false)
	}
	return socket, nil
}

// speak asks for the sound of escaped text and plays it. A spare socket may be dead: then
// it is asked again on a fresh one. Its errors are not yet wrapped.
func (t *TTS) speak(ctx context.Context, req providers.TTSRequest, escaped string, p *player) error {
	if socket := t.spare.take(); socket != nil {
		_ = socket.Bind(ctx) // until it is closed
		begun, err := t.exchange(socket, req, escaped, p)
		if err == nil || begun || p.gone || ctx.Err() != nil || errors.Is(err, transport.ErrStalled) {
			return err
		}
	}
	for try := cmp.Or(t.section.Tries(), tries); ; try-- {
		begun, err := t.once(ctx, req, escaped, p)
		if err == nil || begun || p.gone || try <= 1 || !again(ctx, err) {
			return err
		}
	}
}

// once asks for the sound on a fresh socket. begun says that the service has answered.
func (t *TTS) once(ctx context.Context, req providers.TTSRequest, escaped string, p *player) (begun bool, err error) {
	socket, err := t.dial(ctx)
	if err != nil {
		return false, err
	}
	return t.exchange(socket, req, escaped, p)
}

// again says whether a sentence that got no answer may get one the next time.
func again(ctx context.Context, err error) bool {
	refused, ok := errors.AsType[*transport.Refusal](err)
	return ctx.Err() == nil && !errors.Is(err, transport.ErrStalled) && (!ok || refused.Kind == providers.Unavailable)
}

// exchange asks for the sound on a socket, plays it and closes the socket. begun says that
// the service has answered.
func (t *TTS) exchange(socket *transport.Socket, req providers.TTSRequest, escaped string, p *player) (begun bool, err error) {
	defer socket.Close()
	voice, now := t.voiceOf(req), t.clock.Now()
	if err := socket.WriteText([]byte(configMessage(now, formats[t.format]))); err != nil {
		return false, err
	}
	if err := socket.WriteText([]byte(speakMessage(now, newID(), document(voice, escaped, t.section.Speed)))); err != nil {
		return false, err
	}
	s := &stream{socket: socket, next: cmp.Or(t.section.Timeouts.Next, nextTime), limit: cmp.Or(t.section.Timeouts.First, firstTime)}
	p.heard = false
	if t.format == "opus" {
		err = p.opus(newWebM(s))
	} else {
		err = p.mp3(s)
	}
	switch {
	case s.ended && s.bytes == 0:
		err = t.silence(voice)
	case err == nil && !p.heard && !p.gone:
		err = errors.New("the service sent no sound")
	}
	return s.ended || s.bytes > 0, err
}

// silence is the error of a sentence that the service ended without sound: it says so in
// no other way when it does not know a voice.
func (t *TTS) silence(voice string) error {
	known := slices.ContainsFunc(Kind().Voices, func(v service.Voice) bool { return v.Name == voice })
	for _, v := range byLanguage {
		known = known || v == voice
	}
	if known {
		return transport.Refused(providers.Unavailable, "", "the service sent no sound: it may be holding this network back, or the text has nothing that can be spoken")
	}
	return transport.Refused(providers.BadRequest, "", fmt.Sprintf("the service sent no sound: it may not know the voice %q", voice))
}

// stream is the sound of a sentence as it comes from a socket.
type stream struct {
	socket *transport.Socket
	limit  time.Duration // for the next message
	next   time.Duration // for those after the first sound
	rest   []byte        // of the message that is being read
	bytes  int           // of sound
	ended  bool          // the service said that it was all
}

// Read returns sound, and io.EOF when the service has said that it was all.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		isText, message, err := s.socket.Read(s.limit)
		if err != nil {
			return 0, err
		}
		path, body, err := parse(isText, message)
		switch {
		case err != nil:
			return 0, err
		case path == "turn.end":
			s.ended = true
		case path == "audio" && len(body) > 0:
			s.rest, s.limit = body, s.next
			s.bytes += len(body)
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// player hands the sound of one sentence to the consumer of a loop.
type player struct {
	yield func(providers.Sound, error) bool
	left  time.Duration // that may still come
	quiet trimmer
	heard bool // something was yielded
	gone  bool // the consumer has left
}

// errEndless is the error of sound that is too long for its text.
var errEndless = errors.New("the sound is longer than any sentence of this length")

// mp3 plays MP3, without the silence at both ends.
func (p *player) mp3(r io.Reader) error {
	m, err := file.NewMP3Reader(r)
	if err != nil {
		return err
	}
	p.quiet = trimmer{rate: m.Rate()}
	pcm := make([]int16, m.Rate()/10)
	for !p.gone {
		n, err := m.Read(pcm)
		p.play(m.Rate(), p.quiet.add(pcm[:n]))
		switch {
		case p.left < 0:
			return errEndless
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// play yields samples in pieces of at most 100 ms.
func (p *player) play(rate int, pcm []int16) {
	p.left -= time.Duration(len(pcm)) * time.Second / time.Duration(rate)
	for len(pcm) > 0 && !p.gone && p.left >= 0 {
		n := min(len(pcm), rate/10)
		p.heard = true
		p.gone = !p.yield(providers.Sound{Rate: rate, PCM: pcm[:n]}, nil)
		pcm = pcm[n:]
	}
}

// opus passes the packets of a WebM stream on, merged to those of 60 ms that devices play.
// From one on that cannot be merged, the rest is decoded.
func (p *player) opus(w *webm) error {
	merge := audio.NewRepacketizer(audio.Reply.Frame)
	for !p.gone {
		packet, err := w.next()
		if errors.Is(err, io.EOF) {
			p.flush(merge)
			return nil
		}
		if err != nil {
			return err
		}
		if merge.Add(packet) != nil {
			p.flush(merge)
			return p.decoded(packet, w)
		}
		if merge.Full() {
			p.pass(merge)
		}
		if p.left < 0 {
			return errEndless
		}
	}
	return nil
}

// decoded plays a packet, and those that come after it, as PCM.
func (p *player) decoded(packet []byte, w *webm) error {
	decoder, err := audio.NewDecoder(opusRate)
	if err != nil {
		return fmt.Errorf("open opus decoder: %w", err)
	}
	pcm := make([]int16, audio.MaxFrameSamples(opusRate))
	for ; !p.gone; packet, err = w.next() {
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		n, err := decoder.Decode(packet, pcm)
		if err != nil {
			return fmt.Errorf("opus packet: %w", err)
		}
		if p.play(opusRate, pcm[:n]); p.left < 0 {
			return errEndless
		}
	}
	return nil
}

// flush passes on what did not fill a packet.
func (p *player) flush(merge *audio.Repacketizer) {
	if merge.Waiting() > 0 && merge.Pad() {
		p.pass(merge)
	}
}

// pass passes a merged packet on.
func (p *player) pass(merge *audio.Repacketizer) {
	p.left -= audio.Reply.Frame
	p.heard = true
	p.gone = !p.yield(providers.Sound{Packets: [][]byte{merge.Take(nil)}}, nil)
}
