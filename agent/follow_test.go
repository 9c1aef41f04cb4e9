package agent

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers/providertest"
)

// following are options that can be exchanged while conversations go by them.
func following(t *testing.T, o Options) (Options, *atomic.Pointer[Options]) {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	o.Prompts, o.Devices, o.Zone = set, NewDevices(), time.UTC
	now := &atomic.Pointer[Options]{}
	first := o
	now.Store(&first)
	o.Latest = changes(now)
	return o, now
}

// changes returns the options that have been exchanged since it was called last.
func changes(now *atomic.Pointer[Options]) func() *Options {
	var before *Options
	return func() *Options {
		o := now.Load()
		if o == before {
			return nil
		}
		before = o
		return o
	}
}

// Other options count from the next turn on: model, voice, name, zone and tools. The turn that runs ends by those it began with.
func TestOptionsCountFromTheNextTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann, bob := actor("Ann"), actor("Bob")
		o, now := following(t, Options{ASR: ann.ASR, LLM: ann.LLM, TTS: ann.TTS, Name: "Annabel", Limits: &router.Limits{}})
		v := connect(t, o, router.Options{}, &namedTools{"lamp", "door"})
		v.types(t, "who is there")
		time.Sleep(300 * time.Millisecond) // the model thinks
		next := *now.Load()
		next.ASR, next.LLM, next.TTS, next.Name, next.Zone = bob.ASR, bob.LLM, bob.TTS, "Bobby", time.FixedZone("CST", 8*3600)
		next.Limits = &router.Limits{Rules: router.Rules{Deny: []string{"lamp"}}}
		now.Store(&next)
		v.c.Renew()
		synctest.Wait()
		if n := len(v.tools.Offers()); n != 2 {
			t.Errorf("the turn that runs has %d tools", n)
		}
		time.Sleep(10 * time.Second)
		if n := len(v.tools.Offers()); n != 1 {
			t.Errorf("after it there are %d tools", n)
		}
		v.types(t, "and who is there now")
		time.Sleep(10 * time.Second)
		if got := slices.Concat(said(ann), said(bob)); !slices.Equal(got, []string{": Here is Ann.", ": Here is Bob."}) {
			t.Errorf("said %q", got)
		}
		for p, want := range map[*Persona][2]string{&ann: {"Annabel", "UTC"}, &bob: {"Bobby", "CST"}} {
			asked := p.LLM.(*providertest.LLM).Asked()
			if len(asked) != 1 || !strings.Contains(asked[0].Request.Messages[0].Content, want[0]) || asked[0].Request.Zone.String() != want[1] {
				t.Errorf("%s was asked %+v", want, asked)
			}
		}
		v.bye()
	})
}

// An open microphone hears the next utterance by the options of then: how long a pause ends it, and what is taken out of it.
func TestMicrophoneFollowsOptions(t *testing.T) {
	loud, mute := stormPackets(t)
	synctest.Test(t, func(t *testing.T) {
		var detectors sync.WaitGroup
		var words []time.Time
		p := actor("Ann")
		o, now := following(t, Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{}, LLM: p.LLM, TTS: p.TTS, Drafts: -1,
			Report: func(r Report) {
				if r.Stage == StageWords {
					words = append(words, time.Now())
				}
			},
			Endpoint: audio.EndpointOptions{Commit: 700 * time.Millisecond},
		})
		v := connect(t, o, router.Options{})
		v.listens(t, wire.Realtime)
		speak := func() (ended time.Duration) {
			words = nil
			hear := func(packets int, p []byte) {
				for range packets {
					v.c.Hear(wire.Packet{Data: p})
					time.Sleep(60 * time.Millisecond)
				}
			}
			hear(15, loud)
			end := time.Now()
			hear(60, mute)
			time.Sleep(10 * time.Second)
			if len(words) != 1 {
				t.Fatalf("%d utterances", len(words))
			}
			return words[0].Sub(end)
		}
		change := func(change func(o *Options)) {
			next := *now.Load()
			change(&next)
			now.Store(&next)
			v.c.Renew()
			synctest.Wait()
		}
		short := speak()
		change(func(o *Options) { o.Endpoint.Commit = 2 * time.Second })
		if long := speak(); long < short+time.Second || long > short+1500*time.Millisecond {
			t.Errorf("a pause of %v ended the utterance, before the change one of %v", long, short)
		}
		guards := func() bool { return v.c.mic.o.SelfEcho != nil || v.c.mic.o.FarEnd != nil }
		if !guards() {
			t.Error("nothing guards the microphone")
		}
		change(func(o *Options) { o.NoEchoGuard, o.Endpoint.Commit = true, 700*time.Millisecond })
		if again := speak(); guards() || again > short+100*time.Millisecond || again < short-100*time.Millisecond {
			t.Errorf("guarded %v, a pause of %v ended the utterance", guards(), again)
		}
		change(func(o *Options) { o.NoEchoGuard = false })
		if !guards() {
			t.Error("nothing guards the microphone again")
		}
		v.bye()
		detectors.Wait()
	})
}

// Who hears and speaks by itself comes and goes between turns. A session that knows the assistant by another name is not
// gone on with.
func TestRealtimeFollowsOptions(t *testing.T) {
	d := &providertest.Duplex{Script: slices.Concat(duplexSays("hello", "By its sound."), duplexSays("hello", "Again."), duplexSays("hello", "No more."))}
	var now atomic.Pointer[Options]
	told := 0
	follow := func(o *Options) {
		first := *o
		first.Realtime = nil
		now.Store(&first)
		o.Latest, o.Renewed = changes(&now), func() { told++ }
	}
	duplexTalk(t, d, follow, func(t *testing.T, v *visit, say func()) {
		change := func(change func(o *Options)) {
			next := *now.Load()
			change(&next)
			now.Store(&next)
			v.c.Renew()
			synctest.Wait()
		}
		turn := func(want string) {
			v.listens(t, wire.Auto)
			say()
			time.Sleep(8 * time.Second)
			if got := v.box.String(); strings.Count(got, "sentence "+want) != 1 {
				t.Errorf("%q is not there once:\n%s", want, got)
			}
		}
		turn("By the model.")
		change(func(o *Options) { o.Realtime = d })
		turn("By its sound.")
		change(func(o *Options) { o.Name = "Berta" })
		turn("Again.")
		if n := len(d.Requests()); n < 2 || !strings.Contains(d.Requests()[n-1].Instructions, "Berta") {
			t.Errorf("%d sessions, the last with %+v", n, d.Requests()[n-1])
		}
		change(func(o *Options) { o.Realtime = nil })
		if told != 3 {
			t.Errorf("told %d times", told)
		}
	})
}
