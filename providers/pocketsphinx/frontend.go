package pocketsphinx

import (
	"errors"
	"unsafe"
)

// cepstraSize is the number of coefficients of a frame in the en-us model.
const cepstraSize = 13

// cepstrum is one frame of 10 ms as the acoustic model takes it.
type cepstrum [cepstraSize]float32

// frontEnd turns PCM of 16 kHz into cepstra with the library's own front end,
// so that the same frames can be searched more than once and their mean is ours to
// remove. It is for one goroutine at a time.
type frontEnd struct {
	calls *frontEndCalls
	free  func(cfg handle) int32
	cfg   handle
	fe    handle
	buf   []cepstrum
}

func newFrontEnd(lib *library, args []string) (*frontEnd, error) {
	cfg, err := lib.config(args)
	if err != nil {
		return nil, err
	}
	f := &frontEnd{calls: &lib.front, free: lib.settings.free, cfg: cfg, fe: lib.front.open(cfg)}
	if f.fe == 0 {
		err = errors.New("pocketsphinx made no front end")
	} else if f.calls.size(f.fe) != cepstraSize {
		err = errors.New("the acoustic model does not use 13 cepstra (install the Debian package pocketsphinx-en-us)")
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// begin forgets what was heard; the next PCM starts an utterance.
func (f *frontEnd) begin() {
	f.calls.reset(f.fe)
	f.calls.begin(f.fe)
}

// add appends the frames that pcm completes.
func (f *frontEnd) add(dst []cepstrum, pcm []int16) []cepstrum {
	for len(pcm) > 0 {
		// One frame per 160 samples, and a few that the front end held back.
		want := len(pcm)/160 + 32
		for len(f.buf) < want {
			f.buf = append(f.buf, cepstrum{})
		}
		rows := rowsOf(f.buf[:want])
		in := unsafe.SliceData(pcm)
		left := uintptr(len(pcm))
		n, first := int32(want), int32(0)
		if f.calls.process(f.fe, &in, &left, unsafe.SliceData(rows), &n, &first) < 0 {
			return dst
		}
		dst = append(dst, f.buf[:n]...)
		if int(left) >= len(pcm) && n == 0 {
			return dst
		}
		pcm = pcm[len(pcm)-int(left):]
	}
	return dst
}

// end appends the last, padded frame, if there is one.
func (f *frontEnd) end(dst []cepstrum) []cepstrum {
	var last cepstrum
	var n int32
	f.calls.end(f.fe, &last[0], &n)
	if n > 0 {
		dst = append(dst, last)
	}
	return dst
}

func (f *frontEnd) close() {
	if f.fe != 0 {
		f.calls.free(f.fe)
	}
	f.free(f.cfg)
}

// rowsOf makes the C view of frames: an array of pointers to rows.
func rowsOf(frames []cepstrum) []*float32 {
	rows := make([]*float32, len(frames))
	for i := range frames {
		rows[i] = &frames[i][0]
	}
	return rows
}

// typicalMean is the cepstral mean that an utterance is taken to have before any of
// it was heard: rounded means of wideband speech of several speakers. The
// prior that comes with the model is of telephone-like sound and costs a
// far-off microphone most of its words.
var typicalMean = cepstrum{58, 7, 5, 11, -4, 2, -4, 1, 1, 0, 0, -1, 2}

const (
	// meanWeight is the weight of the typical mean, in frames of 10 ms.
	meanWeight = 50
	// meanHold is the number of frames, from the first voice on, that are heard before the first is
	// recognised, so that the mean is the speaker's and the microphone's own. It costs
	// little delay at the end: recognising is four times as fast as speaking.
	meanHold = 100
	// quietBefore is the number of quiet frames that are searched before the voice.
	quietBefore = 25
)

// cepstralMean is the running mean of one utterance. Each utterance begins with
// a new one: what one device said never colours what another is heard to say, and
// the same sound always gives the same text.
type cepstralMean struct {
	sum   cepstrum
	count float32
}

// newCepstralMean begins with the typical mean.
func newCepstralMean() cepstralMean {
	m := cepstralMean{sum: typicalMean, count: meanWeight}
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
