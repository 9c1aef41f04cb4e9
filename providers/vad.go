package providers

// VAD makes voice detectors. The model behind it is shared and read-only; each
// detector holds only its own state.
type VAD interface {
	// NewDetector makes a detector for one stream of 16 kHz mono PCM.
	NewDetector() (Detector, error)
	// FrameSamples is the exact number of samples a detector takes at a time.
	FrameSamples() int
}

// Detector judges one stream, frame by frame. It is for one goroutine. It takes
// no context: it is arithmetic.
type Detector interface {
	// Probability takes one frame of exactly VAD.FrameSamples samples and says
	// how likely it holds speech, 0 to 1. Any other length is an error.
	Probability(frame []int16) (float32, error)
	// Reset forgets what was heard; the next frame begins a new stream.
	Reset()
	// Close lets the state go.
	Close() error
}
