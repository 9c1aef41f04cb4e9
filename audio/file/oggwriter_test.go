package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"xiaozhi/audio"
)

// sung encodes a tone of 440 Hz.
func sung(tb testing.TB, f audio.Format, length time.Duration) *audio.Packets {
	tb.Helper()
	enc, err := audio.NewEncoder(f)
	if err != nil {
		tb.Fatal(err)
	}
	var p audio.Packets
	pcm, buf, phase := make([]int16, f.Samples()), make([]byte, audio.MaxPacket), 0.0
	for range length / f.Frame {
		for i := range pcm {
			phase += 2 * math.Pi * 440 / float64(f.Rate)
			pcm[i] = int16(10000 * math.Sin(phase))
		}
		n, err := enc.Encode(pcm, buf)
		if err != nil {
			tb.Fatal(err)
		}
		p.Add(buf[:n])
	}
	return &p
}

// TestWriteOpus: what was written is read again, packet for packet, and says how long it is.
func TestWriteOpus(t *testing.T) {
	p := sung(t, audio.Reply, 3*time.Second)
	p.Cut(2900 * time.Millisecond)
	var out bytes.Buffer
	if err := WriteOpus(&out, p, audio.Reply.Rate); err != nil {
		t.Fatal(err)
	}
	r := NewOggReader(bytes.NewReader(out.Bytes()))
	head, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if h, err := ParseOpusHead(head); err != nil || h != (OpusHead{Channels: 1}) || binary.LittleEndian.Uint32(head[12:]) != 24000 {
		t.Errorf("%+v %v", h, err)
	}
	if err := r.Skip(); err != nil {
		t.Fatal(err)
	}
	for packet := range p.All() {
		if got, err := r.Next(); err != nil || !bytes.Equal(got, packet) {
			t.Fatalf("%d bytes, want %d: %v", len(got), len(packet), err)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	last := bytes.LastIndex(out.Bytes(), []byte("OggS"))
	if at := binary.LittleEndian.Uint64(out.Bytes()[last+6:]); at != 48000*29/10 || out.Bytes()[last+5] != oggEnds {
		t.Errorf("it ends at %d with flags %d", at, out.Bytes()[last+5])
	}
	s, err := NewOpusReader(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var power float64
	samples, pcm := 0, make([]int16, 4096)
	for {
		n, err := s.Read(pcm)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range pcm[:n] {
			power += float64(v) * float64(v)
		}
		samples += n
	}
	if rms := math.Sqrt(power / float64(samples)); samples != 48000*294/100 || rms < 6000 || rms > 8000 {
		t.Errorf("%d samples, rms %.0f", samples, rms)
	}
	if err := WriteOpus(io.Discard, &audio.Packets{}, 16000); err == nil {
		t.Error("silence was written")
	}
	if err := WriteOpus(failing{}, p, 24000); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestOthersReadOpus: a program of others finds checksums and length right. It warns of the pre-skip, which is zero because nothing is
// to be left out.
func TestOthersReadOpus(t *testing.T) {
	probe, err := exec.LookPath("opusinfo")
	if err != nil {
		t.Skip("opusinfo is not there")
	}
	name := filepath.Join(t.TempDir(), "x.opus")
	var out bytes.Buffer
	p := sung(t, audio.Recognition, 2*time.Second)
	p.Lost()
	if err := WriteOpus(&out, p, 16000); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), probe, name).CombinedOutput() // a warning is a failure to it
	if bytes.Count(said, []byte("WARNING")) != 1 || !bytes.Contains(said, []byte("0m:02.040s")) {
		t.Errorf("%v\n%s", err, said)
	}
}
