package track_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"xiaozhi/audio/file"
	"xiaozhi/audio/track"
)

// A track is read in pieces, whatever kind of file it is.
func ExampleOpen() {
	var wav bytes.Buffer
	if err := file.WriteWAV(&wav, make([]int16, 44100), 44100); err != nil {
		fmt.Println(err)
		return
	}
	song, err := track.Open(io.NopCloser(&wav))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer song.Close()
	pcm, total := make([]int16, 2646), 0 // 60 ms
	for {
		n, err := song.Read(pcm)
		total += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(total, "samples at", song.Rate(), "Hz")
	// Output: 44100 samples at 44100 Hz
}
