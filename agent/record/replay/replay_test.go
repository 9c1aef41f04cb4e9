package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/record"
	"xiaozhi/mcp"
	"xiaozhi/providers"
)

const ms = time.Millisecond

// recordingOf is a recording with these lines after its first.
func recordingOf(t *testing.T, lines ...string) *record.Recording {
	t.Helper()
	first := `{"t":0,"begin":{"version":1,"began":"2000-01-01T00:00:01Z","session":{"DeviceID":"d","SessionID":"s","Language":"en"},` +
		`"settings":{},"limits":{},"has":{"fast_path":true,"music":true},"vad_frame":512,"asr":"a","llm":"l","tts":"t"}}`
	rec, err := record.Read(strings.NewReader(first + "\n" + strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func playerOf(t *testing.T, o Options, lines ...string) *player {
	t.Helper()
	p, err := newPlayer(t.Context(), recordingOf(t, lines...), o)
	if err != nil {
		t.Fatal(err)
	}
	p.began = time.Now()
	return p
}

// A question that comes about when it came is answered when it was; another one
// after as long as it took.
func TestAnswersComeWhenTheyCame(t *testing.T) {
	lines := []string{
		`{"t":1000000000,"llm":{"n":1,"step":"asked"}}`,
		`{"t":1400000000,"llm":{"n":1,"step":"gave","delta":{"Text":"Hi."}}}`,
		`{"t":1500000000,"llm":{"n":1,"step":"done"}}`,
	}
	for _, c := range []struct{ asked, text, done time.Duration }{
		{1000 * ms, 1400 * ms, 1500 * ms},
		{980 * ms, 1400 * ms, 1500 * ms},
		{1020 * ms, 1400 * ms, 1500 * ms},
		{900 * ms, 1300 * ms, 1400 * ms},
		{3000 * ms, 3400 * ms, 3500 * ms},
	} {
		t.Run(c.asked.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := playerOf(t, Options{Within: 50 * ms}, lines...)
				time.Sleep(c.asked)
				for d, err := range p.options.LLM.Generate(t.Context(), providers.LLMRequest{}) {
					if d.Text != "Hi." || err != nil || p.now() != c.text {
						t.Errorf("%q %v at %v", d.Text, err, p.now())
					}
				}
				if p.now() != c.done {
					t.Errorf("done at %v", p.now())
				}
				for _, err := range p.options.LLM.Generate(t.Context(), providers.LLMRequest{}) {
					if !errors.Is(err, errMore) {
						t.Errorf("asked again: %v", err)
					}
				}
			})
		})
	}
}

// What failed fails, what broke breaks, and what was given up waits to be given up.
func TestFailuresComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := playerOf(t, Options{},
			`{"t":0,"tts":{"n":1,"step":"asked"}}`, `{"t":5000000,"tts":{"n":1,"step":"failed","fault":{"text":"no","provider":"x","op":"speak"}}}`,
			`{"t":0,"tts":{"n":2,"step":"asked"}}`, `{"t":0,"tts":{"n":2,"step":"panicked"}}`,
			`{"t":0,"tts":{"n":3,"step":"asked"}}`, `{"t":5000000,"tts":{"n":3,"step":"failed","fault":{"text":"gone","is":"canceled","gone":true}}}`,
		)
		for _, err := range p.options.TTS.Synthesize(t.Context(), providers.TTSRequest{}) {
			if perr, ok := errors.AsType[*providers.Error](err); !ok || perr.Provider != "x" || p.now() != 5*ms {
				t.Errorf("%v at %v", err, p.now())
			}
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it did not break")
				}
			}()
			for range p.options.TTS.Synthesize(t.Context(), providers.TTSRequest{}) {
				t.Error("there is sound")
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, err := range p.options.TTS.Synthesize(ctx, providers.TTSRequest{}) {
			if !errors.Is(err, context.DeadlineExceeded) || p.now() != 1005*ms {
				t.Errorf("%v at %v", err, p.now())
			}
		}
	})
}

// A recogniser answers from the end of its utterance on, refuses what it refused,
// and one that could not be had cannot be had.
func TestRecognizerComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := playerOf(t, Options{},
			`{"t":0,"asr":{"n":1,"step":"asked"}}`,
			`{"t":10000000,"asr":{"n":1,"step":"gave","transcript":{"Text":"h"}}}`,
			`{"t":20000000,"asr":{"n":1,"step":"full","samples":4,"fault":{"text":"full","is":"utterance_full"}}}`,
			`{"t":30000000,"asr":{"n":1,"step":"closed","samples":4}}`,
			`{"t":70000000,"asr":{"n":1,"step":"gave","transcript":{"Text":"hi","Final":true}}}`,
			`{"t":70000000,"asr":{"n":1,"step":"left"}}`,
			`{"t":80000000,"asr":{"n":2,"step":"asked"}}`, `{"t":80000000,"asr":{"n":2,"step":"refused","fault":{"text":"no"}}}`,
		)
		s, err := p.options.ASR.Open(t.Context(), providers.ASRRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Write(make([]int16, 4)); err != nil {
			t.Error(err)
		}
		if err := s.Write(make([]int16, 4)); !errors.Is(err, providers.ErrUtteranceFull) {
			t.Errorf("full: %v", err)
		}
		go func() {
			time.Sleep(100 * ms)
			s.CloseWrite()
			s.CloseWrite()
		}()
		var got []string
		for tr, err := range s.Transcripts() {
			got = append(got, fmt.Sprint(p.now(), " ", tr.Text, " ", err))
			if tr.Final {
				break
			}
		}
		if all := strings.Join(got, ", "); all != "10ms h <nil>, 140ms hi <nil>" {
			t.Error(all)
		}
		if _, err := p.options.ASR.Open(t.Context(), providers.ASRRequest{}); err == nil || err.Error() != "no" {
			t.Errorf("refused: %v", err)
		}
	})
}

// A detector's stretches begin where it is reset, however many frames it got.
func TestDetectorComesAgain(t *testing.T) {
	p := playerOf(t, Options{}, `{"t":0,"vad":{"n":1,"p":[0.1,0.2]}}`, `{"t":0,"vad":{"n":1,"p":[0.3]}}`,
		`{"t":0,"vad":{"n":1,"reset":true}}`, `{"t":0,"vad":{"n":1,"p":[0.5,0.6],"reset":true}}`)
	d, err := p.options.VAD.NewDetector()
	if err != nil {
		t.Fatal(err)
	}
	var got []float32
	say := func(n int) {
		for range n {
			v, _ := d.Probability(nil)
			got = append(got, v)
		}
	}
	say(4)
	d.Reset()
	say(1)
	d.Reset()
	say(1)
	d.Reset()
	say(1)
	d.Reset()
	say(1)
	if all := fmt.Sprint(got); all != "[0.1 0.2 0.3 0 0 0.5 0 0]" {
		t.Error(all)
	}
	if p.options.VAD.FrameSamples() != 512 {
		t.Error(p.options.VAD.FrameSamples())
	}
}

// Tools come and go at their times, and a call gets its own result.
func TestToolsComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := playerOf(t, Options{},
			`{"t":0,"tools":{"source":"1","list":[{"Name":"a","Schema":"{}","depends":true}]}}`,
			`{"t":0,"shown":{"source":"1","tool":"a","yes":false}}`,
			`{"t":50000000,"tools":{"source":"1","list":[{"Name":"a","Schema":"{}"},{"Name":"b"}]}}`,
			`{"t":60000000,"call":{"n":1,"step":"asked","source":"1","tool":"b","arguments":{"x":1}}}`,
			`{"t":60000000,"call":{"n":2,"step":"asked","source":"1","tool":"b","arguments":{"x":2}}}`,
			`{"t":70000000,"call":{"n":2,"step":"done","result":{"text":"two"}}}`,
			`{"t":90000000,"call":{"n":1,"step":"failed","fault":{"text":"no such tool","is":"no_tool"}}}`,
		)
		s := p.sources()[0]
		first := s.GetAvailableTools()
		if len(first) != 1 || first[0].When == nil || first[0].When(nil) || string(first[0].Schema) != "{}" {
			t.Errorf("first %+v", first)
		}
		time.Sleep(60 * ms)
		if now := s.GetAvailableTools(); len(now) != 2 || now[0].When != nil || !s.HasTool("b") || s.HasTool("c") {
			t.Errorf("then %+v", now)
		}
		if v, err := s.CallTool(t.Context(), "b", map[string]any{"x": 2}); v != "two" || err != nil || p.now() != 70*ms {
			t.Errorf("%v %v at %v", v, err, p.now())
		}
		if _, err := s.CallTool(t.Context(), "b", map[string]any{"x": 3}); !errors.Is(err, mcp.ErrNoTool) || p.now() != 100*ms {
			t.Errorf("%v at %v", err, p.now())
		}
		if _, err := s.CallTool(t.Context(), "b", nil); !errors.Is(err, errMore) {
			t.Errorf("a third call: %v", err)
		}
	})
}

// Whatever a recording holds, its replay ends, or says what it cannot do.
func TestOddRecordings(t *testing.T) {
	for _, c := range []struct {
		name, bad string
		lines     []string
	}{
		{"nothing more", "", nil},
		{"answers to nothing", "", []string{`{"t":1,"llm":{"n":7,"step":"gave"}}`, `{"t":1,"call":{"n":9,"step":"done"}}`, `{"t":1,"song":{"n":1,"step":"gave"}}`}},
		{"questions that nobody answers", "", []string{`{"t":1,"detect":{"Text":"hello there"}}`, `{"t":60000000000,"end":{"cause":"x"}}`}},
		{"speech and no engine", "", []string{`{"t":1,"listen_start":{"Mode":"manual"}}`, `{"t":2,"frame":{"Packet":"WA=="}}`, `{"t":3,"frame":{}}`, `{"t":4,"listen_stop":{}}`, `{"t":60000000000,"gone":{}}`}},
		{"time runs backwards", "", []string{`{"t":9000,"abort":{}}`, `{"t":-5,"abort":{}}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := recordingOf(t, c.lines...)
			synctest.Test(t, func(t *testing.T) {
				got, err := Run(t.Context(), rec, Options{Settle: synctest.Wait})
				if err != nil || got.Begin() == nil {
					t.Errorf("%v", err)
				}
			})
		})
	}
	rec := recordingOf(t)
	rec.Begin().Settings["Unheard"] = json.RawMessage(`1`)
	if _, err := Run(t.Context(), rec, Options{}); err == nil || !strings.Contains(err.Error(), `"Unheard"`) {
		t.Errorf("a setting of another version: %v", err)
	}
	if _, err := Run(t.Context(), &record.Recording{}, Options{}); err == nil {
		t.Error("nothing was replayed")
	}
}

// Calls side by side are held to no order, all else is.
func TestCompareOrder(t *testing.T) {
	call := func(at time.Duration, tool string) record.Entry {
		return record.Entry{T: at, Call: &record.Call{Step: record.Asked, Tool: tool}}
	}
	a := &record.Recording{Entries: []record.Entry{call(1, "x"), call(1, "y"), call(90, "z")}}
	b := &record.Recording{Entries: []record.Entry{call(1, "y"), call(1, "x"), call(90, "z")}}
	if d := Compare(a, b, 0); len(d) != 0 {
		t.Error(d)
	}
	b.Entries[2].T = 91
	if d := Compare(a, b, 0); len(d) != 1 {
		t.Error(d)
	}
	sent := func(text string) record.Entry { return record.Entry{Sent: &record.Sent{Kind: "stt", Text: text}} }
	a, b = &record.Recording{}, &record.Recording{}
	for i := range 30 {
		a.Entries, b.Entries = append(a.Entries, sent(fmt.Sprint(i))), append(b.Entries, sent(fmt.Sprint(29-i)))
	}
	if d := Compare(a, b, 0); len(d) != maxDifferences+1 {
		t.Error(d)
	}
	if d := Farthest(a, b); d != 0 {
		t.Error(d)
	}
}

// Packets are held to their bytes where those say something.
func TestSameSound(t *testing.T) {
	a, b := recordingOf(t), recordingOf(t)
	if !SameSound(a, b) || SameSound(a, &record.Recording{}) {
		t.Error("of the same library")
	}
	packet := func(r *record.Recording, bytes ...byte) {
		r.Entries = append(r.Entries, record.Entry{Audio: &record.Audio{Turn: 1, Packet: bytes}})
	}
	packet(a, 1, 2)
	packet(b, 1, 3)
	if d := Compare(a, b, 0); len(d) != 1 || !strings.Contains(d[0], "packet 1 differs") {
		t.Error(d)
	}
	a.Begin().Has.Levels = true
	if d := Compare(a, b, 0); len(d) != 0 || SameSound(a, b) {
		t.Error(d)
	}
	packet(a, 1)
	if d := Compare(a, b, 0); len(d) != 1 {
		t.Error("a packet is missing", d)
	}
}
