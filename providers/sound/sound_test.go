package sound

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"xiaozhi/providers"
)

// endless is a tone without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestSoundWithoutEndIsAnError(t *testing.T) {
	var total time.Duration
	p := (&Pool{}).Get(func(s providers.Sound, _ error) bool {
		total += time.Duration(len(s.PCM)) * time.Second / time.Duration(s.Rate)
		return true
	})
	p.Limit("ten runes!")
	if err := p.Decode(endless{}, Expected{Format: "pcm", Rate: 8000, MediaType: "audio/pcm"}); !errors.Is(err, ErrEndless) {
		t.Errorf("got %v", err)
	}
	if total < 39*time.Second || total > 40*time.Second {
		t.Errorf("%v were played, want nearly 40 s", total)
	}
}

func TestLeavingEndsDecode(t *testing.T) {
	p := (&Pool{}).Get(func(providers.Sound, error) bool { return false })
	if err := p.Decode(io.LimitReader(endless{}, 1<<20), Expected{Format: "pcm", Rate: 8000, MediaType: "audio/pcm"}); err != nil {
		t.Errorf("got %v", err)
	}
	if !p.Left() || !p.Heard() {
		t.Errorf("left %v, heard %v", p.Left(), p.Heard())
	}
}

func TestFramesOfMP3(t *testing.T) {
	for head, want := range map[string]int{
		"\xff\xfb\x90\x00": 417, "\xff\xfb\x92\x00": 418, "\xff\xf3\x64\xc4": 144, "\xff\xe3\x18\xc4": 72, "\xff\xfb\xf0\x00": 0,
		"\xff\xfb\x00\x00": 0, "\xff\xfb\x9c\x00": 0, "\xff\xeb\x90\x00": 0, "\xff\xf9\x90\x00": 0, "RIFF": 0, "\xff\xfb": 0,
	} {
		if got := mpegFrame([]byte(head)); got != want {
			t.Errorf("%x: %d bytes, want %d", head, got, want)
		}
	}
}

func TestRatesThatNoVoiceHas(t *testing.T) {
	for _, rate := range []int{-24000, 0, 1 << 40} {
		p := (&Pool{}).Get(func(providers.Sound, error) bool { return true })
		if err := p.Decode(strings.NewReader("0123456789abcdef"), Expected{Format: "pcm", Rate: rate}); err == nil {
			t.Errorf("%d Hz are taken", rate)
		}
	}
}
