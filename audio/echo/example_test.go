package echo_test

import (
	"fmt"

	"xiaozhi/audio"
	"xiaozhi/audio/echo"
)

// The packets that are sent go into the far end; the microphone's frames take
// from it what the device has played meanwhile.
func ExampleCanceller() {
	packet := make([]byte, audio.MaxPacket)
	encoder, err := audio.NewEncoderOf(audio.Recognition, audio.Device())
	if err != nil {
		fmt.Println(err)
		return
	}
	far, canceller := &echo.FarEnd{}, echo.NewCanceller()
	far.Open(true) // the microphone is open while the device plays
	for stamp := uint32(1); stamp <= 3; stamp++ {
		n, err := encoder.Encode(make([]int16, audio.Recognition.Samples()), packet)
		if err != nil {
			fmt.Println(err)
		}
		far.Sent(packet[:n], stamp)

		mic := make([]int16, audio.Recognition.Samples()) // the device's next frame, with the timestamp that it brings
		far.Take(canceller.Played)
		canceller.Cancel(stamp, mic)
	}
	fmt.Println("latency:", echo.Latency, "samples")
	// Output: latency: 160 samples
}
