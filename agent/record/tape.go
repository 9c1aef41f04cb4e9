package record

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature/music"
	"xiaozhi/agent/speak"
	"xiaozhi/audio"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
)

// Tape is one conversation being recorded. Its methods wrap what the
// conversation is made of, each once: first Wrap, then the others. A nil Tape
// records nothing: its methods give back what they get, and cost nothing. The
// wrapped parts may be used at the same time, as the parts themselves.
type Tape struct {
	began   time.Time
	session wire.Session
	codec   string
	lag     atomic.Int64 // that was recorded last
	open    func() error // before the first entry is written
	close   func()       // after the last was put

	mu     sync.Mutex
	put    func(Entry) // never waits; nil: no more
	counts map[string]int
}

// NewTape makes a tape in memory. The function gives what was recorded so far.
func NewTape(s wire.Session) (*Tape, func() *Recording) {
	var mu sync.Mutex
	r := &Recording{}
	t := newTape(s, Codec(), func(e Entry) {
		mu.Lock()
		defer mu.Unlock()
		r.Entries = append(r.Entries, e)
	})
	return t, func() *Recording {
		mu.Lock()
		defer mu.Unlock()
		return &Recording{Entries: slices.Clone(r.Entries)}
	}
}

func newTape(s wire.Session, codec string, put func(Entry)) *Tape {
	return &Tape{
		began: time.Now(), session: s, codec: codec, put: put, counts: map[string]int{},
		open: func() error { return nil }, close: func() {},
	}
}

// add records an entry, as of now.
func (t *Tape) add(e Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(e)
}

// addLast records an entry, as of now, and lets nothing more be recorded.
func (t *Tape) addLast(e Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(e)
	t.put = nil
}

// write hands an entry on. The caller holds mu.
func (t *Tape) write(e Entry) {
	if t.put != nil {
		e.T = time.Since(t.began)
		t.put(e)
	}
}

// count numbers what happens many times, from 1.
func (t *Tape) count(what string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
	return t.counts[what]
}

// Wrap begins the recording, and wraps the engines of a conversation and what
// its router looks at pictures with. Sound caches and voice levels are made
// anew, for what other conversations have left in them nobody could replay. The conversation keeps the options that it
// begins with: others would have to be recorded too.
func (t *Tape) Wrap(o agent.Options, l router.Options) (agent.Options, router.Options) {
	if t == nil {
		return o, l
	}
	o.Latest, o.Limits = nil, nil
	b := &Begin{
		Version: Version, Began: t.began, Session: t.session, Settings: settingsOf(o), Limits: settingsOf(l),
		Has: Has{
			FastPath: o.FastPath != nil, Tokens: o.Tokens != nil,
			Sounds: o.Sounds != nil, Levels: o.Levels != nil, Look: l.Describe != nil, Agents: o.Persona != nil,
			Voices: o.Voices != nil,
		},
		VADFrame: o.VAD.FrameSamples(), TTS: o.TTS.Name(), Codec: t.codec,
	}
	o.VAD, o.TTS = tapedVAD{o.VAD, t}, tapedTTS{o.TTS, t}
	if o.ASR != nil {
		b.ASR, o.ASR = o.ASR.Name(), tapedASR{o.ASR, t}
	}
	if o.LLM != nil {
		b.LLM, o.LLM = o.LLM.Name(), tapedLLM{o.LLM, t}
	}
	if o.Realtime != nil {
		b.Realtime, o.Realtime = o.Realtime.Name(), newTapedDuplex(o.Realtime, t)
	}
	if o.Zone != nil {
		b.Zone = o.Zone.String()
	}
	o.Features = slices.Clone(o.Features)
	for i, f := range o.Features {
		if m, ok := f.(music.Feature); ok && m.Library != nil {
			b.Has.Music, o.Features[i] = true, music.Feature{Library: tapedMusic{m.Library, t}}
		}
	}
	t.add(Entry{Begin: b})
	if o.Persona != nil {
		o.Persona = t.agents(o.Persona)
	}
	if o.Voices != nil {
		o.Voices = &tapedVoices{Book: o.Voices, tape: t}
	}
	if o.AgentOf != nil {
		o.AgentOf = t.agentOf(o.AgentOf)
	}
	if o.FastPath != nil {
		o.FastPath = tapedFastPath{o.FastPath, t}
	}
	if o.Sounds != nil {
		o.Sounds = speak.NewCache(o.Prompts)
	}
	if o.Levels != nil {
		o.Levels = audio.NewLevels()
	}
	if l.Describe != nil {
		l.Describe = t.look(l.Describe)
	}
	before := o.Recall
	o.Recall = func(m agent.Memory) {
		t.add(Entry{Memory: &m})
		if before != nil {
			before(m)
		}
	}
	return o, l
}

// agents wraps the engines of agents, and records whom names stand for, where that changes.
func (t *Tape) agents(persona func(string) (agent.Persona, bool)) func(string) (agent.Persona, bool) {
	var mu sync.Mutex
	told := map[string]Agent{}
	talkers := map[string]tapedDuplex{} // by name, one each: a session is kept while it is the same
	return func(name string) (agent.Persona, bool) {
		p, ok := persona(name)
		now := Agent{Asked: name, Unknown: !ok, Settings: settingsOf(p)}
		if p.ASR != nil {
			now.ASR, p.ASR = p.ASR.Name(), tapedASR{p.ASR, t}
		}
		if p.LLM != nil {
			now.LLM, p.LLM = p.LLM.Name(), tapedLLM{p.LLM, t}
		}
		if p.TTS != nil {
			now.TTS, p.TTS = p.TTS.Name(), tapedTTS{p.TTS, t}
		}
		mu.Lock()
		defer mu.Unlock()
		if p.Realtime != nil {
			taped, equal := newTapedDuplex(p.Realtime, t), reflect.ValueOf(p.Realtime).Comparable()
			if before, known := talkers[p.Realtime.Name()]; known && equal && before.Duplex == p.Realtime {
				taped = before
			}
			talkers[p.Realtime.Name()] = taped
			now.Realtime, p.Realtime = p.Realtime.Name(), taped
		}
		if before, known := told[name]; !known || !reflect.DeepEqual(before, now) {
			told[name] = now
			t.add(Entry{Agent: &now})
		}
		return p, ok
	}
}

// Event records what the device did; it comes before the conversation's Post.
func (t *Tape) Event(ev wire.Event) {
	if t == nil {
		return
	}
	switch ev := ev.(type) {
	case wire.ListenStart:
		t.add(Entry{ListenStart: &ev})
	case wire.ListenStop:
		t.add(Entry{ListenStop: &ev})
	case wire.Detect:
		t.add(Entry{Detect: &ev})
	case wire.Abort:
		t.add(Entry{Abort: &ev})
	case wire.Drain:
		t.add(Entry{Drain: &Reason{Cause: ev.Cause.Error()}})
	}
}

// Hear records a copy of a microphone packet; it comes before the
// conversation's Hear.
func (t *Tape) Hear(p wire.Packet) {
	if t != nil {
		t.add(Entry{Frame: &Frame{Packet: slices.Clone(p.Data), At: p.At, Stamp: p.Stamp}})
	}
}

// Run is called where the conversation's Run is, and the function that it
// returns after that has returned: then the recording is whole. Without Run
// nothing is written.
func (t *Tape) Run(ctx context.Context) (end func(error)) {
	if t == nil {
		return func(error) {}
	}
	if t.open() != nil { // it was logged
		t.stop()
		return func(error) { t.close() }
	}
	gone := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(gone)
		t.add(Entry{Gone: reason(context.Cause(ctx))})
	})
	return func(err error) {
		if !stop() {
			<-gone // it comes before the end
		}
		t.addLast(Entry{End: reason(err)})
		t.close()
	}
}

// stop lets nothing more be recorded.
func (t *Tape) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put = nil
}

func reason(err error) *Reason {
	if err == nil {
		return &Reason{}
	}
	return &Reason{Cause: err.Error()}
}

// Outbox wraps where the conversation's words and sound go.
func (t *Tape) Outbox(out wire.Outbox) wire.Outbox {
	if t == nil {
		return out
	}
	return tapedOutbox{out, t}
}

type tapedOutbox struct {
	out  wire.Outbox
	tape *Tape
}

// Send records the message and passes it on.
func (o tapedOutbox) Send(m wire.Message) {
	o.tape.add(Entry{Sent: &Sent{
		Kind: kindNames()[m.Kind], Turn: m.Turn, Text: m.Text, Emotion: m.Emotion, Closing: slices.Clone(m.Closing), Cut: m.Cut,
	}})
	o.out.Send(m)
}

// Audio passes the packet on and records whether it was taken.
func (o tapedOutbox) Audio(turn uint64, packet []byte) (stamp uint32, ok bool) {
	a := &Audio{Turn: turn, Packet: slices.Clone(packet)}
	stamp, ok = o.out.Audio(turn, packet)
	a.Refused = !ok
	if stamp != 0 {
		a.Stamp = &stamp
	}
	o.tape.add(Entry{Audio: a})
	return stamp, ok
}

// HangUp records the cause and passes it on.
func (o tapedOutbox) HangUp(cause error) {
	o.tape.add(Entry{HangUp: reason(cause)})
	o.out.HangUp(cause)
}

// Lag passes the lag on, and records it where it changes.
func (o tapedOutbox) Lag() time.Duration {
	d := o.out.Lag()
	if o.tape.lag.Swap(int64(d)) != int64(d) {
		o.tape.add(Entry{Lag: &d})
	}
	return d
}

// Codec is a mark of the Opus library that is at work: what it makes of a little
// known sound. Only where the marks of a recording and of its replay are the same
// can packets be the same, byte for byte.
func Codec() string {
	enc, err := audio.NewEncoder(audio.Reply)
	if err != nil {
		return ""
	}
	dec, err := audio.NewDecoder(audio.Recognition.Rate)
	if err != nil {
		return ""
	}
	sum := fnv.New64a()
	pcm, packet := make([]int16, audio.Reply.Samples()), make([]byte, audio.MaxPacket)
	heard := make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
	phase, noise := 0.0, uint32(1)
	for frame := range 5 {
		for i := range pcm {
			phase += (200 + 500*float64(frame) + float64(i)) / float64(audio.Reply.Rate)
			noise = noise*1664525 + 1013904223
			pcm[i] = int16(8000*math.Sin(2*math.Pi*phase)) + int16(noise>>22)
		}
		n, err := enc.Encode(pcm, packet)
		if err != nil {
			return ""
		}
		sum.Write(packet[:n])
		if n, err = dec.Decode(packet[:n], heard); err != nil {
			return ""
		}
		for _, s := range heard[:n] {
			sum.Write([]byte{byte(s), byte(s >> 8)})
		}
	}
	return fmt.Sprintf("%016x", sum.Sum64())
}
