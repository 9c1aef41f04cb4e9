package agent

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
)

// TestUplinkDoesNotAllocate: a packet of the microphone costs no memory on its
// way through the two queues, the decoder and the voice detector.
func TestUplinkDoesNotAllocate(t *testing.T) {
	var detectors sync.WaitGroup
	o := Options{VAD: energyVAD{&detectors}}.withDefaults()
	pool := newPackets()
	first, second := newInbox(), newInbox()
	e := &ears{
		o: &o, mode: wire.Auto, in: second, packets: pool, log: slog.New(slog.DiscardHandler),
		report: func(any) {}, garbled: new(atomic.Int64),
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
	var out, heard []posted
	frame := func() {
		at = at.Add(60 * time.Millisecond)
		first.postFrame(wire.Frame{Packet: pool.copyOf(packet), At: at}, true)
		out, _ = first.take(out)
		second.postFrame(out[0].frame, out[0].pooled)
		heard, _ = second.take(heard)
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
