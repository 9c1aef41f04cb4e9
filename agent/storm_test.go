package agent

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/internal/testall"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

var storms = flag.Int("storms", testall.Pick(60, 8), "how many random conversations TestStorm holds")

// storm is one device that does anything at any time.
type storm struct {
	t          *testing.T
	rnd        *rand.Rand
	c          *Conversation
	box        *box
	loud, mute []byte
	story      []string
	aborts     int // on this connection
	connect    func() *visit
	visit      *visit
}

// come connects the device.
func (s *storm) come() {
	s.visit, s.aborts = s.connect(), 0
	s.c, s.box = s.visit.c, s.visit.box
}

// leave ends the connection, and holds to the rules what came over it.
func (s *storm) leave() {
	s.story = append(s.story, fmt.Sprintf("%d leaves", time.Since(s.box.began).Milliseconds()))
	s.visit.bye()
	checkRules(s.t, s.box, time.Hour)
	checkPairs(s.t, s.box, s.aborts)
	checkFinals(s.t, s.box)
	s.c.dev.history.Unpack()
	checkHistory(s.t, s.c.dev.history.Snapshot())
}

func (s *storm) post(ev wire.Event, what string) {
	s.story = append(s.story, fmt.Sprintf("%d %s", time.Since(s.box.began).Milliseconds(), what))
	if err := s.c.Post(ev); err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
}

func (s *storm) sound(packet []byte, frames int, what string) {
	s.story = append(s.story, fmt.Sprintf("%d %d frames of %s", time.Since(s.box.began).Milliseconds(), frames, what))
	for range frames {
		time.Sleep(60 * time.Millisecond)
		s.c.Hear(wire.Packet{Data: packet})
	}
}

func (s *storm) stops() int {
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	n := 0
	for _, l := range s.box.lines {
		if strings.HasSuffix(l.text, "tts stop") {
			n++
		}
	}
	return n
}

// gust is one thing the device does.
func (s *storm) gust() {
	switch s.rnd.IntN(16) {
	case 0, 1:
		s.post(wire.ListenStart{Mode: wire.Auto}, "listen auto")
	case 2:
		s.post(wire.ListenStart{Mode: wire.Manual}, "listen manual")
	case 3:
		s.post(wire.ListenStart{Mode: wire.Realtime}, "listen realtime")
	case 4, 5:
		s.post(wire.ListenStop{}, "listen stop")
	case 6, 7:
		s.post(wire.Detect{Text: "what is going on"}, "typed")
	case 8:
		s.post(wire.Detect{Text: []string{"hi xiaozhi", "yes", "no", "stop"}[s.rnd.IntN(4)]}, "wake word or a short word")
	case 9:
		before := s.stops()
		s.post(wire.Abort{}, "abort")
		s.aborts++
		if s.rnd.IntN(2) == 0 {
			synctest.Wait()
			if s.stops() <= before {
				s.t.Error("an abort got no tts stop")
			}
		}
	case 10, 11, 12:
		s.sound(s.loud, 1+s.rnd.IntN(14), "voice")
	case 13, 14:
		s.sound(s.mute, 1+s.rnd.IntN(20), "silence")
	case 15:
		for range 12 {
			s.story = append(s.story, fmt.Sprintf("%d burst", time.Since(s.box.began).Milliseconds()))
			s.c.Hear(wire.Packet{Data: s.loud})
		}
	}
	if s.rnd.IntN(3) > 0 {
		time.Sleep(time.Duration(s.rnd.IntN(1200)) * time.Millisecond)
	}
}

// after checks that the conversation is still of use.
func (s *storm) after() {
	speak := func(what string, do func()) {
		before := s.stops()
		n := strings.Count(s.box.String(), "sentence Yes,")
		do()
		time.Sleep(20 * time.Second)
		if got := strings.Count(s.box.String(), "sentence Yes,"); got <= n || s.stops() <= before {
			s.t.Errorf("after the storm: %s is not answered (state %s)", what, s.c.state.Phase())
		}
	}
	speak("typed text", func() { s.post(wire.Detect{Text: "are you there"}, "typed, after all") })
	time.Sleep(2 * time.Second)
	speak("speech", func() {
		s.post(wire.ListenStart{Mode: wire.Auto}, "listen auto, after all")
		s.sound(s.loud, 12, "voice")
		s.sound(s.mute, 20, "silence")
	})
	speak("speech without another listen start", func() {
		s.sound(s.loud, 12, "voice")
		s.sound(s.mute, 20, "silence")
	})
}

func stormPackets(t *testing.T) (loud, mute []byte) {
	t.Helper()
	pcm := make([]int16, audio.Recognition.Samples())
	packet := func() []byte {
		enc, err := audio.NewEncoderOf(audio.Recognition, audio.Device())
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, audio.MaxPacket)
		n := 0
		for range 3 {
			if n, err = enc.Encode(pcm, buf); err != nil {
				t.Fatal(err)
			}
		}
		return buf[:n]
	}
	mute = packet()
	for i := range pcm {
		pcm[i] = int16(20000 * math.Sin(2*math.Pi*300*float64(i)/16000))
	}
	return packet(), mute
}

// TestStorm holds random conversations with providers that do anything: the
// rules of the wire hold at all times, and afterwards the device is answered.
func TestStorm(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	loud, mute := stormPackets(t)
	for seed := range *storms {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { blow(t, uint64(seed), set, loud, mute) })
		})
	}
}

// blow plays the storm of one seed.
func blow(t *testing.T, seed uint64, set *prompts.Set, loud, mute []byte) { //nolint:thelper // it is the test itself
	w := &weather{rnd: rand.New(rand.NewPCG(seed, 1))}
	var detectors sync.WaitGroup
	var log strings.Builder
	o := Options{
		VAD: energyVAD{&detectors}, ASR: stormASR{w}, LLM: stormLLM{w}, TTS: stormTTS{w}, Prompts: set,
		Devices: NewDevices(), Zone: time.UTC, IdleClose: 24 * time.Hour, Log: debugLog(&log),
		Reply: audio.Format{Rate: 8000, Frame: 60 * time.Millisecond},
	}
	if seed%2 == 1 {
		o.Realtime = stormDuplex{w}
	}
	songs := &scriptMusic{}
	o.Features = allFeatures(songs)
	source := stormSource()
	s := &storm{t: t, rnd: rand.New(rand.NewPCG(seed, 2)), loud: loud, mute: mute, connect: func() *visit {
		return connect(t, o, router.Options{Log: o.Log, Jobs: []string{"dig*"}, Rules: router.Rules{Confirm: []string{"open_door"}}}, source)
	}}
	s.come()
	for i := range 40 {
		s.gust()
		if i%8 == 7 && s.rnd.IntN(2) == 0 { // the connection is lost, and another one comes
			s.leave()
			time.Sleep(time.Duration(s.rnd.IntN(9)) * time.Second)
			s.come()
		}
	}
	w.settle()
	s.post(wire.ListenStop{}, "listen stop, at the end")
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	if c := s.c; c.state.Busy() || c.state.Phase() > turn.Listening || len(c.dev.queue.waiting) > 0 {
		t.Errorf("the storm is over, but the conversation is stuck in %s, with %d announcements", c.state.Phase(), len(c.dev.queue.waiting))
	}
	if n := len(s.c.duplex.kept); n > 0 {
		t.Errorf("the sound of %d utterances is kept", n)
	}
	s.after()
	s.post(wire.ListenStop{}, "listen stop, at last")
	time.Sleep(5 * time.Minute)
	if n := w.streams.Load(); n > seedTalks(seed) {
		t.Errorf("%d recogniser streams are still open", n)
	}
	s.leave()
	if n := w.streams.Load(); n != 0 {
		t.Errorf("%d realtime sessions are still open", n)
	}
	o.Devices.Close()
	detectors.Wait()
	if n := len(songs.opened) - len(songs.closed); n != 0 {
		t.Errorf("%d songs were not closed", n)
	}
	if t.Failed() {
		t.Logf("the device did\n%s\nand got at last\n%s\nlog:\n%s", strings.Join(s.story, "\n"), s.box, &log)
	}
}

// seedTalks is how many realtime sessions may be open while the device of a seed is there.
func seedTalks(seed uint64) int64 { return int64(seed % 2) }

// checkPairs holds starts and stops to one another: a stop without a start is
// only for an abort.
func checkPairs(t *testing.T, b *box, aborts int) {
	t.Helper()
	var open uint64
	alone, ended := 0, map[uint64]bool{}
	for _, l := range b.lines {
		switch {
		case l.text == "tts start":
			if open != 0 || ended[l.turn] {
				t.Errorf("%v: tts start of turn %d within turn %d", l.at, l.turn, open)
			}
			open = l.turn
		case strings.HasSuffix(l.text, "tts stop") && l.turn == 0:
			alone++
		case strings.HasSuffix(l.text, "tts stop"):
			if l.turn != open {
				t.Errorf("%v: tts stop of turn %d within turn %d", l.at, l.turn, open)
			}
			open, ended[l.turn] = 0, true
		case ended[l.turn] && !strings.HasPrefix(l.text, "final"):
			t.Errorf("%v: %q after the tts stop of its turn", l.at, l.text)
		}
	}
	if open != 0 || alone > aborts {
		t.Errorf("turn %d was never stopped; %d lone stops for %d aborts", open, alone, aborts)
	}
}

// checkHistory holds a dialogue to what models accept.
func checkHistory(t *testing.T, messages []providers.Message) {
	t.Helper()
	open, used := map[string]bool{}, map[string]bool{}
	for i, m := range messages {
		switch {
		case m.Role == providers.RoleTool:
			if !open[m.ToolCallID] {
				t.Errorf("message %d: a result without a call, or a second one", i)
			}
			delete(open, m.ToolCallID)
			continue
		case len(open) > 0:
			t.Errorf("message %d: calls without a result: %v", i, open)
		case m.Role == providers.RoleAssistant && len(m.ToolCalls) == 0 && strings.Trim(m.Content, " …") == "":
			t.Errorf("message %d: the assistant says nothing", i)
		}
		for _, call := range m.ToolCalls {
			if used[call.ID] {
				t.Errorf("message %d: call id %s is used twice", i, call.ID)
			}
			open[call.ID], used[call.ID] = true, true
		}
	}
	if len(open) > 0 {
		t.Errorf("calls without a result: %v", open)
	}
}
