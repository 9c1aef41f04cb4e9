package audio_test

import (
	"fmt"
	"time"

	"xiaozhi/audio"
)

// Probabilities of a voice detector go in, the moments that matter come out.
func ExampleEndpointer() {
	e := audio.NewEndpointer(audio.EndpointOptions{})
	const window = 32 * time.Millisecond
	for i := range 70 {
		p := float32(0.02)
		if i >= 10 && i < 40 {
			p = 0.98 // someone speaks from 320 to 1280 ms
		}
		if event := e.Feed(p, window); event != audio.EndpointNone {
			fmt.Println(event, "after", time.Duration(i+1)*window)
		}
	}
	fmt.Println(e.Voiced(), "of voice, the last at", e.LastVoice())
	// Output:
	// speech_start after 480ms
	// trigger after 1.504s
	// commit after 1.984s
	// 960ms of voice, the last at 1.28s
}

// The owner of a pacer waits until each frame is due and then sends it.
func ExamplePacer() {
	p := audio.NewPacer(60*time.Millisecond, 4)
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	now := start
	for range 6 {
		if due := p.Due(now); due.After(now) {
			now = due // really: a timer
		}
		p.Sent(now)
		fmt.Println("frame", p.Frames(), "at", now.Sub(start), "lead", p.Lead(now))
	}
	// Output:
	// frame 1 at 0s lead 60ms
	// frame 2 at 0s lead 120ms
	// frame 3 at 0s lead 180ms
	// frame 4 at 0s lead 240ms
	// frame 5 at 30ms lead 270ms
	// frame 6 at 90ms lead 270ms
}
