// Package file reads and writes the containers of sound: WAV, MP3, FLAC, Ogg and
// Ogg Opus. Every reader gives mono samples while the bytes come, and is for one
// goroutine. Files may come from anywhere: what is broken in them is an error.
package file

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Format tags and sizes of RIFF WAVE (Multimedia Programming Interface 1.0,
// and "Multiple Channel Audio Data and WAVE Files" for the extensible form).
const (
	wavPCM        = 1
	wavFloat      = 3
	wavExtensible = 0xFFFE
	wavStreaming  = 0x7FFFF000 // size from which on a program streams: espeak-ng writes this one, others 0xFFFFFFFF or 0
	wavHeader     = 44         // bytes of the header that WriteWAV makes
	wavMaxFmt     = 1 << 12    // no fmt chunk is longer in earnest

	wavMaxChannels = 8
)

// WAVReader reads the sound of a WAV file while it comes: PCM of 8, 16, 24 or 32 bit or
// numbers of 32 bit, with 1 to 8 channels, also in the extensible form. It is for one goroutine.
type WAVReader struct {
	Rate     int // in Hz
	Channels int
	Bits     int // of a sample: 8, 16, 24 or 32
	// Size is the length of the sound in bytes, as the file says; -1 if it says
	// none, as programs that write to a pipe. A caller that does not believe it
	// sets it to -1 before the first Read: the sound then goes on to the end.
	Size int64

	float bool // samples are numbers, 1 the loudest

	r    io.Reader
	got  int64 // bytes of sound that have come
	raw  []byte
	held int // bytes in raw of a sample that is not whole yet
}

// NewWAVReader reads the head of a WAV file, up to the sound. It reads no more of r than that.
func NewWAVReader(r io.Reader) (*WAVReader, error) {
	w := &WAVReader{r: r}
	var riff [12]byte
	if _, err := io.ReadFull(r, riff[:]); err != nil {
		return nil, wavShort("the RIFF header", err)
	}
	if string(riff[:4]) != "RIFF" || string(riff[8:]) != "WAVE" {
		return nil, fmt.Errorf("not a WAV file: it begins with %q", riff[:])
	}
	for {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if w.Rate == 0 {
				return nil, wavShort("the fmt chunk", err)
			}
			return nil, wavShort("the data chunk", err)
		}
		id, size := string(head[:4]), binary.LittleEndian.Uint32(head[4:])
		switch {
		case id == "fmt ":
			if err := w.format(size); err != nil {
				return nil, err
			}
		case id == "data" && w.Rate == 0:
			return nil, errors.New("bad WAV file: the data chunk comes before the fmt chunk")
		case id == "data":
			if w.Size = int64(size); size == 0 || size >= wavStreaming {
				w.Size = -1
			}
			w.raw = make([]byte, 8<<10)
			return w, nil
		default: // LIST, fact and others; chunks are padded to an even length
			if _, err := io.CopyN(io.Discard, r, int64(size)+int64(size&1)); err != nil {
				return nil, wavShort(fmt.Sprintf("the end of the chunk %q", id), err)
			}
		}
	}
}

// ReadWAV reads a whole WAV file and returns mono PCM and its rate in Hz. A file that ends
// early is what has come of it. An error says what is wrong with the file, or is that of r.
func ReadWAV(r io.Reader) (pcm []int16, rate int, err error) {
	w, err := NewWAVReader(bufio.NewReader(r))
	if err != nil {
		return nil, 0, err
	}
	pcm, err = w.ReadAll()
	return pcm, w.Rate, err
}

// ReadAll reads the sound that is left.
func (w *WAVReader) ReadAll() ([]int16, error) {
	pcm := []int16{}
	for {
		pcm = slices.Grow(pcm, 4096) // with what really comes: a size that lies costs nothing
		n, err := w.Read(pcm[len(pcm):cap(pcm)])
		pcm = pcm[:len(pcm)+n]
		switch {
		case errors.Is(err, io.EOF):
			return pcm, nil
		case err != nil:
			return nil, err
		}
	}
}

// Read decodes into pcm: mono samples, the mean of all channels, at least one if there is
// room, or an error; io.EOF at the end. A sample that is not whole there is left out.
func (w *WAVReader) Read(pcm []int16) (int, error) {
	width := w.Channels * w.Bits / 8
	for len(pcm) > 0 {
		room := int64(min(len(w.raw)/width, len(pcm)) * width)
		if w.Size >= 0 {
			room = min(room, int64(w.held)+w.Size-w.got)
		}
		if int(room) == w.held {
			return 0, io.EOF
		}
		n, err := w.r.Read(w.raw[w.held:room])
		w.got += int64(n)
		n += w.held
		whole := n - n%width
		mono(pcm, w.raw[:whole], w.Channels, w.Bits, w.float)
		w.held = copy(w.raw, w.raw[whole:n])
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return whole / width, fmt.Errorf("read WAV file: %w", err)
		case err != nil || whole > 0:
			return whole / width, err
		}
	}
	return 0, nil
}

// Missing returns the number of bytes of Size that have not come.
func (w *WAVReader) Missing() int64 { return max(0, w.Size-w.got) }

// wavShort returns the error of a file that ends before part, or that of its reader.
func wavShort(part string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("bad WAV file: it ends before %s", part)
	}
	return fmt.Errorf("read WAV file: %w", err)
}

// format reads a fmt chunk of that size.
func (w *WAVReader) format(size uint32) error {
	if size < 16 || size > wavMaxFmt {
		return fmt.Errorf("bad WAV file: the fmt chunk has %d bytes", size)
	}
	b := make([]byte, size+size&1)
	if _, err := io.ReadFull(w.r, b); err != nil {
		return wavShort("the end of the fmt chunk", err)
	}
	tag := binary.LittleEndian.Uint16(b)
	if tag == wavExtensible {
		if size < 40 {
			return fmt.Errorf("bad WAV file: the extensible fmt chunk has %d bytes, want 40", size)
		}
		tag = binary.LittleEndian.Uint16(b[24:]) // the subformat begins with the real tag
	}
	w.Channels = int(binary.LittleEndian.Uint16(b[2:]))
	w.Rate = int(binary.LittleEndian.Uint32(b[4:]))
	w.Bits = int(binary.LittleEndian.Uint16(b[14:]))
	w.float = tag == wavFloat
	switch {
	case tag != wavPCM && !w.float:
		return fmt.Errorf("unsupported WAV file: format 0x%04x, want PCM (0x0001) or float (0x0003)", tag)
	case w.Channels < 1 || w.Channels > wavMaxChannels:
		return fmt.Errorf("unsupported WAV file: %d channels, want 1 to %d", w.Channels, wavMaxChannels)
	case w.float && w.Bits != 32:
		return fmt.Errorf("unsupported WAV file: float of %d bits per sample, want 32", w.Bits)
	case w.Bits != 8 && w.Bits != 16 && w.Bits != 24 && w.Bits != 32:
		return fmt.Errorf("unsupported WAV file: %d bits per sample, want 8, 16, 24 or 32", w.Bits)
	case w.Rate < 1000 || w.Rate > 384000:
		return fmt.Errorf("bad WAV file: a rate of %d Hz", w.Rate)
	}
	return nil
}

// mono writes the mean of the channels of raw, whole samples, to pcm.
func mono(pcm []int16, raw []byte, channels, bits int, float bool) {
	width := bits / 8
	for i := range len(raw) / (width * channels) {
		sum := 0
		for range channels {
			sum += sample(raw, bits, float)
			raw = raw[width:]
		}
		pcm[i] = int16(sum / channels)
	}
}

// sample reads a sample as one of 16 bit.
func sample(raw []byte, bits int, float bool) int {
	switch {
	case float:
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))) * 32768
		if !(v >= math.MinInt16) { // no number is the lowest, too
			return math.MinInt16
		}
		return int(min(v, math.MaxInt16))
	case bits == 8:
		return (int(raw[0]) - 128) << 8
	}
	return int(int16(binary.LittleEndian.Uint16(raw[bits/8-2:]))) // the rest is finer than that
}

// WriteWAV writes mono 16 bit PCM of that rate in Hz as a whole WAV file.
func WriteWAV(w io.Writer, pcm []int16, rate int) error { return writeWAV(w, pcm, rate, 1) }

// WriteStereo writes samples of left and right in turn as [WriteWAV] does.
func WriteStereo(w io.Writer, pcm []int16, rate int) error { return writeWAV(w, pcm, rate, 2) }

func writeWAV(w io.Writer, pcm []int16, rate, channels int) error {
	if rate <= 0 {
		return fmt.Errorf("write WAV file: a rate of %d Hz", rate)
	}
	if len(pcm) > (math.MaxUint32-wavHeader)/2 {
		return fmt.Errorf("write WAV file: %d samples are more than the format can hold", len(pcm))
	}
	size := 2 * len(pcm)
	b := make([]byte, 0, wavHeader+size)
	le := binary.LittleEndian
	b = le.AppendUint32(append(b, "RIFF"...), uint32(wavHeader-8+size))
	b = le.AppendUint32(append(b, "WAVEfmt "...), 16)
	b = le.AppendUint16(b, wavPCM)
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(2*channels*rate))
	b = le.AppendUint16(b, uint16(2*channels))
	b = le.AppendUint16(b, 16)
	b = le.AppendUint32(append(b, "data"...), uint32(size))
	for _, v := range pcm {
		b = le.AppendUint16(b, uint16(v))
	}
	_, err := w.Write(b)
	return err
}
