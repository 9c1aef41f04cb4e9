// Package sound turns the bytes in which services send speech into the sound of a voice,
// as they come: raw PCM, WAV, MP3 and Ogg Opus, whose packets are passed on where they
// can be.
package sound

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"xiaozhi/audio/file"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// The sample rates that sound may come in, in Hz.
const (
	MinRate = 8000
	MaxRate = 48000
)

// The limit of a sentence.
const (
	perRune = time.Second // nobody speaks slower
	atLeast = 30 * time.Second
)

// Player hands sound to the consumer of a loop. It is for one goroutine; a [Pool] keeps
// it for the next sentence.
type Player struct {
	yield func(providers.Sound, error) bool
	heard bool          // something was yielded
	part  bool          // and of the part that is spoken now
	left  bool          // the consumer has left the loop
	most  time.Duration // of sound that may still come; 0: no limit

	in  *bufio.Reader // these three are kept for the next sentence
	raw []byte
	pcm []int16
}

// Pool keeps the players of a voice. Its zero value is ready. It may be used by any number
// of goroutines at once.
type Pool struct{ players sync.Pool } // of *Player

// Get takes a player that hands its sound to yield.
func (t *Pool) Get(yield func(providers.Sound, error) bool) *Player {
	p, ok := t.players.Get().(*Player)
	if !ok {
		p = &Player{}
	}
	p.yield, p.heard, p.part, p.left, p.most = yield, false, false, false, 0
	return p
}

// Put gives a player back. The consumer is done with its sound by then.
func (t *Pool) Put(p *Player) {
	p.yield = nil
	if p.in != nil {
		p.in.Reset(nil)
	}
	t.players.Put(p)
}

// Limit bounds the sound that is played from now on, by the words that are spoken: an
// answer without an end is an error of Decode then.
func (p *Player) Limit(words string) {
	p.most = atLeast + time.Duration(utf8.RuneCountInString(words))*perRune
}

// ErrEndless is the error of sound that is far longer than its words can be.
var ErrEndless = errors.New("the sound does not end")

// spend takes a piece of sound off the limit. It says whether the limit is reached.
func (p *Player) spend(d time.Duration) (over bool) {
	if p.most <= 0 {
		return false
	}
	p.most = max(p.most-d, 1)
	return p.most == 1
}

// Heard says whether something was yielded.
func (p *Player) Heard() bool { return p.heard }

// HeardPart says whether something was yielded of the part of a text that is spoken now.
func (p *Player) HeardPart() bool { return p.part }

// Left says whether the consumer has left the loop: no more is wanted.
func (p *Player) Left() bool { return p.left }

// Play yields the samples in pieces of at most 100 ms. It says whether more is wanted.
func (p *Player) Play(rate int, pcm []int16) bool {
	for len(pcm) > 0 && !p.left {
		n := min(len(pcm), rate/10)
		p.heard, p.part = true, true
		p.left = !p.yield(providers.Sound{Rate: rate, PCM: pcm[:n]}, nil)
		pcm = pcm[n:]
	}
	return !p.left
}

// Expected holds the format that was asked for and what is said of the reply.
type Expected struct {
	Format    string // pcm, wav, mp3 or opus
	Rate      int    // Hz of raw PCM
	MediaType string // of the reply; may be empty
}

// Decode finds out which format has come, whatever was asked for, and plays it until the
// end of r or until the consumer leaves. Nothing to play is no error.
func (p *Player) Decode(r io.Reader, e Expected) error {
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
	media, params, err := mime.ParseMediaType(e.MediaType)
	if err != nil {
		media = ""
	}
	format := formatOf(head, media, e.Format)
	if format == "pcm" && !saysPCM(media) && isMP3(in) {
		format = "mp3"
	}
	switch format {
	case "pcm":
		rate := e.Rate
		if given, err := strconv.Atoi(params["rate"]); err == nil && given >= MinRate && given <= MaxRate {
			rate = given
		}
		return p.playPCM(in, rate)
	case "wav":
		return p.playWAV(in)
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
	case isWAV(head):
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
	if isText(head) {
		return "text"
	}
	if saysPCM(media) {
		return "pcm"
	}
	switch media {
	case "audio/mpeg", "audio/mp3":
		if len(head) > 1 && head[0] == 0xFF && head[1]&0xE0 == 0xE0 {
			return "mp3"
		}
	case "audio/aac", "audio/flac", "audio/webm":
		return media
	}
	return asked
}

// saysPCM reports whether a media type is that of bare samples.
func saysPCM(media string) bool {
	return media == "audio/pcm" || media == "audio/l16" || media == "audio/x-pcm"
}

// isText reports whether a reply begins as JSON or HTML do, which some services send as if
// it were sound.
func isText(head []byte) bool {
	start := bytes.TrimSpace(head)
	if len(start) == 0 || start[0] != '{' && start[0] != '<' {
		return false
	}
	start = bytes.ToLower(start)
	if rest, ok := bytes.CutPrefix(start, []byte("{")); ok {
		rest = bytes.TrimSpace(rest)
		return len(rest) > 2 && rest[0] == '"' && isLetter(rest[1]) && isLetter(rest[2])
	}
	return bytes.HasPrefix(start, []byte("<!doctype")) || bytes.HasPrefix(start, []byte("<html"))
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c == '_' }

// textInsteadOfSound returns the error for a reply of status 200 that holds words.
func textInsteadOfSound(r io.Reader) error {
	body, err := io.ReadAll(io.LimitReader(r, transport.MaxErrorBody))
	if err != nil {
		return err
	}
	message, ok := transport.Words(body)
	if !ok {
		message = string(body)
	}
	return transport.Refused(transport.KindOfWords(message), "", "the server sent text instead of sound: "+message)
}

// playPCM plays mono samples of 16 bit, little endian, until the end. What is
// less than a sample at the very end is no sound.
func (p *Player) playPCM(r io.Reader, rate int) error {
	if err := checkRate(rate); err != nil {
		return err
	}
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

// playMP3 plays an MP3 file.
func playMP3(r io.Reader, p *Player) error {
	m, err := file.NewMP3Reader(r)
	if err != nil {
		return err
	}
	return p.playAll(m.Rate(), m.Read)
}

// playAll plays what read gives until the end, each piece as soon as it has come.
func (p *Player) playAll(rate int, read func([]int16) (int, error)) error {
	if err := checkRate(rate); err != nil {
		return err
	}
	p.pcm = slices.Grow(p.pcm[:0], rate/10)
	pcm := p.pcm[:rate/10]
	for {
		n, err := read(pcm)
		if p.spend(time.Duration(n) * time.Second / time.Duration(rate)) {
			return ErrEndless
		}
		if !p.Play(rate, pcm[:n]) || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// checkRate refuses rates that no voice has.
func checkRate(rate int) error {
	if rate < MinRate || rate > MaxRate {
		return fmt.Errorf("the server sent sound at %d Hz", rate)
	}
	return nil
}

// short turns a plain end where more should come into [io.ErrUnexpectedEOF].
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
