// Makeclip makes the speech that the bench says to a server and that its stub
// voice answers with. Run it from the root of the repository, with the Debian
// package pocketsphinx-testdata installed:
//
//	go run -tags nolibopusfile ./internal/bench/makeclip
//
// It takes a sentence that a volunteer of LibriVox reads, "he was not an ill
// disposed young man", 16 kHz mono, without what lies before the first and behind
// the last 10 ms whose power is within 15 dB of the loudest. So the end of the
// last voiced sample is the end of what is left. That is encoded as Opus in
// frames of 60 ms, with zeros behind it for as long as a device's encoder takes
// to see that there is no speech and to send pauses.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"xiaozhi/audio"
)

const (
	header = 44 // bytes of the file before the samples
	rate   = 16000
	window = rate / 100
	within = 32 // 15 dB of power
	tail   = 4  // frames of zeros behind the sound
)

func main() {
	from := flag.String("from", "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0880.wav", "16 kHz mono 16 bit WAV file")
	to := flag.String("out", filepath.Join("internal", "bench", "speech.opus60"), "where the packets go")
	flag.Parse()
	if err := run(*from, *to); err != nil {
		fmt.Fprintln(os.Stderr, "makeclip:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	data = data[min(header, len(data)):]
	pcm := make([]int16, len(data)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(data[2*i:]))
	}
	pcm = voiced(pcm)
	packets, err := encode(pcm)
	if err != nil {
		return err
	}
	fmt.Printf("%d samples, %v\n", len(pcm), audio.Recognition.Duration(len(pcm)))
	return os.WriteFile(to, packets, 0o644)
}

// voiced is pcm from its first to its last window that is loud enough.
func voiced(pcm []int16) []int16 {
	power := make([]int64, len(pcm)/window)
	var loudest int64
	for i := range power {
		for _, s := range pcm[i*window : (i+1)*window] {
			power[i] += int64(s) * int64(s)
		}
		loudest = max(loudest, power[i])
	}
	first, last := -1, 0
	for i, p := range power {
		if p*within < loudest {
			continue
		}
		if last = i; first < 0 {
			first = i
		}
	}
	return pcm[first*window : (last+1)*window]
}

// encode writes how many samples there are, and each packet behind its length:
// all numbers 16 bit, little endian, but the first, which has 32.
func encode(pcm []int16) ([]byte, error) {
	enc, err := audio.NewEncoder(audio.Format{Rate: rate, Frame: 60 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(pcm)))
	packet := make([]byte, audio.MaxPacket)
	pcm = append(slices.Clip(pcm), make([]int16, tail*audio.Recognition.Samples())...)
	for len(pcm) > 0 {
		frame := make([]int16, audio.Recognition.Samples())
		pcm = pcm[copy(frame, pcm):]
		n, err := enc.Encode(frame, packet)
		if err != nil {
			return nil, err
		}
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
		out = append(out, packet[:n]...)
	}
	return out, nil
}
