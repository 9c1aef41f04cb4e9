package servicetest

import "encoding/binary"

// ReadWAV returns the sound of a WAV file of 16 bit mono and its rate, or false for
// anything else. A data chunk that announces more than there is holds what there is.
func ReadWAV(b []byte) (pcm []byte, rate int, ok bool) {
	if len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE" {
		return nil, 0, false
	}
	for b = b[12:]; len(b) >= 8; {
		name, size, rest := string(b[:4]), int(binary.LittleEndian.Uint32(b[4:])), b[8:]
		size = min(size, len(rest))
		if name == "fmt " && size >= 16 {
			ok = binary.LittleEndian.Uint16(rest) == 1 && binary.LittleEndian.Uint16(rest[2:]) == 1 && binary.LittleEndian.Uint16(rest[14:]) == 16
			rate = int(binary.LittleEndian.Uint32(rest[4:]))
		}
		if name == "data" {
			return rest[:size], rate, ok
		}
		b = rest[min(size+size%2, len(rest)):]
	}
	return nil, 0, false
}
