package audio

import "time"

const (
	voiceBlock   = 128  // samples that are judged together: 8 ms at 16 kHz
	voiceFaint   = 300  // factor of power by which voice varies at most (25 dB)
	voiceClear   = 20   // nor is anything louder than a 20th of it taken for noise
	voiceNoise   = 3    // times the room's noise: below it, sound is not voice
	voiceMemory  = 0.1  // of the voice's loudness, per block
	roomMemory   = 0.05 // of the room's noise, per block
	mostVoiceEnd = 64 * time.Millisecond
)

// VoiceEnd finds where voice ended within the last windows of a detector, which
// judges a whole window at once and goes on for one more when the voice has
// ended. It goes by how loud the sound is beside the voice before and the room.
// It is for one goroutine; its zero value has heard nothing.
type VoiceEnd struct {
	voice, room float64 // mean squares
	tail        time.Duration
}

// Window takes the next window of 16 kHz sound and whether the detector found
// voice in it. It returns how much of the sound up to its end, of which the
// detector says that it is voice, comes after the voice: 64 ms at most, and 0
// where there is none.
func (v *VoiceEnd) Window(pcm []int16, voiced bool) time.Duration {
	length := Recognition.Duration(len(pcm))
	if !voiced {
		v.tail = 0
		for from := 0; from+voiceBlock <= len(pcm); from += voiceBlock {
			v.room += roomMemory * (meanSquare(pcm[from:from+voiceBlock]) - v.room)
		}
		return 0
	}
	last := -1
	for from := 0; from+voiceBlock <= len(pcm); from += voiceBlock {
		power := meanSquare(pcm[from : from+voiceBlock])
		if power < v.faintest() {
			continue
		}
		last = from + voiceBlock
		if v.voice == 0 {
			v.voice = power
		}
		v.voice += voiceMemory * (power - v.voice)
	}
	if last < 0 {
		v.tail = min(v.tail+length, mostVoiceEnd)
	} else {
		v.tail = length - Recognition.Duration(last)
	}
	return v.tail
}

// faintest returns the power below which a block is no voice.
func (v *VoiceEnd) faintest() float64 {
	return min(max(v.voice/voiceFaint, v.room*voiceNoise), v.voice/voiceClear)
}

// Reset forgets what was heard.
func (v *VoiceEnd) Reset() { *v = VoiceEnd{} }

func meanSquare(pcm []int16) float64 {
	sum := int64(0)
	for _, s := range pcm {
		sum += int64(s) * int64(s)
	}
	return float64(sum) / float64(len(pcm))
}
