// Package libopus is the encoder of libopus with what the usual binding does not reach: the setting that makes a packet
// need none of those before it. Decoders are made with that binding.
package libopus

/*
#cgo pkg-config: opus
#include <opus.h>

// Go cannot call functions with a variable number of arguments.
static int set(OpusEncoder *e, int request, opus_int32 value) { return opus_encoder_ctl(e, request, value); }
static int reset(OpusEncoder *e) { return opus_encoder_ctl(e, OPUS_RESET_STATE); }

enum {
	bitrate = OPUS_SET_BITRATE_REQUEST,
	complexity = OPUS_SET_COMPLEXITY_REQUEST,
	independent = OPUS_SET_PREDICTION_DISABLED_REQUEST,
};
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Encoder is a libopus encoder of mono sound in the application "audio". It is for one goroutine, and there is nothing to
// free: libopus keeps its state in memory of Go, without pointers into it.
type Encoder struct {
	state []uint64 // of words, for their alignment
}

// New makes an encoder for sound of that rate in Hz, bits a second on average, and complexity from 0 to 10.
func New(rate, bitrate, complexity int) (*Encoder, error) {
	e := &Encoder{state: make([]uint64, (C.opus_encoder_get_size(1)+7)/8)}
	if err := failure(C.opus_encoder_init(e.c(), C.opus_int32(rate), 1, C.OPUS_APPLICATION_AUDIO)); err != nil {
		return nil, err
	}
	return e, errors.Join(e.set(C.bitrate, bitrate), e.set(C.complexity, complexity))
}

// Encode encodes one frame into packet and returns the length of what it wrote. Neither may be empty.
func (e *Encoder) Encode(pcm []int16, packet []byte) (int, error) {
	if len(pcm) == 0 || len(packet) == 0 {
		return 0, errors.New("an empty buffer")
	}
	n := C.opus_encode(e.c(), (*C.opus_int16)(unsafe.Pointer(unsafe.SliceData(pcm))), C.int(len(pcm)),
		(*C.uchar)(unsafe.Pointer(unsafe.SliceData(packet))), C.opus_int32(len(packet)))
	if n < 0 {
		return 0, failure(C.int(n))
	}
	return int(n), nil
}

// Independent says whether the packets to come are made to need none before them, for which they sound a little worse.
func (e *Encoder) Independent(on bool) error {
	value := 0
	if on {
		value = 1
	}
	return e.set(C.independent, value)
}

// Reset forgets all sound, and no settings.
func (e *Encoder) Reset() error { return failure(C.reset(e.c())) }

func (e *Encoder) set(request C.int, value int) error {
	return failure(C.set(e.c(), request, C.opus_int32(value)))
}

// c is the state, as libopus sees it.
func (e *Encoder) c() *C.OpusEncoder {
	return (*C.OpusEncoder)(unsafe.Pointer(unsafe.SliceData(e.state)))
}

// failure returns what libopus says of a result; nil: it went well.
func failure(code C.int) error {
	if code == C.OPUS_OK {
		return nil
	}
	return errors.New(C.GoString(C.opus_strerror(code)))
}
