package openai

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

	"xiaozhi/providers"
)

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
		return playPCM(in, rate, 1, p)
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

// textInsteadOfSound is the error for a reply of status 200 that holds words.
func textInsteadOfSound(r io.Reader) error {
	body, err := io.ReadAll(io.LimitReader(r, maxErrorBody))
	if err != nil {
		return err
	}
	message, ok := errorMessage(body)
	if !ok {
		message = string(body)
	}
	return &statusError{text: "the server sent text instead of sound: " + message}
}

// playPCM plays 16 bit little endian samples until the end, each piece as soon
// as it has come. Channels are mixed to one. What is less than a sample at the
// very end is no sound.
func playPCM(r io.Reader, rate, channels int, p *player) error {
	width := 2 * channels
	p.raw = slices.Grow(p.raw[:0], rate/10*width)
	raw := p.raw[:rate/10*width]
	held := 0 // bytes of a sample that is not whole yet
	for {
		n, err := r.Read(raw[held:])
		n += held
		whole := n - n%width
		p.pcm = mix(p.pcm[:0], raw[:whole], channels)
		held = copy(raw, raw[whole:n])
		if !p.play(rate, p.pcm) || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// mix appends the samples of raw to pcm, the mean of all channels.
func mix(pcm []int16, raw []byte, channels int) []int16 {
	if channels == 1 {
		for ; len(raw) >= 2; raw = raw[2:] {
			pcm = append(pcm, int16(binary.LittleEndian.Uint16(raw)))
		}
		return pcm
	}
	for len(raw) >= 2*channels {
		sum := 0
		for c := range channels {
			sum += int(int16(binary.LittleEndian.Uint16(raw[2*c:])))
		}
		pcm = append(pcm, int16(sum/channels))
		raw = raw[2*channels:]
	}
	return pcm
}
