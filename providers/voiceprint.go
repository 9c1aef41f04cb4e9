package providers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Voiceprint tells people apart by their voices.
type Voiceprint interface {
	// Name is the provider's name in the config and in logs.
	Name() string
	// Scale says what its scores mean. It does not wait.
	Scale() Scale
	// Enrol makes a print of the one voice in pcm, mono at [VoiceRate], from [MinVoice] to [MaxVoice] long. id is of no
	// other print: letters, digits and hyphens, 64 at most. It keeps nothing of pcm.
	Enrol(ctx context.Context, id string, pcm []int16) (Print, error)
	// Identify says whose voice is in pcm, of those whose prints are given. Prints of another model it passes over;
	// without any it asks nobody.
	Identify(ctx context.Context, pcm []int16, among []Print) (VoiceMatch, error)
	// Delete has a print forgotten that it keeps itself. One that is not there is no error.
	Delete(ctx context.Context, id string) error
}

// Scale says what the scores of a [Voiceprint] mean.
type Scale struct {
	Model     string  // what makes its prints: those of another cannot be compared with them
	Threshold float64 // from this score on two voices are taken for one
}

// Print is a voice that was enrolled.
type Print struct {
	ID     string // of this print
	Person string // whose voice it is: who enrols it says so; several may be of one person
	Model  string // what made it
	Data   []byte // nil: the provider keeps it under ID
}

// VoiceMatch is the person whose voice is most like one that was heard.
type VoiceMatch struct {
	Person string  // "": no voice is like it, or there are none
	Score  float64 // how much they are alike: a cosine, 0 to 1; 0 without a person
	Next   float64 // the same of the person who is second; 0: nobody is, or it is not known
}

// The limits of sound with a voice. Its rate is that of recognition.
const (
	VoiceRate = 16000 // Hz
	MinVoice  = 500 * time.Millisecond
	MaxVoice  = 30 * time.Second
)

// ErrVoiceLength is the cause of an error of kind [BadRequest] for sound that is too short or too long.
var ErrVoiceLength = errors.New("a voice needs 0.5 to 30 s of sound")

// CheckVoice says that sound has a length of which no print can be made.
func CheckVoice(pcm []int16) error {
	if d := time.Duration(len(pcm)) * time.Second / VoiceRate; d < MinVoice || d > MaxVoice {
		return fmt.Errorf("%w, not %.1f s", ErrVoiceLength, d.Seconds())
	}
	return nil
}
