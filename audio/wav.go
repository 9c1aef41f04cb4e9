package audio

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Format tags and sizes of RIFF WAVE (Multimedia Programming Interface 1.0,
// and "Multiple Channel Audio Data and WAVE Files" for the extensible form).
const (
	wavPCM        = 1
	wavExtensible = 0xFFFE
	wavStreaming  = 0xFFFFFFFF // size written by programs that stream; so is 0
	wavHeader     = 44         // bytes of the header that WriteWAV makes
	wavMaxFmt     = 1 << 12    // no fmt chunk is longer in earnest
)

// wavShape is what a fmt chunk says.
type wavShape struct {
	channels, rate, bits int
}

// ReadWAV reads a whole WAV file: PCM of 8 or 16 bit, mono or stereo (mixed
// down), also in the extensible form. A size of 0 or 0xFFFFFFFF, as programs
// write that stream to a pipe, means that the sound goes on to the end; so does
// a file that ends early. It gives mono PCM and its rate in Hz. An error names
// what is wrong with the file, or is that of r.
func ReadWAV(r io.Reader) (pcm []int16, rate int, err error) {
	br := bufio.NewReader(r)
	shape, size, err := readWAVHead(br)
	if err != nil {
		return nil, 0, err
	}
	raw, err := readData(br, size)
	if err != nil {
		return nil, 0, err
	}
	return shape.mono(raw), shape.rate, nil
}

// readWAVHead reads up to the sound: its shape and the size that is said of it.
func readWAVHead(br *bufio.Reader) (shape *wavShape, size uint32, err error) {
	var riff [12]byte
	if _, err := io.ReadFull(br, riff[:]); err != nil {
		return nil, 0, wavShort("the RIFF header", err)
	}
	if string(riff[:4]) != "RIFF" || string(riff[8:]) != "WAVE" {
		return nil, 0, fmt.Errorf("not a WAV file: it begins with %q", riff[:])
	}
	for {
		var head [8]byte
		if _, err := io.ReadFull(br, head[:]); err != nil {
			if shape == nil {
				return nil, 0, wavShort("the fmt chunk", err)
			}
			return nil, 0, wavShort("the data chunk", err)
		}
		id, size := string(head[:4]), binary.LittleEndian.Uint32(head[4:])
		switch {
		case id == "fmt ":
			if shape, err = readShape(br, size); err != nil {
				return nil, 0, err
			}
		case id == "data" && shape == nil:
			return nil, 0, errors.New("bad WAV file: the data chunk comes before the fmt chunk")
		case id == "data":
			return shape, size, nil
		default: // LIST, fact and others; chunks are padded to an even length
			if _, err := io.CopyN(io.Discard, br, int64(size)+int64(size&1)); err != nil {
				return nil, 0, wavShort(fmt.Sprintf("the end of the chunk %q", id), err)
			}
		}
	}
}

// wavShort tells a file that ends too early from a reader that fails.
func wavShort(part string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("bad WAV file: it ends before %s", part)
	}
	return fmt.Errorf("read WAV file: %w", err)
}

func readShape(r io.Reader, size uint32) (*wavShape, error) {
	if size < 16 || size > wavMaxFmt {
		return nil, fmt.Errorf("bad WAV file: the fmt chunk has %d bytes", size)
	}
	b := make([]byte, size+size&1)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, wavShort("the end of the fmt chunk", err)
	}
	tag := binary.LittleEndian.Uint16(b)
	if tag == wavExtensible {
		if size < 40 {
			return nil, fmt.Errorf("bad WAV file: the extensible fmt chunk has %d bytes, want 40", size)
		}
		tag = binary.LittleEndian.Uint16(b[24:]) // the subformat begins with the real tag
	}
	s := &wavShape{
		channels: int(binary.LittleEndian.Uint16(b[2:])),
		rate:     int(binary.LittleEndian.Uint32(b[4:])),
		bits:     int(binary.LittleEndian.Uint16(b[14:])),
	}
	switch {
	case tag != wavPCM:
		return nil, fmt.Errorf("unsupported WAV file: format 0x%04x, want PCM (0x0001)", tag)
	case s.channels != 1 && s.channels != 2:
		return nil, fmt.Errorf("unsupported WAV file: %d channels, want 1 or 2", s.channels)
	case s.bits != 8 && s.bits != 16:
		return nil, fmt.Errorf("unsupported WAV file: %d bits per sample, want 8 or 16", s.bits)
	case s.rate < 1000 || s.rate > 384000:
		return nil, fmt.Errorf("bad WAV file: a rate of %d Hz", s.rate)
	}
	return s, nil
}

// readData reads the sound. It grows with what really comes, so a size that
// lies costs nothing.
func readData(r io.Reader, size uint32) ([]byte, error) {
	var b bytes.Buffer
	if _, err := b.ReadFrom(wavData(r, size)); err != nil {
		return nil, fmt.Errorf("read WAV file: %w", err)
	}
	return b.Bytes(), nil
}

// wavData is the sound without what may follow it.
func wavData(r io.Reader, size uint32) io.Reader {
	if size == 0 || size == wavStreaming {
		return r
	}
	return io.LimitReader(r, int64(size))
}

// mono turns raw samples into mono PCM; a sample that is not whole is left out.
func (s *wavShape) mono(raw []byte) []int16 {
	width := s.bits / 8
	pcm := make([]int16, len(raw)/(width*s.channels))
	for i := range pcm {
		sum := 0
		for range s.channels {
			if width == 1 {
				sum += (int(raw[0]) - 128) << 8
			} else {
				sum += int(int16(binary.LittleEndian.Uint16(raw)))
			}
			raw = raw[width:]
		}
		pcm[i] = int16(sum / s.channels)
	}
	return pcm
}

// WriteWAV writes mono 16 bit PCM of that rate in Hz as a whole WAV file.
func WriteWAV(w io.Writer, pcm []int16, rate int) error {
	if rate <= 0 {
		return fmt.Errorf("write WAV file: a rate of %d Hz", rate)
	}
	if len(pcm) > (math.MaxUint32-wavHeader)/2 {
		return fmt.Errorf("write WAV file: %d samples are more than the format can hold", len(pcm))
	}
	size := 2 * len(pcm)
	b := make([]byte, 0, wavHeader+size)
	b = append(b, "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(wavHeader-8+size))
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, wavPCM)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(2*rate))
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	for _, v := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	_, err := w.Write(b)
	return err
}
