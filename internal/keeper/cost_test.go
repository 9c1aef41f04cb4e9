package keeper

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/config"
	"xiaozhi/internal/services"
	"xiaozhi/internal/timeline"
	"xiaozhi/store"
)

// TestAttemptsAreKeptWithTheirCost: the record of a turn says whom it asked, what came of
// it, and what that cost.
func TestAttemptsAreKeptWithTheirCost(t *testing.T) {
	cfg := &config.Config{}
	cfg.Providers = map[string]config.Provider{}
	for name, price := range map[string]config.Price{"ears": {Minute: 0.6}, "brain": {Input: 1, Cached: 0.5, Output: 2}, "voice": {Characters: 3}} {
		var p config.Provider
		p.Price = price
		cfg.Providers[name] = p
	}
	shared := config.Provider{Type: "ollama"}
	cfg.Providers["mine"] = shared
	shared.APIKey = "k"
	cfg.Providers["shared"] = shared
	k := &Keeper{o: Options{Price: func(name string) (config.Price, bool) { return services.PriceOf(cfg, name) }}}
	begun := time.Now()
	var turn store.Turn
	k.spent(&turn, &timeline.Figures{Attempts: []timeline.Attempt{
		{Op: "recognize", Provider: "ears", Asked: begun, Took: time.Second, Outcome: timeline.Answered, Sound: 10 * time.Second},
		{Op: "think", Provider: "gone", Asked: begun.Add(time.Second), Took: time.Second, Outcome: timeline.Failed, Fault: strings.Repeat("no ", 100)},
		{Op: "think", Provider: "brain", Asked: begun.Add(2 * time.Second), First: 300 * time.Millisecond, Took: time.Second, Outcome: timeline.Answered, Tokens: timeline.Tokens{Prompt: 1000, Completion: 100}, Cached: 400},
		{Op: "speak", Provider: "voice", Asked: begun.Add(3 * time.Second), First: time.Microsecond, Took: time.Second, Outcome: timeline.Lost, Characters: 10},
	}}, nil)
	if want := 100000 + 600 + 200 + 200 + 30000; turn.Cost() != want {
		t.Errorf("the turn cost %d millionths, want %d", turn.Cost(), want)
	}
	if turn.TokensIn != 1000 || turn.TokensOut != 100 || turn.TTSChars != 10 || turn.ASRSound != 10*time.Second {
		t.Errorf("%+v", turn)
	}
	kept, err := timeline.ReadSpans(turn.Spans)
	if err != nil || len(kept.Attempts) != 4 {
		t.Fatalf("%s: %v", turn.Spans, err)
	}
	if a := kept.Attempts[1]; a.At != 1000 || a.Outcome != timeline.Failed || len(a.Fault) > 164 || a.Fault == "" {
		t.Errorf("%+v", a)
	}
	if a := kept.Attempts[3]; a.First != 1 || a.Cost != 0.03 {
		t.Errorf("%+v", a)
	}
	for _, tt := range []struct {
		asked string
		known bool
	}{
		{"pocketsphinx rules local", true}, // they are in the program
		{"sherpa mine edge", true},
		{"", true}, // the server has said what it knew
		{"pocketsphinx deepseek local", false},
		{"shared", false},  // who gives a key may want money
		{"unheard", false}, // that was in the settings once
		{"brain", false},   // has a price, and does not say what it took
	} {
		var asked []timeline.Attempt
		for _, name := range strings.Fields(tt.asked) {
			asked = append(asked, timeline.Attempt{Op: "think", Provider: name, Asked: begun, Took: time.Second, Outcome: timeline.Answered})
		}
		turn = store.Turn{}
		if k.spent(&turn, &timeline.Figures{Attempts: asked}, nil); (turn.CostMicros != nil) != tt.known || turn.Cost() != 0 {
			t.Errorf("%s: the cost %d is known: %v", tt.asked, turn.Cost(), turn.CostMicros != nil)
		}
	}
	var many []timeline.Attempt
	for range 300 {
		many = append(many, timeline.Attempt{Op: "think", Provider: "brain", Asked: begun, Outcome: timeline.Answered})
	}
	turn = store.Turn{}
	if k.spent(&turn, &timeline.Figures{Attempts: many}, nil); turn.Spans == "" || len(turn.Spans) > 8<<10 {
		t.Errorf("%d bytes of spans", len(turn.Spans))
	}
}

// TestInterruptedAreFound: a search for interrupted turns knows the causes by what conversations call them.
func TestInterruptedAreFound(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Devices.Commit(t.Context(), store.DeviceChange{Save: []store.Identity{{ID: "m", Address: "m", State: store.DevicePaired, FirstAt: time.Now()}}}); err != nil {
		t.Fatal(err)
	}
	k := New(Options{Price: func(string) (config.Price, bool) { return config.Price{}, false }, Store: s, Device: "m", Valid: func(keep func()) { keep() }})
	for cause, want := range map[error]bool{turn.ErrBargeIn: true, turn.ErrAborted: true, turn.ErrReplaced: true, turn.ErrDone: false, turn.ErrFailed: false, turn.ErrNoSpeech: false, turn.ErrPaused: false} {
		k.Turn(&agent.Turn{Talk: agent.Talk{ID: cause.Error(), Began: time.Now(), Turns: 1}, At: time.Now(), Kind: agent.TurnSaid, Cause: cause})
		if err := s.Log.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := s.Talks.List(t.Context(), store.TalkFilter{Interrupted: true}, store.Page{Limit: 1})
		if found := err == nil && len(l.Talks) == 1; found != want {
			t.Errorf("%q: found %v, %v", cause, found, err)
		}
		if err := s.DeleteTalk(t.Context(), cause.Error()); err != nil {
			t.Fatal(err)
		}
	}
}
