package openai

import (
	"errors"
	"fmt"
	"io"

	"xiaozhi/audio"
)

const (
	opusRate       = 24000 // Hz; the rate of the replies, so that nothing need be resampled
	maxOpusSamples = opusRate * 120 / 1000
)

// playOpus decodes Ogg Opus. It gives PCM and not the packets: servers send
// packets of 20 ms, devices play 60 ms, and sound that is passed through cannot
// be levelled.
func playOpus(r io.Reader, p *player) error {
	pages := audio.NewOggReader(r)
	first, err := pages.Next()
	if err != nil {
		return short(err)
	}
	head, err := audio.ParseOpusHead(first)
	if err != nil {
		return err
	}
	if _, err := pages.Next(); err != nil { // OpusTags
		return short(err)
	}
	decoder, err := audio.NewDecoder(opusRate)
	if err != nil {
		return fmt.Errorf("open opus decoder: %w", err)
	}
	skip := head.PreSkip * opusRate / 48000
	pcm := make([]int16, maxOpusSamples)
	for {
		packet, err := pages.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(packet) == 0 {
			continue
		}
		n, err := decoder.Decode(packet, pcm)
		if err != nil {
			return fmt.Errorf("opus packet: %w", err)
		}
		left := min(skip, n)
		skip -= left
		if !p.play(opusRate, pcm[left:n]) {
			return nil
		}
	}
}
