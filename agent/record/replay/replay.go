package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/feature/basics"
	"xiaozhi/agent/feature/job"
	"xiaozhi/agent/feature/music"
	"xiaozhi/agent/history"
	"xiaozhi/agent/record"
	"xiaozhi/agent/speak"
	"xiaozhi/audio"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	voicebook "xiaozhi/voices"
)

// Options say how a recording is played. The zero value is for a recording that
// was made under a fake clock.
type Options struct {
	// Within is how far times may be apart and still be taken for the same:
	// what an engine gave to a question that comes so near its recorded time
	// comes at its recorded time, else after its recorded delay.
	Within time.Duration
	// Settle waits until all goroutines wait (synctest.Wait); nil: nobody does.
	Settle func()
	Log    *slog.Logger // nil: discarded
}

// errGone is why a replayed connection ends.
var errGone = errors.New("the recording is over")

// Run plays a recording and returns what was recorded of that. The clock must
// not be past the recording's beginning, or the wall clock of the talk will not
// be the recorded one.
func Run(ctx context.Context, rec *record.Recording, o Options) (*record.Recording, error) {
	p, err := newPlayer(ctx, rec, o)
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Until(p.rec.Begin().Began))
	p.began = time.Now()
	tape, recorded := record.NewTape(p.session)
	opts, limits := tape.Wrap(p.options, p.limits)
	box := router.New(limits, tape.Sources(p.sources()...)...)
	talk := agent.New(opts, p.session, tape.Outbox(outbox{p}), box)

	runCtx, end := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if p.until(runCtx, p.runs) != nil {
			return
		}
		done := tape.Run(runCtx)
		err := talk.Run(runCtx)
		box.Close()
		done(err)
	}()
	err = p.perform(ctx, tape, talk)
	end(errGone)
	<-over
	box.Close()
	opts.Devices.Close()
	p.alarms.Close()
	return recorded(), err
}

// player plays one recording.
type player struct {
	o       Options
	rec     *record.Recording
	session wire.Session
	options agent.Options
	alarms  *alarm.Book
	limits  router.Options
	began   time.Time
	runs    time.Duration // when the conversation began to run
	ends    time.Duration // when its connection ended

	engines
	calls *calls
	offer map[string]*offers
	order []string // of the sources
	lags  []step[time.Duration]
	whom  map[string][]step[record.Agent] // by the name that was asked for
}

// engines hold what the recorded engines and the outbox did.
type engines struct {
	asr answers[record.ASR]
	llm answers[record.LLM]
	tts answers[record.TTS]

	duplex answers[record.Duplex]
	rest   []step[bool] // whether it had better not be asked

	songs answers[record.Song]
	named answers[record.Song] // as the next
	looks answers[record.Look]
	vad   answers[record.VAD]
	fast  answers[record.Fast]
	audio answers[record.Audio] // each packet that was offered

	voice  answers[record.Voice]
	known  []step[bool]              // whether anybody could be known by the voice
	agents map[string][]step[string] // whom people talked to, by their names
}

// step is something that happened at a time.
type step[T any] struct {
	at time.Duration
	v  T
}

func newPlayer(ctx context.Context, rec *record.Recording, o Options) (*player, error) {
	b := rec.Begin()
	if b == nil {
		return nil, errors.New("replay: the recording has no beginning")
	}
	p := &player{o: o, rec: rec, session: b.Session, runs: -1, ends: -1, calls: &calls{}, offer: map[string]*offers{}, whom: map[string][]step[record.Agent]{}}
	p.agents = map[string][]step[string]{}
	for _, e := range rec.Entries {
		p.sort(e)
	}
	if p.ends < 0 {
		p.ends = rec.Entries[len(rec.Entries)-1].T
	}
	p.runs = max(p.runs, 0)
	return p, p.settings(ctx, b)
}

// settings are the options of the recorded conversation.
func (p *player) settings(ctx context.Context, b *record.Begin) error {
	set, err := prompts.Load("")
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	o := agent.Options{
		VAD: &vad{player: p, frame: b.VADFrame},
		TTS: &tts{player: p, name: b.TTS}, Prompts: set, Devices: agent.NewDevices(), Log: p.o.Log,
	}
	if b.ASR != "" {
		o.ASR = &asr{player: p, name: b.ASR}
	}
	if b.LLM != "" {
		o.LLM = &llm{player: p, name: b.LLM}
	}
	if b.Realtime != "" {
		o.Realtime = duplex{player: p, name: b.Realtime}
	}
	if err := errors.Join(b.Settings.Apply(&o), b.Limits.Apply(&p.limits)); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	p.limits.Log = p.o.Log
	if b.Zone != "" {
		if o.Zone, err = time.LoadLocation(b.Zone); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	if b.Has.FastPath {
		o.FastPath = &fastPath{player: p}
	}
	var songs music.Library
	if b.Has.Music {
		songs = &library{player: p}
	}
	p.alarms = alarm.New(ctx, alarm.Options{})
	o.Features = []feature.Feature{p.alarms, music.Feature{Library: songs}, job.Feature{}, basics.Feature{}}
	if b.Has.Tokens {
		o.Tokens = history.Tokens
	}
	if b.Has.Sounds {
		o.Sounds = speak.NewCache(set)
	}
	if b.Has.Levels {
		o.Levels = audio.NewLevels()
	}
	if b.Has.Agents {
		o.Persona = p.persona
	}
	if b.Has.Voices {
		o.Voices = &voices{player: p, certain: map[voicebook.Speaker]bool{}}
	}
	o.AgentOf = p.agentOf
	if b.Has.Look {
		p.limits.Describe = p.look
	}
	for _, e := range p.rec.Entries {
		if e.Memory != nil {
			o.Devices.Remember(p.session.DeviceID, *e.Memory)
		}
	}
	p.options = o
	return nil
}

// persona returns the agent that a name stood for at this time. A prompt that is not there any more is the default one:
// its words are not compared.
func (p *player) persona(name string) (who agent.Persona, ok bool) {
	all := p.whom[name]
	if len(all) == 0 {
		return who, false
	}
	a, ok := latest(all, p.now()+p.o.Within)
	if !ok {
		a = all[0].v
	}
	if err := a.Settings.Apply(&who); err != nil {
		return who, false
	}
	if who.Prompt != "" && !p.options.Prompts.Has(who.Prompt) {
		who.Prompt = prompts.Default
	}
	if a.ASR != "" {
		who.ASR = &asr{player: p, name: a.ASR}
	}
	if a.LLM != "" {
		who.LLM = &llm{player: p, name: a.LLM}
	}
	if a.Realtime != "" {
		who.Realtime = duplex{player: p, name: a.Realtime}
	}
	if a.TTS != "" {
		who.TTS = &tts{player: p, name: a.TTS}
	}
	return who, !a.Unknown
}

// sort puts an entry where it is looked for.
func (p *player) sort(e record.Entry) {
	switch {
	case e.Memory != nil:
		p.runs = e.T
	case e.Gone != nil && p.ends < 0:
		p.ends = e.T
	case e.Agent != nil:
		p.whom[e.Agent.Asked] = append(p.whom[e.Agent.Asked], step[record.Agent]{e.T, *e.Agent})
	case e.VAD != nil:
		p.vad.add(e.VAD.N, e.T, *e.VAD)
	case e.ASR != nil:
		p.asr.add(e.ASR.N, e.T, *e.ASR)
	case e.LLM != nil:
		p.llm.add(e.LLM.N, e.T, *e.LLM)
	case e.TTS != nil:
		p.tts.add(e.TTS.N, e.T, *e.TTS)
	case e.Duplex != nil && e.Duplex.N == 0:
		p.rest = append(p.rest, step[bool]{e.T, e.Duplex.Rests})
	case e.Duplex != nil:
		p.duplex.add(e.Duplex.N, e.T, *e.Duplex)
	case e.Voice != nil:
		p.sortVoice(e.T, *e.Voice)
	case e.Fast != nil:
		p.fast.add(e.Fast.N, e.T, *e.Fast)
	case e.Tools != nil:
		s := p.source(e.Tools.Source)
		s.lists = append(s.lists, step[record.Tools]{e.T, *e.Tools})
	case e.Shown != nil:
		s := p.source(e.Shown.Source)
		s.shown = append(s.shown, step[record.Shown]{e.T, *e.Shown})
	case e.Call != nil:
		p.calls.add(e.T, *e.Call)
	case e.Look != nil:
		p.looks.add(e.Look.N, e.T, *e.Look)
	case e.Song != nil && e.Song.Step == record.Done:
		p.named.add(e.Song.N, e.T, *e.Song)
	case e.Song != nil:
		p.songs.add(e.Song.N, e.T, *e.Song)
	case e.Lag != nil:
		p.lags = append(p.lags, step[time.Duration]{e.T, *e.Lag})
	case e.Audio != nil:
		p.audio.add(len(p.audio.said)+1, e.T, *e.Audio)
	}
}

// perform does what the device did, and returns when its connection has ended.
func (p *player) perform(ctx context.Context, tape *record.Tape, talk *agent.Conversation) error {
	for _, e := range p.rec.Entries {
		ev := eventOf(e)
		if ev == nil && e.Frame == nil {
			continue
		}
		if err := p.until(ctx, e.T); err != nil {
			return err
		}
		p.settle()
		if f := e.Frame; f != nil {
			packet := wire.Packet{Data: f.Packet, At: f.At, Stamp: f.Stamp}
			tape.Hear(packet)
			talk.Hear(packet)
		} else {
			tape.Event(ev)
			if err := talk.Post(ev); err != nil {
				return fmt.Errorf("replay: at %v: %w", e.T, err)
			}
		}
		p.settle()
	}
	if err := p.until(ctx, p.ends); err != nil {
		return err
	}
	p.settle()
	return nil
}

func (p *player) settle() {
	if p.o.Settle != nil {
		p.o.Settle()
	}
}

// eventOf is the event of an entry; nil if the entry holds none.
func eventOf(e record.Entry) wire.Event {
	switch {
	case e.ListenStart != nil:
		return *e.ListenStart
	case e.ListenStop != nil:
		return *e.ListenStop
	case e.Detect != nil:
		return *e.Detect
	case e.Abort != nil:
		return *e.Abort
	case e.Drain != nil:
		return wire.Drain{Cause: errors.New(e.Drain.Cause)}
	}
	return nil
}

// now is the time since the recording's beginning.
func (p *player) now() time.Duration { return time.Since(p.began) }

// until waits for a time since the beginning.
func (p *player) until(ctx context.Context, at time.Duration) error {
	d := at - p.now()
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// after returns when something is due that came at a time, to a question that was
// asked at another, if the same question was asked now.
func (p *player) after(now, asked, came time.Duration) time.Duration {
	if d := now - asked; d >= -p.o.Within && d <= p.o.Within {
		return came
	}
	return now + came - asked
}
