package lab

import (
	"context"
	"time"

	"xiaozhi/providers"
)

// Stage makes what trials need of the running program. Its methods may be called at the same time.
type Stage interface {
	// Cast returns who answers on a device in a setup, with all services that it names at hand. A refusal says which cannot
	// be made, and why.
	Cast(ctx context.Context, device string, s Setup) (Cast, error)
	// Voice returns a voice by its service's name, at a speed if that is not 0.
	Voice(ctx context.Context, service string, speed float64) (voice providers.TTS, free func(), err error)
	// Count returns the number of tokens of a text.
	Count(text string) int
	// Budget is how many tokens the dialogue may have.
	Budget() int
}

// Options configure a [Lab].
type Options struct {
	Stage  Stage
	Turns  Turns
	Read   ReadMessage
	Prices Prices
	// Sound returns the user's sound of a turn at 16 kHz; nil if none is kept.
	Sound func(ctx context.Context, turn string) ([]int16, error)
	// Agents names agents by the ids that turns have.
	Agents   func(ctx context.Context) (map[string]string, error)
	Currency func() string
	Zone     func() *time.Location // nil: UTC
}

// Lab tries things beside the talks. Its methods may be called at the same time.
type Lab struct {
	o     Options
	runs  *Runs
	clips clips
}

// New makes a lab. What it does by itself has the values of ctx, and ends with Close.
func New(ctx context.Context, o Options) *Lab {
	if o.Zone == nil {
		o.Zone = func() *time.Location { return time.UTC }
	}
	return &Lab{o: o, runs: NewRuns(ctx)}
}

// Close ends all runs and waits for them.
func (l *Lab) Close() {
	l.runs.Close()
	l.clips.close()
}

// Follow is [Runs.Follow].
func (l *Lab) Follow(told func(run string)) { l.runs.Follow(told) }

// Find returns a run of a person.
func (l *Lab) Find(person, id string) (*Run, error) { return l.runs.Find(person, id) }

// Sound returns a WAV file that was made for a person some minutes ago.
func (l *Lab) Sound(person, id string) ([]byte, error) { return l.clips.find(person, id) }

// Kept returns a kept turn.
func (l *Lab) Kept(ctx context.Context, id string) (Kept, error) {
	t, messages, calls, err := l.o.Turns.Get(ctx, id)
	if err != nil {
		return Kept{}, err
	}
	before, err := l.o.Turns.Before(ctx, t, maxHistoryTurns)
	if err != nil {
		return Kept{}, err
	}
	k, err := read(t, messages, before, calls, l.o.Read)
	k.Result.Cost = l.costOf(t)
	if err != nil {
		return Kept{}, err
	}
	agents, err := l.o.Agents(ctx)
	if err != nil {
		return Kept{}, err
	}
	k.Agent, k.Result.Agent = agents[t.AgentID], agents[t.AgentID]
	if len(k.Input.Words) == 0 {
		return k, refuse(Invalid, "lab/server-turn")
	}
	return k, nil
}

// ReplayOrder says how a kept turn is tried again.
type ReplayOrder struct {
	Setup
	Sound bool `json:"sound,omitempty"` // its sound is recognised again, also where no other recogniser is named
	Mute  bool `json:"mute,omitempty"`  // no voice is asked
}

// ReplayRow holds a turn as it was and as it would be.
type ReplayRow struct {
	Turn     string `json:"turn"`
	Original Result `json:"original"`
	Replay   Result `json:"replay"`
}

const replayTime = 2 * time.Minute

// Replay begins to answer a kept turn again. Nothing of it is kept with the device.
func (l *Lab) Replay(person string, k Kept, order ReplayOrder) (*Run, error) {
	return l.runs.Start(person, "replay", 1, replayTime, func(ctx context.Context, r *Run) error {
		in := k.Input
		if order.ASR != "" || order.Sound {
			pcm, err := l.o.Sound(ctx, k.ID)
			if err != nil {
				return err
			}
			if len(pcm) == 0 {
				return refuse(Invalid, "lab/sound-not-kept")
			}
			in.Sound = pcm
		}
		cast, err := l.cast(ctx, k.Device, order.Setup, in.Sound != nil, order.Mute)
		if err != nil {
			return err
		}
		defer cast.Close()
		result, pcm := answer(ctx, cast, in, l.o.Prices)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		result.Sound, _ = l.clips.keep(person, pcm, 16000)
		r.add(ReplayRow{k.ID, k.original(result), result}, nil)
		return nil
	})
}

// cast is [Stage.Cast] without what is not wanted. Models that act by themselves are refused: a trial would switch lamps on.
func (l *Lab) cast(ctx context.Context, device string, s Setup, hears, mute bool) (Cast, error) {
	cast, err := l.o.Stage.Cast(ctx, device, s)
	if err != nil {
		return cast, err
	}
	if cast.Close == nil {
		cast.Close = func() {}
	}
	if a, ok := cast.LLM.(interface{ Acts() string }); ok && a.Acts() != "" {
		cast.Close()
		return cast, refuse(Invalid, "lab/acts", a.Acts())
	}
	if !hears {
		cast.ASR = nil
	}
	if mute {
		cast.TTS = nil
	}
	if s.Voice != "" {
		cast.Voice = s.Voice
	}
	return cast, nil
}
