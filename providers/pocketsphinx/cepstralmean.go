package pocketsphinx

// typicalMean is the cepstral mean that an utterance is taken to have before any of
// it was heard: rounded means of wideband speech of several speakers. The
// prior that comes with the model is of telephone-like sound and costs a
// far-off microphone most of its words.
var typicalMean = cepstrum{58, 7, 5, 11, -4, 2, -4, 1, 1, 0, 0, -1, 2}

const (
	// meanWeight is the weight of the typical mean, in frames of 10 ms.
	meanWeight = 50
	// meanHold is the number of frames that are heard before the first is recognised, so
	// that the mean is the speaker's and the microphone's own. It costs no delay
	// at the end: recognising is four times as fast as speaking.
	meanHold = 150
)

// cepstralMean is the running mean of one utterance. Each utterance begins with
// a new one: what one device said never colours what another is heard to say, and
// the same sound always gives the same text.
type cepstralMean struct {
	sum   cepstrum
	count float32
}

// newCepstralMean begins with the typical mean.
func newCepstralMean() *cepstralMean {
	m := &cepstralMean{sum: typicalMean, count: meanWeight}
	for i := range m.sum {
		m.sum[i] *= meanWeight
	}
	return m
}

// hear adds frames to the mean, but for those of digital silence.
func (m *cepstralMean) hear(frames ...cepstrum) {
	for _, f := range frames {
		if f[0] < 0 {
			continue
		}
		for i, v := range f {
			m.sum[i] += v
		}
		m.count++
	}
}

// remove appends frame without the mean to dst.
func (m *cepstralMean) remove(dst []cepstrum, frame cepstrum) []cepstrum {
	for i := range frame {
		frame[i] -= m.sum[i] / m.count
	}
	return append(dst, frame)
}
