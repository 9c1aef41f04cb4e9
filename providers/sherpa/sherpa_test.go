package sherpa_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/sherpa"
	"xiaozhi/providers/sherpa/modelfile"
	"xiaozhi/providers/sherpa/sherpatest"
)

// loud is sound of a length that the test library recognises.
func loud(d time.Duration) []int16 {
	pcm := make([]int16, int(d.Milliseconds())*16)
	for i := range pcm {
		pcm[i] = 8000
	}
	return pcm
}

// recognizer makes one of a kind with a library of its own. It is closed, and what it held is freed, at the end.
func recognizer(t *testing.T, kind modelfile.Kind, change func(*sherpa.Options)) (*sherpa.Recognizer, *sherpatest.Library) {
	t.Helper()
	lib := sherpatest.NewLibrary(t)
	o := sherpa.Options{Model: sherpatest.Model(t, kind), Library: lib.File}
	if change != nil {
		change(&o)
	}
	r, err := sherpa.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if live := lib.Get("live"); live != 0 {
			t.Errorf("%d objects of the library are not freed", live)
		}
	})
	return r, lib
}

func begin(ctx context.Context, t *testing.T, r *sherpa.Recognizer) providers.ASRStream {
	t.Helper()
	s, err := r.Open(ctx, providers.ASRRequest{Rate: 16000, Language: "zh"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// last returns the final transcript, and the partial ones before it.
func last(seq iter.Seq2[providers.Transcript, error]) (final providers.Transcript, partial []string, err error) {
	for tr, e := range seq {
		switch {
		case e != nil:
			return tr, partial, e
		case tr.Final:
			final = tr
		default:
			partial = append(partial, tr.Text)
		}
	}
	return final, partial, nil
}

func TestStreaming(t *testing.T) {
	t.Parallel()
	for _, kind := range []modelfile.Kind{modelfile.Transducer, modelfile.StreamingParaformer} {
		r, _ := recognizer(t, kind, nil)
		s := begin(t.Context(), t, r)
		next, stop := iter.Pull2(s.Transcripts())
		defer stop()
		for i, want := range []string{"今天", "今天天气", "今天天气怎么样"} {
			if err := s.Write(loud(100 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			tr, err, ok := next() // before the end of the input
			if !ok || err != nil || tr.Final || tr.Text != want || tr.Language != "zh" {
				t.Fatalf("%s: partial %d is %+v, %v, want %s", kind, i, tr, err, want)
			}
		}
		if err := s.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		tr, err, ok := next()
		if !ok || err != nil || !tr.Final || tr.Text != "今天天气怎么样" || tr.Provider != "sherpa" {
			t.Errorf("%s: final %+v, %v", kind, tr, err)
		}
		if _, _, ok := next(); ok {
			t.Errorf("%s: something follows the final transcript", kind)
		}
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	for _, kind := range []modelfile.Kind{modelfile.SenseVoice, modelfile.Paraformer, modelfile.Whisper} {
		r, lib := recognizer(t, kind, nil)
		s := begin(t.Context(), t, r)
		for range 4 {
			if err := s.Write(loud(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		final, partial, err := last(s.Transcripts())
		if err != nil || final.Text != "今天天气" || final.Language != "zh" || len(partial) != 0 {
			t.Errorf("%s: %+v after %q, %v", kind, final, partial, err)
		}
		if steps := lib.Get("steps"); steps != 1 {
			t.Errorf("%s: recognised %d times", kind, steps)
		}
	}
}

// TestWhisperLimit speaks 40 s to a model that takes 30 s, with a pause at 25 s.
func TestWhisperLimit(t *testing.T) {
	t.Parallel()
	r, lib := recognizer(t, modelfile.Whisper, nil)
	s := begin(t.Context(), t, r)
	for _, pcm := range [][]int16{loud(25 * time.Second), make([]int16, 8000), loud(14500 * time.Millisecond)} {
		if err := s.Write(pcm); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	final, _, err := last(s.Transcripts())
	if err != nil || lib.Get("steps") != 2 || !strings.HasPrefix(final.Text, "今天天气") {
		t.Errorf("%d pieces, %.20q, %v", lib.Get("steps"), final.Text, err)
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	for _, kind := range []modelfile.Kind{modelfile.Transducer, modelfile.SenseVoice} {
		r, lib := recognizer(t, kind, nil)
		for _, pcm := range [][]int16{nil, make([]int16, 16000)} {
			s := begin(t.Context(), t, r)
			if err := errors.Join(s.Write(pcm), s.CloseWrite()); err != nil {
				t.Fatal(err)
			}
			final, _, err := last(s.Transcripts())
			if err != nil || !final.Final || final.Text != "" || final.Language != "" {
				t.Errorf("%s: %+v, %v", kind, final, err)
			}
		}
		_ = lib
	}
}

// TestCancel ends the context, leaves the loop and closes the recogniser while the library computes.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, kind := range []modelfile.Kind{modelfile.Transducer, modelfile.SenseVoice} {
		for _, how := range []string{"cancel", "close", "load"} {
			t.Run(string(kind)+" "+how, func(t *testing.T) {
				t.Parallel()
				r, lib := recognizer(t, kind, nil)
				busy := "delay"
				if how == "load" {
					busy = "load"
				}
				lib.Set(busy, 250)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				s := begin(ctx, t, r)
				if err := errors.Join(s.Write(loud(time.Second)), s.CloseWrite()); err != nil {
					t.Fatal(err)
				}
				var ended time.Time
				time.AfterFunc(60*time.Millisecond, func() {
					ended = time.Now()
					if how == "close" {
						go r.Close()
						return
					}
					cancel(errors.New("a cause"))
				})
				_, _, err := last(s.Transcripts())
				took := time.Since(ended)
				if ended.IsZero() || took > 100*time.Millisecond {
					t.Errorf("returned after %v", took)
				}
				var p *providers.Error
				if how == "close" && !errors.As(err, &p) || how != "close" && err != context.Canceled { //nolint:errorlint // unchanged
					t.Errorf("error %v", err)
				}
				if err := s.Write(loud(time.Millisecond)); err == nil {
					t.Error("sound is taken afterwards")
				}
			})
		}
	}
}

// TestPlaces has three utterances for two places: the third is heard when one of them is done.
func TestPlaces(t *testing.T) {
	t.Parallel()
	r, _ := recognizer(t, modelfile.Transducer, func(o *sherpa.Options) { o.Decoders = 2 })
	var busy []providers.ASRStream
	for range 2 {
		s := begin(t.Context(), t, r)
		if err := s.Write(loud(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(s.Transcripts())
		defer stop()
		if _, err, ok := next(); err != nil || !ok {
			t.Fatal(err)
		}
		busy = append(busy, s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
	defer cancel()
	waits := begin(ctx, t, r)
	if err := errors.Join(waits.Write(loud(time.Second)), waits.CloseWrite()); err != nil {
		t.Fatal(err)
	}
	if tr, _, err := last(waits.Transcripts()); err != context.DeadlineExceeded { //nolint:errorlint // unchanged
		t.Errorf("without a place: %+v, %v", tr, err)
	}
	third := begin(t.Context(), t, r)
	if err := errors.Join(third.Write(loud(200*time.Millisecond)), third.CloseWrite(), busy[0].CloseWrite()); err != nil {
		t.Fatal(err)
	}
	if final, _, err := last(third.Transcripts()); err != nil || final.Text != "今天天气" {
		t.Errorf("with a place: %+v, %v", final, err)
	}
}

// TestRetire frees the model at the end of the last utterance, and loads it again for one that comes later.
func TestRetire(t *testing.T) {
	t.Parallel()
	r, lib := recognizer(t, modelfile.Transducer, nil)
	if err := r.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := begin(t.Context(), t, r)
	next, stop := iter.Pull2(s.Transcripts())
	defer stop()
	if err := s.Write(loud(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	next()
	r.Retire()
	if lib.Get("live") == 0 {
		t.Fatal("the model was freed under an utterance")
	}
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if tr, err, _ := next(); err != nil || !tr.Final {
		t.Errorf("%+v, %v", tr, err)
	}
	wait(t, "the model is freed", func() bool { return lib.Get("live") == 0 })
	if err := r.Warm(t.Context()); err != nil || lib.Get("live") != 0 {
		t.Errorf("%v, %d objects", err, lib.Get("live"))
	}
}

// wait waits for something that another goroutine does.
func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	r, _ := recognizer(t, modelfile.Transducer, nil)
	if _, err := r.Open(t.Context(), providers.ASRRequest{Rate: 8000}); kindOf(err) != providers.BadRequest {
		t.Errorf("8000 Hz: %v", err)
	}
	s := begin(t.Context(), t, r)
	if err := s.Write(make([]int16, 64*16000)); err != nil {
		t.Error(err)
	}
	if err := s.Write(make([]int16, 2*16000)); !errors.Is(err, providers.ErrUtteranceFull) {
		t.Errorf("66 s: %v", err)
	}
	if err := errors.Join(s.CloseWrite(), s.CloseWrite()); err != nil {
		t.Error(err)
	}
	if err := s.Write(nil); !errors.Is(err, providers.ErrUtteranceClosed) {
		t.Errorf("after the end: %v", err)
	}
	last(s.Transcripts())
	if _, _, err := last(s.Transcripts()); err == nil {
		t.Error("transcripts twice")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Open(t.Context(), providers.ASRRequest{Rate: 16000}); kindOf(err) != providers.Unavailable {
		t.Errorf("closed: %v", err)
	}
	if err := r.Warm(t.Context()); kindOf(err) != providers.Unavailable {
		t.Errorf("closed: %v", err)
	}
}

// kindOf is that of a provider's error, and -1 of any other.
func kindOf(err error) providers.Kind {
	if p, ok := errors.AsType[*providers.Error](err); ok {
		return p.Kind
	}
	return -1
}

// TestFaults wants an error that names the fault, from what makes recognisers and voices.
func TestFaults(t *testing.T) {
	t.Parallel()
	lib := sherpatest.NewLibrary(t)
	old := sherpatest.NewLibrary(t)
	old.Version("2.0.1")
	sense, vits := sherpatest.Model(t, modelfile.SenseVoice), sherpatest.Model(t, modelfile.VITS)
	hears := func(o sherpa.Options) error { _, err := sherpa.New(o); return err }
	speaks := func(o sherpa.Options) error { _, err := sherpa.NewVoice(o); return err }
	for name, c := range map[string]struct {
		o     sherpa.Options
		make  func(sherpa.Options) error
		fault modelfile.Fault
		says  string
	}{
		"no library":       {sherpa.Options{Model: sense, Library: "/nowhere/lib.so"}, hears, modelfile.NoLibrary, "/nowhere/lib.so"},
		"another library":  {sherpa.Options{Model: vits, Library: "libm.so.6"}, speaks, modelfile.NotSherpa, "libm.so.6"},
		"another version":  {sherpa.Options{Model: sense, Library: old.File}, hears, modelfile.Version, "2.0.1"},
		"no folder":        {sherpa.Options{Model: "/nowhere/model", Library: lib.File}, speaks, modelfile.NoFolder, "/nowhere/model"},
		"a voice hears":    {sherpa.Options{Model: vits, Library: lib.File}, hears, modelfile.WrongRole, "vits"},
		"a hearer speaks":  {sherpa.Options{Model: sense, Library: lib.File}, speaks, modelfile.WrongRole, "sensevoice"},
		"no model":         {sherpa.Options{Library: lib.File}, hears, "", "no model is set"},
		"unknown language": {sherpa.Options{Model: sense, Library: lib.File, Language: "fr"}, hears, "", `the language "fr", but auto, zh`},
		"too fast":         {sherpa.Options{Model: vits, Library: lib.File, Speed: 9}, speaks, "", "speed 9"},
		"decoders":         {sherpa.Options{Model: vits, Library: lib.File, Decoders: -1}, speaks, "", "decoders -1"},
		"threads":          {sherpa.Options{Model: vits, Library: lib.File, Threads: 1000}, speaks, "", "threads 1000"},
		"no speaker":       {sherpa.Options{Model: vits, Library: lib.File, Speaker: "4"}, speaks, "", `no speaker "4": want 0 to 3`},
	} {
		err := c.make(c.o)
		p, _ := errors.AsType[*modelfile.Problem](err)
		if err == nil || !strings.Contains(err.Error(), c.says) || (p == nil) != (c.fault == "") || p != nil && p.Fault != c.fault {
			t.Errorf("%s: %v (%+v), want %s", name, err, p, c.says)
		}
		want := providers.Unavailable
		if c.fault == "" {
			want = providers.BadRequest
		}
		if kindOf(err) != want {
			t.Errorf("%s: kind %v", name, kindOf(err))
		}
	}
	lib.Set("refuse", 1)
	r, err := sherpa.New(sherpa.Options{Model: sense, Library: lib.File, Language: "zh-CN"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if p, ok := errors.AsType[*modelfile.Problem](r.Warm(t.Context())); !ok || p.Fault != modelfile.Refused {
		t.Errorf("refused: %+v", p)
	}
	lib.Set("refuse", 0)
	if err := r.Warm(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestTry loads a model elsewhere before it is loaded here, once.
func TestTry(t *testing.T) {
	t.Parallel()
	tries, broken := 0, errors.New("it ended the process")
	r, lib := recognizer(t, modelfile.Transducer, func(o *sherpa.Options) {
		o.Try = func(context.Context) error {
			if tries++; tries == 1 {
				return broken
			}
			return nil
		}
	})
	if err := r.Warm(t.Context()); !errors.Is(err, broken) || lib.Get("live") != 0 {
		t.Errorf("%v, %d objects: the model was loaded although it had failed elsewhere", err, lib.Get("live"))
	}
	for range 2 {
		if err := r.Warm(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if tries != 2 {
		t.Errorf("tried %d times, want 2", tries)
	}
}

// TestManyAtOnce hears and speaks with all that there is, for the race detector.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	r, lib := recognizer(t, modelfile.Transducer, func(o *sherpa.Options) { o.Decoders = 3 })
	lib.Set("delay", 1)
	var work sync.WaitGroup
	for i := range 12 {
		work.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, err := r.Open(ctx, providers.ASRRequest{Rate: 16000})
			if err != nil {
				t.Error(err)
				return
			}
			for range 4 {
				s.Write(loud(50 * time.Millisecond))
			}
			s.CloseWrite()
			switch i % 3 {
			case 0:
				cancel()
				last(s.Transcripts())
			case 1:
				for range s.Transcripts() {
					break
				}
			default:
				if final, partial, err := last(s.Transcripts()); err != nil || final.Text != "今天天气" || !slices.IsSorted(partial) {
					t.Errorf("%+v after %q, %v", final, partial, err)
				}
			}
		})
	}
	work.Wait()
}
