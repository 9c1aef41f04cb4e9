package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// chunk is a RIFF chunk with a true size and its padding.
func chunk(id string, content ...byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(id), uint32(len(content)))
	b = append(b, content...)
	if len(content)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

// fmtChunk is the plain form of a fmt chunk.
func fmtChunk(tag, channels, rate, bits int) []byte {
	var b []byte
	b = binary.LittleEndian.AppendUint16(b, uint16(tag))
	b = binary.LittleEndian.AppendUint16(b, uint16(channels))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate*channels*bits/8))
	b = binary.LittleEndian.AppendUint16(b, uint16(channels*bits/8))
	b = binary.LittleEndian.AppendUint16(b, uint16(bits))
	return chunk("fmt ", b...)
}

// extensible is a fmt chunk of 40 bytes with that tag in its subformat.
func extensible(tag, channels, rate, bits int) []byte {
	b := fmtChunk(wavExtensible, channels, rate, bits)[8:]
	b = append(b, 22, 0, byte(bits), 0, 4, 0, 0, 0, byte(tag), 0)
	b = append(b, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71)
	return chunk("fmt ", b...)
}

func wavFile(chunks ...[]byte) []byte {
	return append([]byte("RIFF\xff\xff\xff\xffWAVE"), bytes.Join(chunks, nil)...)
}

// sized gives a data chunk a size of our choice.
func sized(size uint32, content ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte("data"), size), content...)
}

func TestReadWAV(t *testing.T) {
	plain := fmtChunk(1, 1, 22050, 16)
	samples := []byte{1, 0, 0xff, 0xff, 0, 0x80}
	for name, c := range map[string]struct {
		file []byte
		want []int16
	}{
		"plain":                {wavFile(plain, chunk("data", samples...)), []int16{1, -1, -32768}},
		"size of a stream":     {wavFile(plain, sized(0xffffffff, samples...)), []int16{1, -1, -32768}},
		"size zero":            {wavFile(plain, sized(0, samples...)), []int16{1, -1, -32768}},
		"size of espeak-ng":    {wavFile(plain, sized(0x7ffff000, samples...)), []int16{1, -1, -32768}},
		"something behind":     {wavFile(plain, chunk("data", samples...), chunk("LIST", 1, 2)), []int16{1, -1, -32768}},
		"odd chunks before":    {wavFile(chunk("junk", 1, 2, 3), plain, chunk("fact", 9), chunk("data", samples...)), []int16{1, -1, -32768}},
		"extensible":           {wavFile(extensible(1, 1, 22050, 16), chunk("data", samples...)), []int16{1, -1, -32768}},
		"long fmt":             {wavFile(chunk("fmt ", append(plain[8:], 0, 0)...), chunk("data", samples...)), []int16{1, -1, -32768}},
		"stereo":               {wavFile(fmtChunk(1, 2, 22050, 16), chunk("data", 10, 0, 20, 0, 0xff, 0x7f, 0xff, 0x7f)), []int16{15, 32767}},
		"8 bit":                {wavFile(fmtChunk(1, 1, 22050, 8), chunk("data", 128, 0, 255)), []int16{0, -32768, 32512}},
		"8 bit stereo":         {wavFile(fmtChunk(1, 2, 22050, 8), chunk("data", 128, 130, 0, 0)), []int16{256, -32768}},
		"24 bit":               {wavFile(fmtChunk(1, 1, 22050, 24), chunk("data", 9, 1, 0, 7, 0xff, 0xff)), []int16{1, -1}},
		"32 bit stereo":        {wavFile(fmtChunk(1, 2, 22050, 32), chunk("data", 9, 9, 1, 0, 9, 9, 3, 0)), []int16{2}},
		"float":                {wavFile(fmtChunk(3, 1, 22050, 32), chunk("data", 0, 0, 0, 0x3f, 0, 0, 0x80, 0xbf, 0, 0, 0, 0x40, 0, 0, 0xc0, 0x7f)), []int16{16384, -32768, 32767, -32768}},
		"extensible float":     {wavFile(extensible(3, 1, 22050, 32), chunk("data", 0, 0, 0, 0xbf)), []int16{-16384}},
		"half a sample at end": {wavFile(plain, chunk("data", 5, 0, 7)), []int16{5}},
		"no sound":             {wavFile(plain, chunk("data")), []int16{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{bytes.NewReader(c.file), iotest.OneByteReader(bytes.NewReader(c.file))} {
				pcm, rate, err := ReadWAV(r)
				if err != nil || rate != 22050 || !slices.Equal(pcm, c.want) {
					t.Errorf("got %v at %d Hz, %v; want %v", pcm, rate, err, c.want)
				}
			}
		})
	}
}

func TestReadWAVErrors(t *testing.T) {
	plain := fmtChunk(1, 1, 16000, 16)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":           {nil, "RIFF header"},
		"not WAV":         {[]byte("ID3\x04 this is something else"), "not a WAV file"},
		"big-endian":      {[]byte("RIFX\x00\x00\x00\x00WAVE"), "not a WAV file"},
		"header only":     {wavFile(), "fmt chunk"},
		"no data":         {wavFile(plain), "data chunk"},
		"data first":      {wavFile(chunk("data", 0, 0), plain), "before the fmt chunk"},
		"fmt cut off":     {wavFile(plain[:20]), "fmt chunk"},
		"fmt too short":   {wavFile(chunk("fmt ", 1, 0, 1, 0)), "4 bytes"},
		"fmt huge":        {wavFile([]byte("fmt \xff\xff\xff\x7f")), "fmt chunk has 2147483647 bytes"},
		"chunk cut off":   {wavFile(plain, []byte("LIST\xff\x00\x00\x00abc")), `"LIST"`},
		"long float":      {wavFile(fmtChunk(3, 1, 16000, 64)), "64 bits"},
		"mu-law":          {wavFile(fmtChunk(7, 1, 8000, 8)), "0x0007"},
		"ext. too short":  {wavFile(fmtChunk(wavExtensible, 1, 16000, 16)), "extensible"},
		"12 bit":          {wavFile(fmtChunk(1, 1, 16000, 12)), "12 bits"},
		"no channels":     {wavFile(fmtChunk(1, 0, 16000, 16)), "0 channels"},
		"nine channels":   {wavFile(fmtChunk(1, 9, 16000, 16)), "9 channels"},
		"rate zero":       {wavFile(fmtChunk(1, 1, 0, 16)), "0 Hz"},
		"rate impossible": {wavFile(fmtChunk(1, 1, 0xfffffff0, 16)), "Hz"},
	} {
		if pcm, _, err := ReadWAV(bytes.NewReader(c.file)); err == nil {
			t.Errorf("%s: read %v", name, pcm)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error %q does not speak of %q", name, err, c.want)
		}
	}
}

func TestReadWAVReaderFails(t *testing.T) {
	broken := errors.New("line is down")
	whole := wavFile(fmtChunk(1, 1, 16000, 16), sized(100, 1, 2, 3, 4))
	for n := range len(whole) {
		r := io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(broken))
		if _, _, err := ReadWAV(r); !errors.Is(err, broken) {
			t.Fatalf("broken after %d bytes: %v", n, err)
		}
	}
}

func TestWAVReaderMissing(t *testing.T) {
	w, err := NewWAVReader(bytes.NewReader(wavFile(fmtChunk(1, 1, 16000, 16), sized(6, 1, 0, 2, 0))))
	if err != nil || w.Size != 6 {
		t.Fatalf("size %d, %v", w.Size, err)
	}
	pcm := make([]int16, 10)
	n, err := w.Read(pcm)
	if n == 2 && err == nil {
		_, err = w.Read(pcm)
	}
	if !errors.Is(err, io.EOF) || w.Missing() != 2 {
		t.Errorf("%v, %d bytes are missing, want 2", err, w.Missing())
	}
}

func TestWAVReaderSizeIgnored(t *testing.T) {
	w, err := NewWAVReader(bytes.NewReader(wavFile(fmtChunk(1, 1, 16000, 16), sized(2, 1, 0, 2, 0, 3, 0))))
	if err != nil {
		t.Fatal(err)
	}
	w.Size = -1
	if n, err := w.Read(make([]int16, 10)); n != 3 || err != nil || w.Missing() != 0 {
		t.Errorf("%d samples, %v", n, err)
	}
}

// TestWAVReaderPieces: what has come is given at once, not when more is there.
func TestWAVReaderPieces(t *testing.T) {
	head := wavFile(fmtChunk(1, 1, 16000, 16), sized(0))
	in, out := io.Pipe()
	defer in.Close()
	go func() { _, _ = out.Write(head); _, _ = out.Write([]byte{1, 0, 2, 0, 3}) }() // and then no more
	w, err := NewWAVReader(in)
	if err != nil {
		t.Fatal(err)
	}
	pcm := make([]int16, 10)
	if n, err := w.Read(pcm); n != 2 || err != nil || pcm[1] != 2 {
		t.Errorf("%d samples, %v", n, err)
	}
}

func TestWriteWAVReadsBack(t *testing.T) {
	for _, pcm := range [][]int16{{}, {0}, {1, -1, 32767, -32768, 5}} {
		var b bytes.Buffer
		if err := WriteWAV(&b, pcm, 24000); err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(b.Bytes()[4:]); int(got) != b.Len()-8 {
			t.Errorf("the RIFF size is %d of %d bytes", got, b.Len())
		}
		got, rate, err := ReadWAV(&b)
		if err != nil || rate != 24000 || !slices.Equal(got, pcm) {
			t.Errorf("got %v at %d Hz, %v; want %v", got, rate, err, pcm)
		}
	}
	if err := WriteWAV(io.Discard, nil, 0); err == nil {
		t.Error("a rate of zero was written")
	}
}

func FuzzReadWAV(f *testing.F) {
	f.Add(wavFile(fmtChunk(1, 1, 16000, 16), chunk("data", 1, 0, 2, 0)))
	f.Add(wavFile(extensible(1, 2, 16000, 16), sized(0, 1, 0, 2, 0)))
	f.Add(wavFile(fmtChunk(1, 2, 8000, 8), chunk("fact", 1), sized(0xffffffff, 1)))
	f.Fuzz(func(t *testing.T, file []byte) {
		pcm, rate, err := ReadWAV(bytes.NewReader(file))
		if err != nil {
			return
		}
		if len(pcm) > len(file) {
			t.Fatalf("%d samples from %d bytes", len(pcm), len(file))
		}
		var b bytes.Buffer
		if err := WriteWAV(&b, pcm, rate); err != nil {
			t.Fatal(err)
		}
		again, rateAgain, err := ReadWAV(&b)
		if err != nil || rateAgain != rate || !slices.Equal(again, pcm) {
			t.Errorf("written and read again: %d samples at %d Hz, %v", len(again), rateAgain, err)
		}
	})
}
