package prompts

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// sounded lists the phrases that must be heard when speech synthesis is what failed.
func sounded() []string {
	return []string{
		Pardon, NoVoice, FailASR, FailLLM, FailTTS, FailTool, FailInternal, FailTimeout, SlowASR, SlowLLM, SlowTTS, Overload, ShuttingDown,
		PairNeeded, PairClosed, PairRefused,
	}
}

func TestSounds(t *testing.T) {
	for _, id := range sounded() {
		for _, lang := range []string{"zh", "en"} {
			if Sound(id, lang) == nil {
				t.Errorf("%s has no sound in %s", id, lang)
			}
		}
	}
}

// TestSoundFormat holds every embedded file to its promise.
func TestSoundFormat(t *testing.T) {
	entries, err := fs.ReadDir(sounds, "sounds")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, isWAV := strings.CutSuffix(e.Name(), ".wav")
		if !isWAV {
			continue
		}
		id, lang, _ := strings.Cut(name, ".")
		if !slices.Contains(sounded(), id) || lang != "zh" && lang != "en" {
			t.Errorf("%s belongs to no phrase that is spoken from sound", e.Name())
		}
		wav := Sound(id, lang)
		if len(wav) < 44 || !bytes.HasPrefix(wav, []byte("RIFF")) {
			t.Errorf("%s is not a WAV file", e.Name())
			continue
		}
		channels, rate := binary.LittleEndian.Uint16(wav[22:]), binary.LittleEndian.Uint32(wav[24:])
		if bits := binary.LittleEndian.Uint16(wav[34:]); channels != 1 || rate != 16000 || bits != 16 {
			t.Errorf("%s: %d channels, %d Hz, %d bit", e.Name(), channels, rate, bits)
		}
	}
}

func TestSoundOfNothing(t *testing.T) {
	for _, id := range []string{"no_such_thing", "", "../sounds/README.md", "/"} {
		if Sound(id, "en") != nil {
			t.Errorf("Sound(%q) is something", id)
		}
	}
}
