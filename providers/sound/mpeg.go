package sound

import "bufio"

// Bit rates of MPEG audio, layer III, in kbit/s by their index: of version 1, and of the others.
var (
	mpegRates1 = [16]int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}
	mpegRates2 = [16]int{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}
)

// isMP3 reports whether a stream begins with two frames of MPEG audio, layer III: servers that
// do not make what they are asked for may send it as mere bytes.
func isMP3(in *bufio.Reader) bool {
	// What is too short for a frame shows as that.
	head, _ := in.Peek(4)
	n := mpegFrame(head)
	if n == 0 {
		return false
	}
	both, _ := in.Peek(n + 4)
	return len(both) == n+4 && mpegFrame(both[n:]) > 0 && both[n+1] == head[1]
}

// mpegFrame returns the length of the frame that a header begins, in bytes; 0 if it is none.
func mpegFrame(h []byte) int {
	if len(h) < 4 || h[0] != 0xFF || h[1]&0xE6 != 0xE2 {
		return 0
	}
	version, rate := h[1]>>3&3, h[2]>>2&3
	if version == 1 || rate == 3 {
		return 0
	}
	hertz := [3]int{44100, 48000, 32000}[rate]
	bits, samples := mpegRates1[h[2]>>4], 1152
	if version != 3 {
		bits, samples, hertz = mpegRates2[h[2]>>4], 576, hertz/2
	}
	if version == 0 {
		hertz /= 2
	}
	if bits == 0 {
		return 0
	}
	return samples/8*bits*1000/hertz + int(h[2]>>1&1)
}
