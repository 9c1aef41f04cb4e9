package listen

import (
	"fmt"
	"log/slog"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/echo"
	"xiaozhi/internal/wire"
)

const (
	mostBroken   = 5    // broken packets in a row that are concealed
	garbledEvery = 1000 // packets that are not Opus make one line in the log
)

// decoder makes sound of packets. One that came twice is heard once; one that
// never came, or came broken, takes its time all the same. It takes the echo out
// where there is a far end. It is for one goroutine.
type decoder struct {
	uplink audio.Uplink
	opus   *audio.Decoder
	broken int // packets in a row that could not be decoded
	pcm    []int16
	far    *echo.FarEnd    // nil: no echo has to be taken out
	echo   *echo.Canceller // of far
	book   *Book           // counts what is not Opus
	log    *slog.Logger
}

func newDecoder(far *echo.FarEnd, book *Book, log *slog.Logger) (*decoder, error) {
	opus, err := audio.NewDecoder(audio.Recognition.Rate)
	if err != nil {
		return nil, fmt.Errorf("make a decoder: %w", err)
	}
	d := &decoder{opus: opus, pcm: make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate)), far: far, book: book, log: log}
	if far != nil {
		d.echo = echo.NewCanceller()
	}
	return d, nil
}

// reset forgets the packets before.
func (d *decoder) reset() {
	d.uplink.Reset()
	d.broken = 0
	if d.echo != nil {
		d.echo.Reset()
	}
}

// write decodes a packet and gives its sound, and what stands for lost ones before
// it, to next, which must not keep it. Packets that are heard are put on the tape before; nil: there is none.
func (d *decoder) write(p wire.Packet, on *tape, next func(pcm []int16, at time.Time)) {
	if len(p.Data) == 0 {
		return
	}
	arrival := d.uplink.Arrived(p.Data, p.At)
	if arrival.Twin {
		return
	}
	for range arrival.Lost {
		on.lost()
		d.conceal(nil, p.At, next)
	}
	if d.broken > 0 && d.broken <= mostBroken {
		on.lost()
		d.conceal(p.Data, p.At, next) // this one may hold a copy of the sound before it
	}
	n, err := d.opus.Decode(p.Data, d.pcm)
	if err != nil {
		d.broken++
		if n := d.book.garble(); n%garbledEvery == 1 {
			d.log.Warn("frame is not Opus", "err", err, "bytes", len(p.Data), "so_far", n)
		}
		return
	}
	d.broken = 0
	on.add(p.Data)
	d.pass(d.pcm[:n], p.Stamp, p.At, next)
}

// conceal passes on what stands for a lost packet.
func (d *decoder) conceal(after []byte, at time.Time, next func([]int16, time.Time)) {
	if n, err := d.opus.Lost(after, d.pcm); err == nil {
		d.pass(d.pcm[:n], 0, at, next)
	}
}

// pass takes the echo out and passes sound on that was recorded while the device
// played the packet of that stamp.
func (d *decoder) pass(pcm []int16, stamp uint32, at time.Time, next func([]int16, time.Time)) {
	if d.echo != nil {
		d.far.Take(d.echo.Played)
		d.echo.Cancel(stamp, pcm)
	}
	next(pcm, at)
}
