package track

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// closing is a file that knows whether it was closed.
type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

func testFile(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// stereoWAV is the tone as a WAV file of two channels.
func stereoWAV(rate int, seconds float64) []byte {
	var b bytes.Buffer
	n := int(float64(rate) * seconds)
	b.WriteString("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00")
	for _, v := range []uint32{uint32(rate), uint32(4 * rate)} {
		b.Write(binary.LittleEndian.AppendUint32(nil, v))
	}
	b.WriteString("\x04\x00\x10\x00LIST\x03\x00\x00\x00abc\x00data")
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(4*n)))
	for i := range n {
		s := uint16(int16(4000 * math.Sin(2*math.Pi*440*float64(i)/float64(rate))))
		b.Write(binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, s), s))
	}
	b.WriteString("LIST\x04\x00\x00\x00tail")
	return b.Bytes()
}

// readTrack reads all of it through a buffer of n samples.
func readTrack(t *testing.T, track *Track, n int) (pcm []int16, err error) {
	t.Helper()
	buffer := make([]int16, n)
	for {
		n, err := track.Read(buffer)
		pcm = append(pcm, buffer[:n]...)
		if err != nil {
			if again, same := track.Read(buffer); again != 0 || same != err { //nolint:errorlint // the very same
				t.Errorf("after the end: %d, %v", again, same)
			}
			return pcm, err
		}
		if n == 0 {
			t.Fatal("nothing, and no error")
		}
	}
}

// pitch is the frequency by zero crossings, in Hz.
func pitch(pcm []int16, rate int) float64 {
	pcm = pcm[len(pcm)/8 : len(pcm)*7/8]
	crossings := 0
	for i := 1; i < len(pcm); i++ {
		if pcm[i-1] < 0 && pcm[i] >= 0 {
			crossings++
		}
	}
	return float64(crossings) * float64(rate) / float64(len(pcm))
}

func TestTrack(t *testing.T) {
	for name, test := range map[string]struct {
		data    []byte
		rate    int
		seconds float64
	}{
		"wav":                  {stereoWAV(44100, 1), 44100, 1},
		"wav over 48 kHz":      {stereoWAV(192000, 0.2), 48000, 0.2},
		"mp3":                  {testFile(t, "tone.mp3"), 44100, 1},
		"mp3 with a tag":       {append([]byte("ID3\x03\x00\x00\x00\x00\x00\x05hello"), testFile(t, "tone.mp3")...), 44100, 1},
		"flac":                 {testFile(t, "tone.flac"), 44100, 1},
		"flac, 24 bit, 96 kHz": {testFile(t, "tone24.flac"), 48000, 0.2},
		"opus":                 {testFile(t, "tone.opus"), 48000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var before []int16
			for _, size := range []int{7, 100000} {
				file := &closing{Reader: bytes.NewReader(test.data)}
				track, err := Open(file)
				if err != nil {
					t.Fatal(err)
				}
				pcm, err := readTrack(t, track, size)
				if !errors.Is(err, io.EOF) || track.Rate() != test.rate {
					t.Fatalf("the end: %v, at %d Hz, want EOF at %d Hz", err, track.Rate(), test.rate)
				}
				if before != nil && !slices.Equal(before, pcm) {
					t.Errorf("in pieces of %d it is another sound", size)
				}
				before = pcm
				if err := track.Close(); err != nil || file.closed != 1 {
					t.Errorf("closed %d times: %v", file.closed, err)
				}
			}
			if length := float64(len(before)) / float64(test.rate); math.Abs(length-test.seconds) > 0.08 {
				t.Errorf("%.3f s long, want %.1f s", length, test.seconds)
			}
			if hz := pitch(before, test.rate); math.Abs(hz-440) > 12 {
				t.Errorf("a tone of %.0f Hz, want 440", hz)
			}
			if peak := slices.Max(before); peak < 2000 || peak > 6000 {
				t.Errorf("a peak of %d", peak)
			}
		})
	}
}

// endless gives the bytes over and over, and counts them.
type endless struct {
	data  []byte
	given int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.data[e.given%len(e.data):])
	e.given += n
	return n, nil
}

// TestTrackIsRead: a second of music takes about a second of the file, never all.
func TestTrackIsRead(t *testing.T) {
	source := &endless{data: testFile(t, "tone.mp3")}
	track, err := Open(io.NopCloser(source))
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := track.Read(make([]int16, 441)); err != nil {
			t.Fatal(err)
		}
	}
	if source.given > 64<<10 {
		t.Errorf("%d bytes were read for half a second", source.given)
	}
}

func TestTrackErrors(t *testing.T) {
	for name, data := range map[string]string{
		"empty": "", "short": "RIFF", "text": "this is no music at all", "wav without sound": "RIFF\x00\x00\x00\x00WAVE", "vorbis": "OggS\x00\x02" + strings.Repeat("\x00", 20) + "\x01\x1e\x01vorbis" + strings.Repeat("\x00", 24),
		"flac of nothing": "fLaC\x00\x00\x00\x22", "mp3 of nothing": "ID3\x03\x00\x00\x00\x00\x00\x05hello", "mp3 of noise": "\xff\xfb\x90\x00" + strings.Repeat("\x00", 100),
		"wav of 100 Hz": string(slices.Concat([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\xe8\x03\x00\x00\xd0\x07\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00"))),
	} {
		file := &closing{Reader: strings.NewReader(data)}
		track, err := Open(file)
		if err == nil {
			_, err = readTrack(t, track, 100)
			file.closed++
		}
		if err == nil || errors.Is(err, io.EOF) || file.closed != 1 {
			t.Errorf("%s: %v, closed %d times", name, err, file.closed)
		}
	}
}

// TestBrokenTracks: a file that breaks off, or is broken in the middle, ends
// with what there is of it or an error, and never worse.
func TestBrokenTracks(t *testing.T) {
	for _, name := range []string{"tone.mp3", "tone.flac", "tone.opus"} {
		data := testFile(t, name)
		for cut := 50; cut < len(data); cut += len(data) / 7 {
			broken := slices.Clone(data)
			for i := cut; i < min(cut+20, len(data)); i++ {
				broken[i] ^= 0x5A
			}
			for _, data := range [][]byte{data[:cut], broken} {
				track, err := Open(io.NopCloser(bytes.NewReader(data)))
				if err != nil {
					continue
				}
				if pcm, err := readTrack(t, track, 960); err == nil || len(pcm) > 60000 {
					t.Errorf("%s at %d: %d samples, %v", name, cut, len(pcm), err)
				}
			}
		}
	}
}

func FuzzTrack(f *testing.F) {
	for _, name := range []string{"tone.mp3", "tone.opus", "tone24.flac"} {
		f.Add(testFile(f, name)[:2000])
	}
	f.Add(stereoWAV(8000, 0.01))
	f.Fuzz(func(t *testing.T, data []byte) {
		track, err := Open(io.NopCloser(bytes.NewReader(data)))
		if err != nil {
			return
		}
		pcm := make([]int16, 960)
		for range 2000 {
			n, err := track.Read(pcm)
			if err != nil {
				return
			}
			if n < 1 || n > len(pcm) {
				t.Fatalf("%d samples", n)
			}
		}
	})
}
