package httpvoice

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"xiaozhi/audio/file"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

const (
	minRate = 8000
	maxRate = 48000
	perRune = time.Second // nobody speaks slower
	atLeast = 30 * time.Second
)

// limit is the length of sound from which on an answer is taken for endless.
func limit(words string) time.Duration {
	return atLeast + time.Duration(utf8.RuneCountInString(words))*perRune
}

// player hands the sound of one sentence to the consumer of a loop.
type player struct {
	yield func(providers.Sound, error) bool
	left  time.Duration // that may still come
	heard bool          // something was yielded
	gone  bool          // the consumer has left
}

// decode finds out which format has come, whatever was asked for, and plays it.
func (p *player) decode(r io.Reader, contentType, asked string, rate int) error {
	in := bufio.NewReader(r)
	head, err := in.Peek(12)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		media = ""
	}
	switch {
	case bytes.HasPrefix(head, []byte("RIFF")) && bytes.HasSuffix(head, []byte("WAVE")):
		return p.wav(in)
	case bytes.HasPrefix(head, []byte("OggS")):
		o, err := file.NewOpusReader(in)
		if err != nil {
			return err
		}
		return p.all(o.Rate(), o.Read)
	case media == "application/json" || strings.HasPrefix(media, "text/"), words(head):
		return said(in)
	case asked == "mp3":
		m, err := file.NewMP3Reader(in)
		if err != nil {
			return err
		}
		return p.all(m.Rate(), m.Read)
	case asked != "pcm":
		return fmt.Errorf("the sound is not the %s that was asked for: it begins with %.8q", asked, head)
	}
	if given, err := strconv.Atoi(params["rate"]); err == nil && given >= minRate && given <= maxRate {
		rate = given
	}
	return p.pcm(in, rate)
}

// words says whether a body begins as JSON or HTML do. Some say that it is sound all the same.
func words(head []byte) bool {
	start := bytes.ToLower(bytes.TrimSpace(head))
	if rest, ok := bytes.CutPrefix(start, []byte(`{"`)); ok && len(rest) > 1 {
		return rest[0] >= 'a' && rest[0] <= 'z' && rest[1] >= 'a' && rest[1] <= 'z'
	}
	return bytes.HasPrefix(start, []byte("<!doctype")) || bytes.HasPrefix(start, []byte("<html"))
}

// said makes the refusal of an answer of status 200 that holds words.
func said(r io.Reader) error {
	body, err := io.ReadAll(io.LimitReader(r, transport.MaxErrorBody))
	if err != nil {
		return err
	}
	message, ok := transport.ErrorMessage(body)
	if !ok {
		message = string(body)
	}
	return transport.Refused(providers.Unavailable, "", "the server sent text instead of sound: "+message)
}

// wav plays a WAV file and checks that its sound was whole, if it says how long it is.
func (p *player) wav(r io.Reader) error {
	w, err := file.NewWAVReader(r)
	if err != nil {
		return err
	}
	if err := p.all(w.Rate, w.Read); err != nil {
		return err
	}
	if missing := w.Missing(); missing > 0 && !p.gone {
		return fmt.Errorf("wav: %d of %d bytes are missing", missing, w.Size)
	}
	return nil
}

// pcm plays bare samples of 16 bit, little endian. What is less than a sample at the very
// end is no sound.
func (p *player) pcm(r io.Reader, rate int) error {
	raw := make([]byte, rate/10*2)
	held := 0 // bytes of a sample that is not whole yet
	return p.all(rate, func(pcm []int16) (int, error) {
		n, err := r.Read(raw[held:])
		n += held
		for i, b := 0, raw[:n]; len(b) >= 2; i, b = i+1, b[2:] {
			pcm[i] = int16(binary.LittleEndian.Uint16(b))
		}
		held = copy(raw, raw[n&^1:n])
		return n / 2, err
	})
}

// all plays what read gives until the end, each piece as soon as it has come.
func (p *player) all(rate int, read func([]int16) (int, error)) error {
	if rate < minRate || rate > maxRate {
		return fmt.Errorf("the server sent sound at %d Hz", rate)
	}
	pcm := make([]int16, rate/10)
	for {
		n, err := read(pcm)
		if n > 0 {
			if p.left -= time.Duration(n) * time.Second / time.Duration(rate); p.left < 0 {
				return errors.New("the sound is longer than any sentence of this length")
			}
			p.heard = true
			if p.gone = !p.yield(providers.Sound{Rate: rate, PCM: pcm[:n]}, nil); p.gone {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
