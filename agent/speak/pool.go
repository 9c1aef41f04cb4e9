package speak

// pool holds the buffers of a reply that can be used again. One that is lost is
// not missed.
type pool struct {
	frames buffers
	chunks buffers
}

func newPool() pool { return pool{make(buffers, aheadFrames+2), make(buffers, 2*streamChunks)} }

// buffers are free buffers of one kind.
type buffers chan []int16

// copyOf is a copy of pcm, in a buffer that was used before if there is one.
func (b buffers) copyOf(pcm []int16) []int16 {
	var buf []int16
	select {
	case buf = <-b:
	default:
	}
	return append(buf[:0], pcm...)
}

// put takes a buffer back.
func (b buffers) put(buf []int16) {
	select {
	case b <- buf:
	default:
	}
}
