package timeline

import (
	"log/slog"
	"time"
)

// End says by what an utterance was over, which is where the wait begins.
type End string

// The ends. A turn that the server began has none.
const (
	EndServer End = ""
	EndVoice  End = "voice" // the last voiced sample
	EndStop   End = "stop"  // the button
	EndTyped  End = "typed"
)

// Way says what a turn makes of a call of a tool.
type Way string

// The ways.
const (
	Awaited Way = "awaited"
	Assumed Way = "assumed" // it was sent, and taken to succeed
	Job     Way = "job"     // it goes on after the turn
	Asks    Way = "asks"    // the user is asked to allow it
	Refused Way = "refused"
)

// Called is a call of a tool by a turn.
type Called struct {
	ID, Name string
	At       time.Time // the model wanted it
	Way      Way
	Took     time.Duration // until its result; 0: there was none
	Failed   bool
}

// maxCalled is how many calls of a turn are kept.
const maxCalled = 32

// Call notes that the model has called a tool.
func (t *Turn) Call(c Called) {
	c.At = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.tools) < maxCalled {
		t.tools = append(t.tools, c)
	}
}

// Result notes that an awaited call has its result.
func (t *Turn) Result(id string, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.tools {
		if c := &t.tools[i]; c.ID == id && c.Way == Awaited {
			c.Took, c.Failed = max(time.Since(c.At), 1), failed
		}
	}
}

// toolAttrs are the awaited calls of a turn's log line.
func toolAttrs(all []Called) (out []slog.Attr) {
	for i := range all {
		if all[i].Took > 0 {
			out = append(out, slog.Duration(all[i].Name, all[i].Took))
		}
	}
	return out
}

// Sent holds what of a turn went to the device when; zero: it did not.
type Sent struct {
	Start time.Time // tts start
	First time.Time // the first frame
	Stop  time.Time // tts stop
	Cut   bool      // that came before all was played
	Gaps  []Gap     // in its sound, the first ones
}

// Gap is a silence within what was sent: the device had nothing to play.
type Gap struct {
	Until  time.Time     // the next frame was sent
	Played time.Duration // the sound that came before
	Paused bool          // it was wanted: the user may have begun to speak
}

// Marks are the moments of a turn that are kept; zero: it did not come to that.
type Marks struct {
	Zero       time.Time // from when on the user waits
	End        End
	Delay      time.Duration
	Endpoint   time.Time
	Transcript time.Time
	Model      time.Time // was asked first
	Token      time.Time
	Voice      time.Time // was asked first
	Sound      time.Time
	Sent       Sent
}

// marks returns the moments. The caller holds mu.
func (t *Turn) marks(sent Sent) Marks {
	return Marks{
		Zero: t.of.EndOfSpeech, End: t.of.End, Delay: t.of.Delay, Endpoint: t.of.Endpoint, Transcript: t.of.Transcript,
		Model: t.llmAsked, Token: t.firstToken, Voice: t.ttsAsked, Sound: t.firstSound, Sent: sent,
	}
}
