package agent

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/internal/wire"
)

// TestUplinkDoesNotAllocate: a packet of the microphone costs no memory on its
// way through the two queues, the decoder and the voice detector.
func TestUplinkDoesNotAllocate(t *testing.T) {
	var detectors sync.WaitGroup
	o := Options{VAD: energyVAD{&detectors}}.withDefaults()
	first, second := wire.NewQueue[wire.Event](), wire.NewQueue[turn.Effect]()
	e := &ears{
		o: &o, mode: wire.Auto, in: second, log: slog.New(slog.DiscardHandler),
		report: func(any) {}, utterances: &utterances{},
	}
	if err := e.prepare(); err != nil {
		t.Fatal(err)
	}
	enc, err := audio.NewEncoder(audio.Recognition)
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
	var heard []wire.Item[turn.Effect]
	frame := func() {
		at = at.Add(60 * time.Millisecond)
		first.Put(wire.Packet{Data: packet, At: at})
		out, _ = first.Take(out)
		second.Put(out[0].Packet)
		heard, _ = second.Take(heard)
		e.take(heard[0])
	}
	for range 20 {
		frame()
	}
	if n := testing.AllocsPerRun(200, frame); n > 0 {
		t.Errorf("%v allocations for a frame", n)
	}
	if err := e.detector.Close(); err != nil {
		t.Error(err)
	}
}
