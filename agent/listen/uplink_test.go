package listen

import (
	"log/slog"
	"testing"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/internal/wire"
	"xiaozhi/providers/providertest"
)

// TestUplinkDoesNotAllocate: a packet of the microphone costs no memory on its
// way through the two queues, the decoder and the voice detector.
func TestUplinkDoesNotAllocate(t *testing.T) {
	o := &Options{VAD: &providertest.VAD{}, Book: &Book{}, Log: slog.New(slog.DiscardHandler)}
	first, l := wire.NewQueue[wire.Event](), New(o, turn.Listen{Mode: wire.Auto})
	if err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	var heard []wire.Item[turn.Effect]
	enc, err := audio.NewEncoderOf(audio.Recognition, audio.Device())
	if err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, audio.MaxPacket)
	n, err := enc.Encode(make([]int16, 960), packet)
	if err != nil {
		t.Fatal(err)
	}
	packet = packet[:n]
	at := time.Now()
	var out []wire.Item[wire.Event]
	frame := func() {
		at = at.Add(60 * time.Millisecond)
		first.Put(wire.Packet{Data: packet, At: at})
		out, _ = first.Take(out)
		l.Put(out[0].Packet)
		heard, _ = l.in.Take(heard)
		l.take(heard[0])
	}
	for range 20 {
		frame()
	}
	if n := testing.AllocsPerRun(200, frame); n > 0 {
		t.Errorf("%v allocations for a frame", n)
	}
	l.detector.close()
}
