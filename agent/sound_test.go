package agent

import (
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// soundKeeper notes the sound of turns.
type soundKeeper struct {
	keeperInMemory
	turns []Turn
}

func (k *soundKeeper) Turn(t *Turn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turns = append(k.turns, *t)
}

// loudness is the root mean square of packets, from 0 to 32768, and their length once they are decoded.
func loudness(t *testing.T, p *audio.Packets) (rms float64, length time.Duration) {
	t.Helper()
	if p == nil {
		return 0, 0
	}
	dec, err := audio.NewDecoder(audio.Recognition.Rate)
	if err != nil {
		t.Fatal(err)
	}
	pcm, sum, samples := make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate)), 0.0, 0
	for packet := range p.All() {
		n, err := dec.Decode(packet, pcm)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range pcm[:n] {
			sum += float64(v) * float64(v)
		}
		samples += n
	}
	return math.Sqrt(sum / float64(max(samples, 1))), audio.Recognition.Duration(samples)
}

// recorded plays a script to a conversation of which that is recorded, and returns its turns.
func recorded(t *testing.T, p Persona, asr []string, script string) []Turn {
	t.Helper()
	k := &soundKeeper{}
	played(t, k, p, asr, script)
	return k.turns
}

// played plays a script to a conversation of a program that has just been started.
func played(t *testing.T, k Keeper, p Persona, asr []string, script string) (past Memory) {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		llm := &scriptLLM{}
		for range 4 {
			llm.lines = append(llm.lines, "text A reply that takes quite a while to say.", "end")
		}
		var detectors sync.WaitGroup
		o := Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{lines: asr}, LLM: llm, TTS: &toneTTS{rate: 16000}, Prompts: set, Devices: NewDevices(), Zone: time.UTC,
			Keeper: k, Recall: func(m Memory) { past = m }, Persona: func(string) (Persona, bool) { return p, true },
		}
		v := connect(t, o, router.Options{})
		enc, err := audio.NewEncoderOf(audio.Recognition, audio.Device())
		if err != nil {
			t.Fatal(err)
		}
		d := &talker{t: t, c: v.c, box: v.box, enc: enc, seen: map[string]int{}, mute: make([]int16, 960), loud: make([]int16, 960)}
		for i := range d.loud {
			d.loud[i] = int16(12000 * math.Sin(2*math.Pi*300*float64(i)/16000))
		}
		for line := range strings.Lines(script) {
			d.do(strings.TrimSpace(line))
		}
		v.bye()
		o.Devices.Close()
		detectors.Wait()
	})
	return past
}

// TestPauseOutlivesProgram: what was learned of how somebody pauses, and that somebody speaks at all, is known after a restart.
func TestPauseOutlivesProgram(t *testing.T) {
	k := &keeperInMemory{}
	p := Persona{Name: "a"}
	if before := played(t, k, p, []string{"turn on", "turn on", "the lamp"}, "listen auto\nvoice 900ms\nsilence 780ms\nvoice 900ms\nsilence 900ms\nuntil tts stop\n"); before.Pause != 0 || before.Spoke {
		t.Errorf("a new device: %+v", before)
	}
	again := played(t, k, p, nil, "wait 1s\n")
	if again.Pause == 0 || !again.Spoke || again.Pause != k.past.Memory.Pause {
		t.Errorf("after a restart: %+v", again)
	}
}

// TestSoundOfTurns: a turn has the sound that was said in it and what was played, as they came and went, and only where
// that is wanted.
func TestSoundOfTurns(t *testing.T) {
	const said = "listen auto\nsilence 3s\nvoice 1200ms\nsilence 900ms\nuntil tts stop\n"
	type span struct{ least, most time.Duration }
	none, some := span{}, span{time.Second, time.Minute}
	for name, c := range map[string]struct {
		record      Record
		forgets     bool
		asr         []string
		script      string
		user, reply span
		turns       int
	}{
		"both":    {record: RecordBoth, asr: []string{"hello"}, script: said, user: span{1800 * time.Millisecond, 2800 * time.Millisecond}, reply: some, turns: 1},
		"user":    {record: RecordUser, asr: []string{"hello"}, script: said, user: some, reply: none, turns: 1},
		"none":    {asr: []string{"hello"}, script: said, turns: 1},
		"forgets": {record: RecordBoth, forgets: true, asr: []string{"hello"}, script: said, turns: 0},
		"typed":   {record: RecordBoth, script: "detect what is it\nuntil tts stop\n", reply: some, turns: 1},
		"manual": {
			record: RecordBoth, asr: []string{"hello"}, script: "listen manual\nvoice 1200ms\nsilence 600ms\nstop\nuntil tts stop\n",
			user: span{1800 * time.Millisecond, 1800 * time.Millisecond}, reply: some, turns: 1,
		},
		"cut": { // 240 ms are ahead, and the guard before the first frame is no sound
			record: RecordBoth, asr: []string{"hello"}, script: "listen manual\nvoice 1200ms\nstop\nuntil sentence\nwait 1s\nabort\nwait 100ms\n",
			user: span{1200 * time.Millisecond, 1200 * time.Millisecond}, reply: span{850 * time.Millisecond, 1100 * time.Millisecond}, turns: 1,
		},
		"resumed": { // the first reply is undone while it thinks
			record: RecordBoth, asr: []string{"turn on", "turn on", "the lamp"}, script: "listen auto\nvoice 900ms\nsilence 780ms\nvoice 900ms\nsilence 900ms\nuntil tts stop\n",
			user: span{3 * time.Second, 4500 * time.Millisecond}, reply: some, turns: 1,
		},
		"lost": { // what is missing takes its time
			record: RecordUser, asr: []string{"hello"}, script: "listen manual\nbad 3s\nstop\nuntil tts stop\n", user: span{2200 * time.Millisecond, 3100 * time.Millisecond}, turns: 1,
		},
		"noise": { // what is nobody's words is in no turn
			record: RecordBoth, asr: []string{"!empty"}, script: "listen auto\nvoice 1200ms\nsilence 900ms\nuntil tts stop\n", user: some, reply: span{60 * time.Millisecond, time.Minute}, turns: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Persona{Name: "a", Record: c.record, Forgets: c.forgets}
			turns := recorded(t, p, c.asr, c.script)
			if len(turns) != c.turns {
				t.Fatalf("%d turns", len(turns))
			}
			if c.turns == 0 {
				return
			}
			for side, want := range map[string]struct {
				packets *audio.Packets
				span    span
			}{"user": {turns[0].Sound.User, c.user}, "reply": {turns[0].Sound.Reply, c.reply}} {
				loud, length := loudness(t, want.packets)
				if want.span == none {
					if want.packets != nil {
						t.Errorf("%s: %v is recorded", side, length)
					}
					continue
				}
				if want.packets == nil {
					t.Errorf("%s: nothing is recorded", side)
					continue
				}
				if says := want.packets.Length(); says < want.span.least || says > want.span.most || length < says || length > says+120*time.Millisecond {
					t.Errorf("%s: %v, decoded %v, want %v to %v", side, says, length, want.span.least, want.span.most)
				}
				if loud < 1000 {
					t.Errorf("%s: it is silent (%.0f)", side, loud)
				}
			}
		})
	}
}

// TestSoundOverReplies: what is said over a reply is in the turn that answers it, and in no other.
func TestSoundOverReplies(t *testing.T) {
	turns := recorded(t, Persona{Name: "a", Record: RecordBoth}, []string{"hello", "what about the weather", "what about the weather", "what about the weather"},
		"listen realtime\nvoice 1200ms\nsilence 900ms\nuntil sentence\nwait 1s\nvoice 2400ms\nsilence 3s\nuntil tts stop\nuntil tts stop\n")
	if len(turns) != 2 || turns[0].Heard != "hello" || turns[1].Heard != "what about the weather" {
		t.Fatalf("%+v", turns)
	}
	for i, want := range []struct{ user, reply time.Duration }{{1800 * time.Millisecond, 850 * time.Millisecond}, {3 * time.Second, time.Second}} {
		s := turns[i].Sound
		if s.User == nil || s.User.Length() < want.user || s.User.Length() > want.user+1200*time.Millisecond {
			t.Errorf("turn %d: the user: %+v", i+1, s.User.Length())
		}
		if s.Reply == nil || s.Reply.Length() < want.reply {
			t.Errorf("turn %d: the reply: %+v", i+1, s.Reply.Length())
		}
	}
}

// TestSoundOfUtterances: packets wait only for so many utterances, and each is in one turn.
func TestSoundOfUtterances(t *testing.T) {
	m := newMicrophone(&Conversation{o: &Options{}, life: life{}})
	for id := range uint64(20) {
		p := &audio.Packets{}
		p.Add([]byte{0x58, 1, 2, byte(id)})
		m.hears(id, p)
	}
	m.hears(20, nil)
	if len(m.heard) != maxHeard {
		t.Errorf("%d utterances wait", len(m.heard))
	}
	if p := m.heardOf([]uint64{17, 18}); p == nil || p.Length() != 120*time.Millisecond {
		t.Errorf("%+v", p)
	}
	if p := m.heardOf([]uint64{17, 18}); p != nil || len(m.heard) != 1 {
		t.Errorf("%v, %d wait", p, len(m.heard))
	}
}
