// Render makes the sounds that are played when speech synthesis itself is down:
// it speaks the failure phrases with the local engines and writes them as WAV
// files. Run it from the root of the repository after changing a phrase:
//
//	go run -tags nolibopusfile ./providers/local/render
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/providers"
	"xiaozhi/providers/local"
)

func main() {
	from := flag.String("phrases", "prompts", "folder of phrases.zh.yaml and phrases.en.yaml")
	to := flag.String("out", filepath.Join("prompts", "sounds"), "folder of the sounds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *from, *to)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, from, to string) error {
	s, err := local.New(ctx, local.Options{})
	if err != nil {
		return err
	}
	for _, lang := range []string{"zh", "en"} {
		files, err := render(ctx, s, from, to, lang)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d sounds by %v\n", lang, files, s.Found())
	}
	return nil
}

// rate is that of the files, in Hz.
const rate = 16000

// wanted says which phrases are kept as sound.
func wanted(id string) bool {
	return id == "pardon" || id == "no_voice" || id == "overload" || id == "shutting_down" ||
		strings.HasPrefix(id, "fail_") || strings.HasPrefix(id, "slow_") || strings.HasPrefix(id, "pair_") && id != "pair_code"
}

// render writes one file for each wanted phrase of a language, ID.LANG.wav.
func render(ctx context.Context, tts providers.TTS, from, to, lang string) (files int, err error) {
	path := filepath.Join(from, "phrases."+lang+".yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read phrases: %w", err)
	}
	var phrases map[string]string
	if err := yaml.Unmarshal(text, &phrases); err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	for _, id := range slices.Sorted(maps.Keys(phrases)) {
		if !wanted(id) {
			continue
		}
		pcm, err := speak(ctx, tts, phrases[id], lang)
		if err != nil {
			return files, fmt.Errorf("speak %s of %s: %w", id, path, err)
		}
		var wav bytes.Buffer
		if err := file.WriteWAV(&wav, pcm, rate); err != nil {
			return files, fmt.Errorf("write %s: %w", id, err)
		}
		if err := os.WriteFile(filepath.Join(to, id+"."+lang+".wav"), wav.Bytes(), 0o644); err != nil {
			return files, fmt.Errorf("write sound: %w", err)
		}
		files++
	}
	if files == 0 {
		return 0, fmt.Errorf("%s: no phrase begins with fail_", path)
	}
	return files, nil
}

// speak returns the whole sound of a text at the rate of the files.
func speak(ctx context.Context, tts providers.TTS, text, lang string) ([]int16, error) {
	var pcm []int16
	var conv *audio.Resampler
	for snd, err := range tts.Synthesize(ctx, providers.TTSRequest{Text: text, Language: lang}) {
		if err != nil {
			return nil, err
		}
		if conv == nil {
			if conv, err = audio.NewResampler(snd.Rate, rate); err != nil {
				return nil, err
			}
		}
		pcm = conv.Write(pcm, snd.PCM)
	}
	if conv == nil {
		return nil, fmt.Errorf("%q has nothing to say", text)
	}
	return conv.Flush(pcm), nil
}
