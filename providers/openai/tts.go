package openai

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"slices"
	"strconv"
	"strings"
	"sync"

	gopenai "github.com/sashabaranov/go-openai"

	"xiaozhi/audio/file"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// TTS is a voice behind POST audio/speech.
type TTS struct {
	o       Options
	players sync.Pool // of *player
}

// NewTTS checks the settings and makes the voice. It asks the server nothing.
func NewTTS(o Options) (*TTS, error) {
	o, err := o.prepare(o.TTSModel)
	if err != nil {
		return nil, err
	}
	return &TTS{o: o}, nil
}

// Name returns the provider's name.
func (t *TTS) Name() string { return t.o.Name }

// Synthesize streams the sound of one sentence as PCM, in pieces of at most
// 100 ms, each as soon as it has come. A server that answers a sentence with no
// sound at all, or with less than it announced, is an error.
func (t *TTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(providers.Sound{}, err)
			return
		}
		if strings.TrimSpace(req.Text) == "" {
			return
		}
		reqCtx, g, cancel := transport.NewGuard(ctx)
		defer cancel()
		p := t.player(yield)
		defer t.done(p)
		if err := t.play(reqCtx, req, g, p); err != nil && !p.left {
			yield(providers.Sound{}, t.o.wrap(ctx, reqCtx, "speak", err))
		}
	}
}

// play makes the request and hands its sound to p. Its errors are not yet wrapped.
func (t *TTS) play(ctx context.Context, req providers.TTSRequest, g *transport.Guard, p *player) error {
	own, _ := text.Find(t.o.Voices, text.Lang(req.Language))
	voice := cmp.Or(req.Voice, own, t.o.Voice)
	g.Arm(t.o.Timeouts.FirstSound)
	resp, err := t.o.library(&sender{o: t.o}).CreateSpeech(ctx, gopenai.CreateSpeechRequest{
		Model: gopenai.SpeechModel(t.o.Model), Input: req.Text, Voice: gopenai.SpeechVoice(voice),
		ResponseFormat: gopenai.SpeechResponseFormat(t.o.Format),
	})
	g.Disarm()
	if err != nil {
		return err
	}
	defer func() { _ = resp.Close() }()
	sound := &transport.GuardedReader{R: resp, Guard: g, First: t.o.Timeouts.FirstSound, Next: t.o.Timeouts.NextSound}
	if err := decode(sound, resp.Header().Get("Content-Type"), t.o, p); err != nil {
		return err
	}
	if !p.heard && !p.left {
		return errors.New("the server sent no sound")
	}
	return nil
}

// The sample rates that sound may come in, in Hz.
const (
	minRate = 8000
	maxRate = 48000
)

// player hands sound to the consumer of a loop.
type player struct {
	yield func(providers.Sound, error) bool
	heard bool // something was yielded
	left  bool // the consumer has left the loop

	in  *bufio.Reader // these three are kept for the next sentence
	raw []byte
	pcm []int16
}

// player takes one that is not in use.
func (t *TTS) player(yield func(providers.Sound, error) bool) *player {
	p, ok := t.players.Get().(*player)
	if !ok {
		p = &player{}
	}
	p.yield, p.heard, p.left = yield, false, false
	return p
}

// done gives a player back. The consumer is done with its sound by then.
func (t *TTS) done(p *player) {
	p.yield = nil
	if p.in != nil {
		p.in.Reset(nil)
	}
	t.players.Put(p)
}

// play yields the samples in pieces of at most 100 ms. It says whether more is wanted.
func (p *player) play(rate int, pcm []int16) bool {
	for len(pcm) > 0 && !p.left {
		n := min(len(pcm), rate/10)
		p.heard = true
		p.left = !p.yield(providers.Sound{Rate: rate, PCM: pcm[:n]}, nil)
		pcm = pcm[n:]
	}
	return !p.left
}

// decode finds out which format has come, whatever was asked for, and plays it.
func decode(r io.Reader, contentType string, o Options, p *player) error {
	// A short read here only means that the reply is short; its end shows again below.
	if p.in == nil {
		p.in = bufio.NewReader(r)
	}
	in := p.in
	in.Reset(r)
	head, err := in.Peek(12)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		media = ""
	}
	switch format := formatOf(head, media, o.Format); format {
	case "pcm":
		rate := o.Rate
		if given, err := strconv.Atoi(params["rate"]); err == nil && given >= minRate && given <= maxRate {
			rate = given
		}
		return p.playPCM(in, rate)
	case "wav":
		return playWAV(in, p)
	case "mp3":
		return playMP3(in, p)
	case "opus":
		return playOpus(in, p)
	case "text":
		return textInsteadOfSound(in)
	default:
		return fmt.Errorf("the server sent %s, which is not a format we read", format)
	}
}

// formatOf judges by the first bytes where they are clear, then by the media
// type, then by what was asked for.
func formatOf(head []byte, media, asked string) string {
	switch {
	case bytes.HasPrefix(head, []byte("RIFF")) && bytes.HasSuffix(head, []byte("WAVE")):
		return "wav"
	case bytes.HasPrefix(head, []byte("OggS")):
		return "opus"
	case bytes.HasPrefix(head, []byte("ID3")):
		return "mp3"
	case bytes.HasPrefix(head, []byte("fLaC")):
		return "flac"
	case media == "application/json" || strings.HasPrefix(media, "text/"):
		return "text"
	}
	if !strings.HasPrefix(media, "audio/") && len(bytes.TrimSpace(head)) > 1 {
		if start := bytes.TrimSpace(head); start[0] == '{' && (start[1] == '"' || start[1] == '\n' || start[1] == ' ') {
			return "text"
		}
	}
	switch media {
	case "audio/mpeg", "audio/mp3":
		if len(head) > 1 && head[0] == 0xFF && head[1]&0xE0 == 0xE0 {
			return "mp3"
		}
	case "audio/pcm", "audio/l16", "audio/x-pcm":
		return "pcm"
	case "audio/aac", "audio/flac", "audio/webm":
		return media
	}
	return asked
}

// textInsteadOfSound returns the error for a reply of status 200 that holds words.
func textInsteadOfSound(r io.Reader) error {
	body, err := io.ReadAll(io.LimitReader(r, transport.MaxErrorBody))
	if err != nil {
		return err
	}
	message, ok := transport.ErrorMessage(body)
	if !ok {
		message = string(body)
	}
	return &transport.Refusal{Text: "the server sent text instead of sound: " + message}
}

// playPCM plays mono samples of 16 bit, little endian, until the end. What is
// less than a sample at the very end is no sound.
func (p *player) playPCM(r io.Reader, rate int) error {
	p.raw = slices.Grow(p.raw[:0], rate/10*2)
	raw := p.raw[:rate/10*2]
	held := 0 // bytes of a sample that is not whole yet
	return p.playAll(rate, func(pcm []int16) (int, error) {
		n, err := r.Read(raw[held:])
		n += held
		for i, b := 0, raw[:n]; len(b) >= 2; i, b = i+1, b[2:] {
			pcm[i] = int16(binary.LittleEndian.Uint16(b))
		}
		held = copy(raw, raw[n&^1:n])
		return n / 2, err
	})
}

// playWAV plays a WAV file and checks that the sound was whole.
func playWAV(r io.Reader, p *player) error {
	w, err := file.NewWAVReader(r)
	if err != nil {
		return err
	}
	if err := p.playAll(w.Rate, w.Read); err != nil {
		return err
	}
	if missing := w.Missing(); missing > 0 && !p.left {
		return fmt.Errorf("wav: %d of %d bytes are missing", missing, w.Size)
	}
	return nil
}

// playMP3 plays an MP3 file.
func playMP3(r io.Reader, p *player) error {
	m, err := file.NewMP3Reader(r)
	if err != nil {
		return err
	}
	return p.playAll(m.Rate(), m.Read)
}

// playAll plays what read gives until the end, each piece as soon as it has come.
func (p *player) playAll(rate int, read func([]int16) (int, error)) error {
	if rate < minRate || rate > maxRate {
		return fmt.Errorf("the server sent sound at %d Hz", rate)
	}
	p.pcm = slices.Grow(p.pcm[:0], rate/10)
	pcm := p.pcm[:rate/10]
	for {
		n, err := read(pcm)
		if !p.play(rate, pcm[:n]) || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// short turns a plain end where more should come into [io.ErrUnexpectedEOF].
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
