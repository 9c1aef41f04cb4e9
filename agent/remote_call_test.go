package agent

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature/remote"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// actSource is a scriptSource with a tool, act, that names the next handler.
type actSource struct {
	*scriptSource
	next mcp.ActionResponseCall
}

func (s *actSource) CallTool(ctx context.Context, name string, args map[string]any) (any, error) {
	if name == "act" {
		return mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: s.next}, nil
	}
	return s.scriptSource.CallTool(ctx, name, args)
}

// act has a handler run for somebody outside.
func (s *actSource) act(t *testing.T, d remote.Device, name string, args any) mcp.ActionResponse {
	t.Helper()
	s.next = mcp.ActionResponseCall{FuncName: name, Args: args}
	r, _ := d.Call(t.Context(), mcp.Call{ID: "a", Name: "act", Language: "en"})
	return r
}

// TestAct: tools that touch the conversation can be used from outside of it.
func TestAct(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var detectors sync.WaitGroup
		songs := &scriptMusic{}
		o := Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{}, LLM: &scriptLLM{}, TTS: &toneTTS{rate: 16000}, Prompts: set,
			Devices: NewDevices(), Features: allFeatures(songs), Zone: time.UTC,
		}
		src := &actSource{scriptSource: newScriptSource("device", []string{"self.camera.take_photo query 2s a cup", "act query 0s done"})}
		v := connect(t, o, router.Options{}, src)
		for _, c := range []struct {
			call   string
			args   any
			action mcp.Action
			want   string
		}{
			{mcp.HandlerTimer, mcp.TimerArgs{Action: mcp.TimerSet, Due: time.Now().Add(time.Minute), Text: "Tea"}, mcp.ActionTypeResponse, "OK, I will remind you in 1 minute."},
			{mcp.HandlerTimer, mcp.TimerArgs{Action: mcp.TimerList}, mcp.ActionTypeReqLLM, "Tea"},
			{mcp.HandlerTakePhoto, mcp.PhotoArgs{Question: "what?", Tool: "self.camera.take_photo"}, mcp.ActionTypeReqLLM, "a cup"},
			{mcp.HandlerPlayMusic, mcp.MusicArgs{Action: mcp.MusicPlay, Name: "Rain", Song: "rain", Title: "Rain"}, mcp.ActionTypeResponse, "OK, now playing Rain."},
			{mcp.HandlerChangeRole, mcp.RoleArgs{Role: "pirate"}, mcp.ActionTypeError, "there is no such role"},
			{"mcp_handler_dance", nil, mcp.ActionTypeError, "no handler named"},
			{mcp.HandlerTimer, "odd", mcp.ActionTypeError, "decode arguments"},
		} {
			r := src.act(t, v.d, c.call, c.args)
			if r.Action != c.action || !strings.Contains(mcp.ResultText(r), c.want) {
				t.Errorf("%s %v: %+v, want %q", c.call, c.args, r, c.want)
			}
		}
		time.Sleep(2 * time.Minute)
		said := v.box.String()
		for _, want := range []string{"sentence ♪ Rain", "final This is a reminder: Tea."} {
			if !strings.Contains(said, want) {
				t.Errorf("no %q in\n%s", want, said)
			}
		}
		if strings.Contains(said, "now playing") || strings.Contains(said, "I will remind") {
			t.Errorf("what was told outside is spoken too:\n%s", said)
		}
		if r := src.act(t, v.d, mcp.HandlerExit, nil); r.Action != mcp.ActionTypeResponse || v.box.hungUp == nil {
			t.Errorf("exit: %+v, hung up: %v", r, v.box.hungUp)
		}
		v.bye()
		over := time.Now()
		if r := src.act(t, v.d, mcp.HandlerForget, nil); r.Action != mcp.ActionTypeError || time.Since(over) != 0 {
			t.Errorf("after the end: %+v, after %v", r, time.Since(over))
		}
		detectors.Wait()
	})
}

// TestActOnMusic: a song that plays is paused, goes on, skipped and stopped from
// outside, at once and without a word.
func TestActOnMusic(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var detectors sync.WaitGroup
		songs := &scriptMusic{}
		src := &actSource{scriptSource: newScriptSource("device", []string{"act query 0s done"})}
		v := connect(t, Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{}, LLM: &scriptLLM{}, TTS: &toneTTS{rate: 16000}, Prompts: set,
			Devices: NewDevices(), Features: allFeatures(songs), Zone: time.UTC,
		}, router.Options{}, src)
		do := func(a mcp.MusicArgs, want string, after time.Duration) {
			t.Helper()
			r := src.act(t, v.d, mcp.HandlerPlayMusic, a)
			if r.Action != mcp.ActionTypeResponse || r.Response != want {
				t.Errorf("%s: %+v, want %q", a.Action, r, want)
			}
			time.Sleep(after)
		}
		frames := func() time.Duration { // of music so far
			var sum time.Duration
			v.box.mu.Lock()
			defer v.box.mu.Unlock()
			for _, l := range v.box.lines {
				sum += time.Duration(len(l.frames)) * 60 * time.Millisecond
			}
			return sum
		}
		do(mcp.MusicArgs{Action: mcp.MusicPlay, Name: "Rain", Song: "rain", Title: "Rain"}, "OK, now playing Rain.", 3*time.Second)
		heard := frames()
		do(mcp.MusicArgs{Action: mcp.MusicPause}, "OK.", 20*time.Second)
		if got := frames(); heard == 0 || got != heard {
			t.Errorf("%v of music before the pause, %v after it", heard, got)
		}
		do(mcp.MusicArgs{Action: mcp.MusicResume}, "OK.", 500*time.Millisecond)
		do(mcp.MusicArgs{Action: mcp.MusicResume}, "OK.", 10*time.Second) // it plays already
		if got := frames(); got < 2900*time.Millisecond || got > 3500*time.Millisecond {
			t.Errorf("%v of a song of 3 s", got)
		}
		do(mcp.MusicArgs{Action: mcp.MusicPause}, "Nothing is playing right now.", 0)

		do(mcp.MusicArgs{Action: mcp.MusicPlay, Song: "a", Title: "A"}, "OK, now playing A.", 3*time.Second)
		do(mcp.MusicArgs{Action: mcp.MusicNext}, "OK, now playing after a.", 3*time.Second)
		heard = frames()
		do(mcp.MusicArgs{Action: mcp.MusicStop}, "OK.", 20*time.Second)
		if got := frames(); got != heard {
			t.Errorf("%v of music before the stop, %v after it", heard, got)
		}
		do(mcp.MusicArgs{Action: mcp.MusicPlay, Song: "b", Title: "B"}, "OK, now playing B.", 3*time.Second)
		do(mcp.MusicArgs{Action: mcp.MusicPause}, "OK.", 0)
		do(mcp.MusicArgs{Action: mcp.MusicResume}, "OK.", 20*time.Second) // before its turn is joined
		v.bye()
		detectors.Wait()
		said := v.box.String()
		if n := strings.Count(said, "tts start"); n != strings.Count(said, "tts stop") {
			t.Errorf("starts and stops are not pairs:\n%s", said)
		}
		for _, want := range []string{"♪ Rain", "♪ A", "♪ after a", "♪ B"} {
			if !strings.Contains(said, want) {
				t.Errorf("no %q in\n%s", want, said)
			}
		}
		if strings.Contains(said, "OK") || strings.Contains(said, "wrong") || len(songs.opened) != len(songs.closed) {
			t.Errorf("opened %q, closed %q:\n%s", songs.opened, songs.closed, said)
		}
	})
}
