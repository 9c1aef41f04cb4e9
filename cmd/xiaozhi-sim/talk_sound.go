package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
)

// readSpeech reads a WAV file as the microphone would hear it: 16 kHz, mono.
func readSpeech(name string) ([]int16, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pcm, rate, err := file.ReadWAV(f)
	if err != nil {
		return nil, err
	}
	if len(pcm) == 0 {
		return nil, errors.New("no sound in it")
	}
	return resample(pcm, rate, audio.Recognition.Rate)
}

func resample(pcm []int16, from, to int) ([]int16, error) {
	r, err := audio.NewResampler(from, to)
	if err != nil {
		return nil, err
	}
	return r.Flush(r.Write(nil, pcm)), nil
}

// trailing returns the length of the silence at the end of a recording.
func trailing(pcm []int16) time.Duration {
	const window, loud = 320, 300 // 20 ms; mean size of a sample (of 32768)
	silent := 0
	for end := len(pcm); end > 0; end -= window {
		part := pcm[max(0, end-window):end]
		sum := 0
		for _, s := range part {
			sum += max(int(s), -int(s))
		}
		if sum > loud*len(part) {
			break
		}
		silent += len(part)
	}
	return audio.Recognition.Duration(silent)
}

// save writes what the device played, all replies in one file.
func (t *talker) saveReplies() error {
	if t.save == "" {
		return nil
	}
	if len(t.replies) == 0 {
		return errors.New("--save: there is no reply to save")
	}
	rate := t.replies[0].Rate
	var all []int16
	for _, r := range t.replies {
		pcm, err := resample(r.PCM, r.Rate, rate)
		if err != nil {
			return fmt.Errorf("--save: %w", err)
		}
		all = append(all, pcm...)
	}
	f, err := os.Create(t.save)
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	err = file.WriteWAV(f, all, rate)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("--save %s: %w", t.save, err)
	}
	t.out.print("saved", fmt.Sprintf("%s (%.1f s)", t.save, float64(len(all))/float64(rate)))
	return nil
}
