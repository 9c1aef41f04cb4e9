package audio

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hraban/opus"

	"xiaozhi/audio/internal/libopus"
)

const (
	// MaxPacket is room enough, in bytes, for any packet that Encoder makes.
	MaxPacket = 1500

	maxPacketDuration = 120 * time.Millisecond // RFC 6716, section 3.2, R5
	dtxBytes          = 2                      // no longer packet says "nothing to hear"
	pauseFade         = 5                      // ms
)

// OpusVersion returns the version of libopus, such as 1.3.1.
func OpusVersion() string { return strings.TrimPrefix(opus.Version(), "libopus ") }

// Coding limits what an encoder spends.
type Coding struct {
	Bitrate    int // bit/s on average
	Complexity int // 0 to 10; below 5 low voices get rough, below 1 a sound is heard before it begins
}

// Usual is the coding of speech for small loudspeakers (docs/decisions.md 30).
func Usual() Coding { return Coding{Bitrate: 24000, Complexity: 5} }

// Device is the coding of devices' microphones (docs/protocol.md 4.1), which makes SILK's packets. Simulated devices use it.
func Device() Coding { return Coding{Bitrate: 17000} }

// MaxFrameSamples returns the number of samples of the longest possible packet,
// 120 ms, at that rate in Hz: how long Decode's buffer should be.
func MaxFrameSamples(rate int) int {
	return Format{Rate: rate, Frame: maxPacketDuration}.Samples()
}

// PacketDuration reads from a packet's first bytes how long it plays
// (RFC 6716, section 3.1). It does not look at the rest of the packet.
func PacketDuration(packet []byte) (time.Duration, error) {
	if len(packet) == 0 {
		return 0, errors.New("opus: the packet is empty")
	}
	frames := 1
	switch packet[0] & 3 {
	case 1, 2:
		frames = 2
	case 3:
		if len(packet) < 2 {
			return 0, errors.New("opus: the packet ends before its frame count")
		}
		frames = int(packet[1] & 0x3f)
	}
	d := time.Duration(frames) * frameDuration(packet[0]>>3)
	if d == 0 || d > maxPacketDuration {
		return 0, fmt.Errorf("opus: a packet of %v, want more than 0 and at most %v", d, maxPacketDuration)
	}
	return d, nil
}

// frameDuration returns the frame length of a TOC configuration, 0 to 31.
func frameDuration(config byte) time.Duration {
	switch {
	case config < 12: // SILK: 10, 20, 40, 60 ms
		if config&3 == 3 {
			return 60 * time.Millisecond
		}
		return 10 * time.Millisecond << (config & 3)
	case config < 16: // hybrid: 10, 20 ms
		return 10 * time.Millisecond << (config & 1)
	default: // CELT: 2.5, 5, 10, 20 ms
		return 2500 * time.Microsecond << (config & 3)
	}
}

// Decoder turns Opus packets into mono PCM of one rate, whatever rate and
// number of channels they were encoded with. It is for one goroutine.
type Decoder struct {
	opus *opus.Decoder
	rate int
	last int // samples of the last packet that was more than a pause
}

// NewDecoder makes a decoder that gives PCM at rate Hz: 8000, 12000, 16000, 24000 or 48000.
func NewDecoder(rate int) (*Decoder, error) {
	d, err := opus.NewDecoder(rate, 1)
	if err != nil {
		return nil, fmt.Errorf("opus decoder for %d Hz: %w", rate, err)
	}
	return &Decoder{opus: d, rate: rate}, nil
}

// Decode decodes one packet of 2.5 to 120 ms into pcm, which has room for it (MaxFrameSamples),
// and says how many samples it wrote. A packet of one or two bytes is a pause, at least as long
// as the packet before (docs/protocol.md 4.1): that fades within 5 ms, then there is silence.
// A packet that is empty or broken is an error; the decoder stays usable.
func (d *Decoder) Decode(packet []byte, pcm []int16) (n int, err error) {
	length, err := PacketDuration(packet)
	if err != nil {
		return 0, err
	}
	want := Format{Rate: d.rate, Frame: length}.Samples()
	total, pause := want, len(packet) <= dtxBytes
	if pause {
		total = max(want, d.last)
	}
	if total > len(pcm) {
		return 0, fmt.Errorf("opus: the packet holds %d samples, the buffer %d", total, len(pcm))
	}
	// The binding looks at the capacity, so it is cut to the length.
	n, err = d.opus.Decode(packet, pcm[:want:want])
	if err != nil {
		return 0, fmt.Errorf("opus: decode a packet of %d bytes: %w", len(packet), err)
	}
	if !pause {
		d.last = n
		return n, nil
	}
	// The decoder goes on with the sound before it, which may have been speech.
	fade := min(n, pauseFade*d.rate/1000)
	for i := range fade {
		pcm[i] = int16(int(pcm[i]) * (fade - i) / fade)
	}
	clear(pcm[fade:total])
	return total, nil
}

// Lost makes sound for one packet that never came, or came broken, so that audio time goes on,
// and says how many samples it wrote: as many as the last packet that was more than a pause,
// 60 ms before the first. next is the packet that follows the lost one, nil if it is not there
// yet: its copy of the lost sound (in-band FEC) is used, else the sound before fades within a
// few frames. next is still to be decoded; of several lost in a row only the last gets it.
func (d *Decoder) Lost(next []byte, pcm []int16) (int, error) {
	n := cmp.Or(d.last, Format{Rate: d.rate, Frame: Recognition.Frame}.Samples())
	if n > len(pcm) {
		return 0, fmt.Errorf("opus: the lost packet had %d samples, the buffer %d", n, len(pcm))
	}
	pcm = pcm[:n:n] // the binding looks at the capacity
	if len(next) > dtxBytes && d.opus.DecodeFEC(next, pcm) == nil {
		return n, nil
	}
	if err := d.opus.DecodePLC(pcm); err != nil {
		return 0, fmt.Errorf("opus: conceal %d samples: %w", n, err)
	}
	return n, nil
}

// Receive is Decode where no packet vanishes: for one that cannot be decoded it writes what
// Lost writes. The samples are good even with an error, which says what was wrong.
func (d *Decoder) Receive(packet []byte, pcm []int16) (int, error) {
	n, err := d.Decode(packet, pcm)
	if err == nil {
		return n, nil
	}
	n, err2 := d.Lost(nil, pcm)
	return n, errors.Join(err, err2)
}

// Encoder turns mono PCM into Opus packets of one length. It is for one goroutine. It works in libopus's application
// "audio" (docs/decisions.md 30): at the usual bitrate its packets are CELT's.
type Encoder struct {
	opus    *libopus.Encoder
	silence []int16
	last    int16 // the sample encoded last
	drift   drift
	begins  bool // the next packet is the first of a stream
}

// NewEncoder makes an encoder for what devices accept (docs/protocol.md 4.2): 8000, 12000,
// 16000, 24000 or 48000 Hz, and frames of 5, 10, 20, 40, 60, 80, 100 or 120 ms, with the usual coding.
func NewEncoder(f Format) (*Encoder, error) { return NewEncoderOf(f, Usual()) }

// NewEncoderOf is NewEncoder with another coding.
func NewEncoderOf(f Format, c Coding) (*Encoder, error) {
	if !slices.Contains([]time.Duration{5, 10, 20, 40, 60, 80, 100, 120}, f.Frame/time.Millisecond) || f.Frame%time.Millisecond != 0 {
		return nil, fmt.Errorf("opus encoder: frames of %v, want 5, 10, 20, 40, 60, 80, 100 or 120 ms", f.Frame)
	}
	e, err := libopus.New(f.Rate, c.Bitrate, c.Complexity)
	if err != nil {
		return nil, fmt.Errorf("opus encoder for %d Hz, %d bit/s, complexity %d: %w", f.Rate, c.Bitrate, c.Complexity, err)
	}
	return &Encoder{opus: e, silence: make([]int16, f.Samples()), drift: drift{rate: f.Rate}, begins: true}, nil
}

// Encode encodes exactly one frame of pcm into packet, which must have room for
// MaxPacket bytes, and says how many of them it used.
func (e *Encoder) Encode(pcm []int16, packet []byte) (int, error) {
	if len(pcm) != len(e.silence) {
		return 0, fmt.Errorf("opus: a frame of %d samples was given, the encoder takes exactly %d", len(pcm), len(e.silence))
	}
	if len(packet) < MaxPacket {
		return 0, fmt.Errorf("opus: a packet buffer of %d bytes, want %d", len(packet), MaxPacket)
	}
	n, err := e.encode(pcm, packet[:MaxPacket])
	if err != nil {
		return 0, fmt.Errorf("opus: encode %d samples: %w", len(pcm), err)
	}
	e.last = pcm[len(pcm)-1]
	e.drift.add(pcm)
	return n, nil
}

// encode makes the first packet of a stream so that it needs none before it: a decoder that goes on from other sound
// would take the loudness of each band from that sound, and play the first syllable too softly.
func (e *Encoder) encode(pcm []int16, packet []byte) (int, error) {
	if !e.begins {
		return e.opus.Encode(pcm, packet)
	}
	if err := e.opus.Independent(true); err != nil {
		return 0, err
	}
	n, err := e.opus.Encode(pcm, packet)
	e.begins = err != nil
	return n, errors.Join(err, e.opus.Independent(false))
}

// Silence encodes one frame of silence as the next one of the stream: it leads from where the
// sound was to zero, without a click, and the device's decoder fades out. Where the device has
// not got the frames before it, as after a cut, Reset comes first, or the silence is noise.
func (e *Encoder) Silence(packet []byte) (int, error) {
	faded := min(FadeSamples(e.drift.rate), len(e.silence))
	RampOut(e.silence[:faded], e.last)
	e.drift.settle(e.silence[:faded], e.silence[faded:])
	n, err := e.Encode(e.silence, packet)
	clear(e.silence)
	return n, err
}

// Reset begins a new stream. It is called when the device has been given packets
// of another encoder since the last of this one, or not all of this one's.
func (e *Encoder) Reset() error {
	e.last, e.drift.value, e.begins = 0, 0, true
	if err := e.opus.Reset(); err != nil {
		return fmt.Errorf("opus: reset the encoder: %w", err)
	}
	return nil
}
