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
	fe    handle
	buf   []cepstrum
}

func newFrontEnd(calls *frontEndCalls, cfg handle) (*frontEnd, error) {
	fe := calls.open(cfg)
	if fe == 0 {
		return nil, errors.New("pocketsphinx made no front end")
	}
	if calls.size(fe) != cepstraSize {
		calls.free(fe)
		return nil, errors.New("the acoustic model does not use 13 cepstra (install the Debian package pocketsphinx-en-us)")
	}
	return &frontEnd{calls: calls, fe: fe}, nil
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

func (f *frontEnd) close() { f.calls.free(f.fe) }

// rowsOf makes the C view of frames: an array of pointers to rows.
func rowsOf(frames []cepstrum) []*float32 {
	rows := make([]*float32, len(frames))
	for i := range frames {
		rows[i] = &frames[i][0]
	}
	return rows
}
