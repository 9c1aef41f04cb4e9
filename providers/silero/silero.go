// Package silero is Silero's voice activity detector, version 6, 16 kHz branch,
// computed in plain Go from embedded weights. README.md tells where the weights
// come from; they are Silero's own, under the licence in LICENSE.silero.
//
// One Model serves any number of detectors: it is read-only after New. A
// Detector holds about 1.2 KiB and belongs to one goroutine.
package silero

import (
	"errors"
	"fmt"
	"sync"

	"xiaozhi/providers"
)

const (
	frameSamples   = 512 // new samples per window, 32 ms
	contextSamples = 64  // samples of the window before that are heard again
	hidden         = 128 // width of the recurrent state
)

var errClosed = errors.New("silero: the detector is closed")

// Model holds the weights. It implements providers.VAD and may be used by any
// number of goroutines at once.
type Model struct {
	net *network
	fft *spectrum
}

var _ providers.VAD = (*Model)(nil)

// New unpacks the embedded weights, once for the process. It fails only if the program
// was built from a damaged weights file.
func New() (*Model, error) { return unpacked() }

var unpacked = sync.OnceValues(func() (*Model, error) {
	net, err := unpack(embedded)
	if err != nil {
		return nil, fmt.Errorf("silero: %w", err)
	}
	return &Model{net: net, fft: newSpectrum()}, nil
})

// FrameSamples is 512: 32 ms at 16 kHz.
func (m *Model) FrameSamples() int { return frameSamples }

// NewDetector makes a detector for one stream of 16 kHz mono PCM.
func (m *Model) NewDetector() (providers.Detector, error) {
	return &Detector{model: m}, nil
}

// Detector judges one stream. It is for one goroutine.
type Detector struct {
	model   *Model
	context [contextSamples]int16 // the end of the frame before
	state   state
}

// Probability takes the next 512 samples and says how likely they hold speech,
// 0 to 1. Any other length is an error and changes nothing.
func (d *Detector) Probability(frame []int16) (float32, error) {
	if d.model == nil {
		return 0, errClosed
	}
	if len(frame) != frameSamples {
		return 0, fmt.Errorf("silero: a frame of %d samples was given, it takes exactly %d", len(frame), frameSamples)
	}
	var gates [4 * hidden]float32
	if silent(d.context[:]) && silent(frame) {
		// Of digital silence only the recurrent state is still to be computed. It
		// cannot be left out: it goes on changing for more than a minute.
		gates = d.model.net.silent
	} else {
		var window window
		fill(&window, &d.context, frame)
		var magnitudes features
		d.model.fft.magnitudes(&window, &magnitudes)
		d.model.net.hear(&magnitudes, &gates)
	}
	copy(d.context[:], frame[frameSamples-contextSamples:])
	return d.model.net.recur(&gates, &d.state), nil
}

// silent reports whether all samples are zero.
func silent(pcm []int16) bool {
	for _, v := range pcm {
		if v != 0 {
			return false
		}
	}
	return true
}

// Reset forgets what was heard; the next frame begins a new stream.
func (d *Detector) Reset() {
	d.context = [contextSamples]int16{}
	d.state = state{}
}

// Close lets the model go; the detector answers with an error from then on.
func (d *Detector) Close() error {
	d.model = nil
	return nil
}

// fill lays context, frame and a mirrored tail in w, scaled to -1..1.
func fill(w *window, context *[contextSamples]int16, frame []int16) {
	const scale = 1.0 / 32768
	for i, v := range context {
		w[i] = float32(v) * scale
	}
	for i, v := range frame {
		w[contextSamples+i] = float32(v) * scale
	}
	const end = contextSamples + frameSamples
	for i := range w[end:] { // mirrored without repeating the last sample
		w[end+i] = w[end-2-i]
	}
}
