package speechtest

import (
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gotranspile/g722"
)

// Rate is the sample rate of every clip, in Hz.
const Rate = 16000

// Clip is one recording.
type Clip struct {
	Name string // unique among the clips of one function
	Text string // what is said, lower case without punctuation; "" for no speech
	Lang string // "en", "zh", or "" for no speech
	PCM  []int16
}

// Folders of the Debian packages.
const (
	promptDir = "/usr/share/asterisk/sounds/en_US_f_Allison"
	musicDir  = "/usr/share/asterisk/moh"
	sphinxDir = "/usr/share/pocketsphinx/test/data"
	alsaDir   = "/usr/share/sounds/alsa"
)

//go:embed zh/*.wav
var mandarin embed.FS

// Prompts returns sentences read by one US English speaker: telephone prompts, studio sound.
func Prompts() ([]Clip, error) { return spoken(promptTexts) }

// Commands returns single words and short phrases of the same speaker.
func Commands() ([]Clip, error) { return spoken(commandTexts) }

// Others returns English sentences of other speakers.
func Others() ([]Clip, error) {
	var clips []Clip
	for _, e := range otherTexts {
		data, err := readPackaged("pocketsphinx-testdata", filepath.Join(sphinxDir, e.file))
		if err != nil {
			return nil, err
		}
		if filepath.Ext(e.file) == ".wav" {
			if data, err = wavData(data, Rate); err != nil {
				return nil, fmt.Errorf("read %s: %w", e.file, err)
			}
		}
		clips = append(clips, Clip{Name: e.file, Text: e.text, Lang: "en", PCM: samples(data)})
	}
	return clips, nil
}

// Mandarin returns three short clips of Chinese: human syllables, joined.
func Mandarin() ([]Clip, error) {
	var clips []Clip
	for _, e := range mandarinTexts {
		data, err := mandarin.ReadFile("zh/" + e.file)
		if err != nil {
			return nil, err
		}
		if data, err = wavData(data, Rate); err != nil {
			return nil, fmt.Errorf("read %s: %w", e.file, err)
		}
		clips = append(clips, Clip{Name: e.file, Text: e.text, Lang: "zh", PCM: samples(data)})
	}
	return clips, nil
}

// Music returns five pieces of 8 s, none of them sung in the foreground.
func Music() ([]Clip, error) {
	files, err := filepath.Glob(filepath.Join(musicDir, "*.g722"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, missing("asterisk-moh-opsound-g722", fmt.Errorf("no music in %s", musicDir))
	}
	var clips []Clip
	for _, file := range files {
		data, err := readPackaged("asterisk-moh-opsound-g722", file)
		if err != nil {
			return nil, err
		}
		// G.722 holds two samples in a byte and has to be decoded from its beginning.
		pcm := decodeG722(data[:min(len(data), 28*Rate/2)])
		clips = append(clips, Clip{Name: filepath.Base(file), PCM: pcm[min(20*Rate, len(pcm)):]})
	}
	return clips, nil
}

// Noise returns a beep, two tones, a noise recording and 2 s of digital silence.
func Noise() ([]Clip, error) {
	clips := []Clip{{Name: "silence", PCM: make([]int16, 2*Rate)}}
	for _, name := range []string{"beep", "ascending-2tone", "descending-2tone"} {
		pcm, err := prompt(name)
		if err != nil {
			return nil, err
		}
		clips = append(clips, Clip{Name: name, PCM: pcm})
	}
	data, err := readPackaged("alsa-utils", filepath.Join(alsaDir, "Noise.wav"))
	if err != nil {
		return nil, err
	}
	if data, err = wavData(data, 3*Rate); err != nil {
		return nil, fmt.Errorf("read Noise.wav: %w", err)
	}
	return append(clips, Clip{Name: "alsa-noise", PCM: third(samples(data))}), nil
}

// Folder are all 16 kHz mono WAV files of a folder, for measurements that go
// beyond what the packages bring. Nothing is known of what they say.
func Folder(dir string) ([]Clip, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.wav"))
	if err != nil {
		return nil, err
	}
	var clips []Clip
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if data, err = wavData(data, Rate); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		clips = append(clips, Clip{Name: filepath.Base(file), PCM: samples(data)})
	}
	return clips, nil
}

// spoken reads the prompts of a table.
func spoken(table []entry) ([]Clip, error) {
	clips := make([]Clip, 0, len(table))
	for _, e := range table {
		pcm, err := prompt(e.file)
		if err != nil {
			return nil, err
		}
		clips = append(clips, Clip{Name: e.file, Text: e.text, Lang: "en", PCM: pcm})
	}
	return clips, nil
}

// prompt reads one G.722 prompt by its name.
func prompt(name string) ([]int16, error) {
	data, err := readPackaged("asterisk-core-sounds-en-g722", filepath.Join(promptDir, name+".g722"))
	if err != nil {
		return nil, err
	}
	return decodeG722(data), nil
}

func decodeG722(data []byte) []int16 { return g722.Decode(data, g722.Rate64000, 0) }

// readPackaged reads a file that a Debian package installs.
func readPackaged(pkg, file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, missing(pkg, err)
	}
	return data, nil
}

func missing(pkg string, err error) error {
	return fmt.Errorf("test recordings (install the Debian package %s): %w", pkg, err)
}

// wavData is the sample data of a mono 16 bit WAV file of the given rate.
func wavData(data []byte, rate uint32) ([]byte, error) {
	if len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WAVE" {
		return nil, errors.New("not a WAV file")
	}
	for rest := data[12:]; len(rest) >= 8; {
		id, size := string(rest[:4]), int(binary.LittleEndian.Uint32(rest[4:]))
		body := rest[8:]
		size = min(size, len(body))
		switch {
		case id == "fmt " && size >= 16:
			channels, hz := binary.LittleEndian.Uint16(body[2:]), binary.LittleEndian.Uint32(body[4:])
			if bits := binary.LittleEndian.Uint16(body[14:]); channels != 1 || hz != rate || bits != 16 {
				return nil, fmt.Errorf("%d channels of %d bits at %d Hz, want mono, 16 bits, %d Hz", channels, bits, hz, rate)
			}
		case id == "data":
			return body[:size], nil
		}
		rest = body[min(size+size%2, len(body)):]
	}
	return nil, errors.New("no sample data")
}

// samples reads little-endian 16 bit PCM.
func samples(data []byte) []int16 {
	pcm := make([]int16, len(data)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(data[2*i:]))
	}
	return pcm
}

// third takes 48 kHz to 16 kHz by means of three; good enough for noise.
func third(pcm []int16) []int16 {
	out := make([]int16, len(pcm)/3)
	for i := range out {
		out[i] = int16((int(pcm[3*i]) + int(pcm[3*i+1]) + int(pcm[3*i+2])) / 3)
	}
	return out
}
