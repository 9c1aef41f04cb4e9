// Package speechtest finds recordings of people, music and noise for tests, as 16 kHz mono PCM with what is said in
// them. The recordings are those of Debian packages, read where the packages put them; what is missing is an error
// that names the package. Transcripts were typed by hand from what the prompts are known to say and checked against a
// recogniser.
//
// Sources: asterisk-core-sounds-en-g722 (prompts and words, CC-BY-SA-3.0),
// asterisk-moh-opsound-g722 (music), pocketsphinx-testdata (other speakers),
// alsa-utils (noise), and three Mandarin clips in the folder zh (see its NOTICE).
package speechtest

import (
	"bytes"
	"embed"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gotranspile/g722"

	"xiaozhi/audio/file"
)

// Rate is the sample rate of every clip, in Hz.
const Rate = 16000

// Clip is one recording. Its sound is decoded when it is first asked for: a test
// that needs one prompt does not wait for all of them.
type Clip struct {
	Name string // unique among the clips of one function
	Text string // what is said, lower case without punctuation; "" for no speech
	Lang string // "en", "zh", or "" for no speech

	samples int            // how many PCM gives
	decode  func() []int16 // any goroutine may call it
}

// PCM is the sound. Callers share one slice and must not write to it.
func (c Clip) PCM() []int16 { return c.decode() }

// Duration returns the length of the sound. It decodes nothing.
func (c Clip) Duration() time.Duration { return time.Duration(c.samples) * time.Second / Rate }

// clipOf makes a clip of sound that is there already.
func clipOf(c Clip, pcm []int16) Clip {
	c.samples, c.decode = len(pcm), func() []int16 { return pcm }
	return c
}

// clipOfG722 makes a clip of G.722 data, two samples a byte, without the first skip samples.
func clipOfG722(c Clip, data []byte, skip int) Clip {
	c.samples = max(0, 2*len(data)-skip)
	c.decode = sync.OnceValue(func() []int16 {
		pcm := g722.Decode(data, g722.Rate64000, 0)
		return pcm[min(skip, len(pcm)):]
	})
	return c
}

// clipOfWAV makes a clip of a WAV file.
func clipOfWAV(c Clip, data []byte) (Clip, error) {
	pcm, err := readWAV(data, Rate)
	if err != nil {
		return c, fmt.Errorf("read %s: %w", c.Name, err)
	}
	return clipOf(c, pcm), nil
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

// texts are tables of recordings and what is said in them, a line each.
//
//go:embed texts/*.tsv
var texts embed.FS

// Prompts returns sentences read by one US English speaker: telephone prompts, studio sound.
func Prompts() ([]Clip, error) { return listed("prompts", "en", prompt) }

// Unseen returns more prompts of that speaker, for measurements only: nothing was ever chosen by what is heard in them.
func Unseen() ([]Clip, error) { return listed("unseen", "en", prompt) }

// Commands returns single words and short phrases of the same speaker.
func Commands() ([]Clip, error) { return listed("commands", "en", prompt) }

// Others returns English sentences of other speakers.
func Others() ([]Clip, error) {
	return listed("others", "en", func(c Clip) (Clip, error) {
		data, err := readPackaged("pocketsphinx-testdata", filepath.Join(sphinxDir, c.Name))
		if err == nil && filepath.Ext(c.Name) == ".wav" {
			return clipOfWAV(c, data)
		}
		pcm := make([]int16, len(data)/2)
		_, _ = binary.Decode(data, binary.LittleEndian, pcm) // there is as much
		return clipOf(c, pcm), err
	})
}

// Mandarin returns three short clips of Chinese: human syllables, joined.
func Mandarin() ([]Clip, error) {
	return listed("mandarin", "zh", func(c Clip) (Clip, error) {
		data, err := mandarin.ReadFile("zh/" + c.Name)
		if err != nil {
			return c, err
		}
		return clipOfWAV(c, data)
	})
}

// listed reads the clips of a table.
func listed(table, lang string, read func(Clip) (Clip, error)) ([]Clip, error) {
	lines, err := texts.ReadFile("texts/" + table + ".tsv")
	if err != nil {
		return nil, err
	}
	var clips []Clip
	for line := range strings.Lines(string(lines)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		clip, err := read(Clip{Name: name, Text: text, Lang: lang})
		if err != nil {
			return nil, err
		}
		clips = append(clips, clip)
	}
	return clips, nil
}

// prompt reads the G.722 prompt that a clip names.
func prompt(c Clip) (Clip, error) {
	data, err := readPackaged("asterisk-core-sounds-en-g722", filepath.Join(promptDir, c.Name+".g722"))
	return clipOfG722(c, data, 0), err
}

// Music returns five pieces of 8 s, none of them sung in the foreground.
func Music() ([]Clip, error) {
	files, err := filepath.Glob(filepath.Join(musicDir, "*.g722"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		_, err := readPackaged("asterisk-moh-opsound-g722", filepath.Join(musicDir, "*.g722"))
		return nil, err
	}
	var clips []Clip
	for _, file := range files {
		data, err := readPackaged("asterisk-moh-opsound-g722", file)
		if err != nil {
			return nil, err
		}
		// G.722 holds two samples in a byte and has to be decoded from its beginning.
		clips = append(clips, clipOfG722(Clip{Name: filepath.Base(file)}, data[:min(len(data), 28*Rate/2)], 20*Rate))
	}
	return clips, nil
}

// Noise returns a beep, two tones, a noise recording and 2 s of digital silence.
func Noise() ([]Clip, error) {
	clips := []Clip{clipOf(Clip{Name: "silence"}, make([]int16, 2*Rate))}
	for _, name := range []string{"beep", "ascending-2tone", "descending-2tone"} {
		clip, err := prompt(Clip{Name: name})
		if err != nil {
			return nil, err
		}
		clips = append(clips, clip)
	}
	data, err := readPackaged("alsa-utils", filepath.Join(alsaDir, "Noise.wav"))
	if err != nil {
		return nil, err
	}
	pcm, err := readWAV(data, 3*Rate)
	if err != nil {
		return nil, fmt.Errorf("read Noise.wav: %w", err)
	}
	return append(clips, clipOf(Clip{Name: "alsa-noise"}, third(pcm))), nil
}

// Folder are all 16 kHz mono WAV files of a folder, for measurements that go
// beyond what the packages bring. Nothing is known of what they say.
func Folder(dir string) ([]Clip, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.wav"))
	if err != nil {
		return nil, err
	}
	var clips []Clip
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		clip, err := clipOfWAV(Clip{Name: filepath.Base(name)}, data)
		if err != nil {
			return nil, err
		}
		clips = append(clips, clip)
	}
	return clips, nil
}

// readPackaged reads a file that a Debian package installs.
func readPackaged(pkg, file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("test recordings (install the Debian package %s): %w", pkg, err)
	}
	return data, nil
}

// readWAV reads a mono 16 bit WAV file of the given rate.
func readWAV(data []byte, rate int) ([]int16, error) {
	w, err := file.NewWAVReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if w.Channels != 1 || w.Rate != rate || w.Bits != 16 {
		return nil, fmt.Errorf("%d channels of %d bits at %d Hz, want mono, 16 bits, %d Hz", w.Channels, w.Bits, w.Rate, rate)
	}
	return w.ReadAll()
}

// third takes 48 kHz to 16 kHz by means of three; good enough for noise.
func third(pcm []int16) []int16 {
	out := make([]int16, len(pcm)/3)
	for i := range out {
		out[i] = int16((int(pcm[3*i]) + int(pcm[3*i+1]) + int(pcm[3*i+2])) / 3)
	}
	return out
}

// WER counts the word errors of hyp against ref (the fewest substitutions, insertions and deletions) and the words of
// ref. Case and punctuation do not count. The word error rate of a set is the sum of errors over the sum of words.
func WER(ref, hyp string) (errors, words int) {
	want, got := spokenWords(ref), spokenWords(hyp)
	row := make([]int, len(got)+1)
	for j := range row {
		row[j] = j
	}
	for i, w := range want {
		diagonal := row[0]
		row[0] = i + 1
		for j, g := range got {
			substituted := diagonal
			if w != g {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, diagonal+1, row[j]+1)
		}
	}
	return row[len(got)], len(want)
}

// spokenWords are the words of a text: letters, digits and inner apostrophes.
func spokenWords(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '\'' && r <= 127
	})
	for i := range words {
		words[i] = strings.Trim(words[i], "'")
	}
	return words
}
