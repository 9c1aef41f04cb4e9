package httpvoice

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const sentence = "a sentence of some length"

// spoken is what was heard of a sentence.
type spoken struct {
	samples, rate int
	packets       int
	err           error
	first, took   time.Duration
}

func speak(ctx context.Context, v providers.TTS, words string) (s spoken) {
	begun := time.Now()
	for sound, err := range v.Synthesize(ctx, providers.TTSRequest{Text: words, Language: "en"}) {
		if err != nil {
			s.err = err
			break
		}
		if s.samples == 0 {
			s.first = time.Since(begun)
		}
		s.samples, s.rate = s.samples+len(sound.PCM), sound.Rate
		s.packets += len(sound.Packets)
	}
	s.took = time.Since(begun)
	return s
}

// server answers every request with one reply.
func server(t *testing.T, reply servicetest.Reply) *servicetest.Server {
	t.Helper()
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		s.Note(servicetest.Request{Method: r.Method, Header: r.Header.Clone()})
		s.Send(w, r, s.Fault(), reply)
	}, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return s
}

func voice(t *testing.T, s *servicetest.Server, o Options) *Voice {
	t.Helper()
	o.Section.Name = "home"
	o.Request = func(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
		return PostJSON(ctx, s.URL()+"/speak", nil, map[string]string{"text": req.Text})
	}
	if o.Rate == 0 {
		o.Rate = 24000
	}
	v, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSoundOfEveryFormatIsRead(t *testing.T) {
	pcm := servicetest.Speech(sentence, 24000)
	whole := len(pcm) / 2
	for name, test := range map[string]struct {
		reply   servicetest.Reply
		asked   string
		samples int
		rate    int
	}{
		"pcm":                 {servicetest.Reply{Type: "audio/pcm", Body: pcm}, "pcm", whole, 24000},
		"pcm says its rate":   {servicetest.Reply{Type: "audio/pcm;rate=16000", Body: pcm}, "pcm", whole, 16000},
		"pcm has no type":     {servicetest.Reply{Body: pcm}, "pcm", whole, 24000},
		"odd pieces":          {servicetest.Reply{Body: pcm, Piece: 4801}, "pcm", whole, 24000},
		"wav":                 {servicetest.Reply{Body: append(servicetest.WAV(32000, uint32(len(pcm))), pcm...)}, "pcm", whole, 32000},
		"wav of no size":      {servicetest.Reply{Body: append(servicetest.WAV(44100, 0), pcm...), Piece: 999}, "wav", whole, 44100},
		"wav of a huge size":  {servicetest.Reply{Body: append(servicetest.WAV(8000, 0xffffffff), pcm...)}, "wav", whole, 8000},
		"wav, size too small": {servicetest.Reply{Body: append(servicetest.WAV(24000, 4800), pcm...), Piece: 999}, "wav", whole, 24000},
		"wav, size too large": {servicetest.Reply{Body: append(servicetest.WAV(24000, 1<<30), pcm...)}, "wav", whole, 24000},
		"wav of two files":    {servicetest.Reply{Body: slices.Concat(servicetest.WAV(24000, 4800), pcm[:4800], servicetest.WAV(24000, 0), pcm[4800:])}, "wav", whole, 24000},
		"wav with a tail":     {servicetest.Reply{Body: slices.Concat(servicetest.WAV(24000, uint32(len(pcm))), pcm, []byte("LIST\x04\x00\x00\x00INFO"))}, "wav", whole, 24000},
		"opus":                {servicetest.Reply{Body: servicetest.OggOpus(t, sentence, 48000)}, "opus", 0, 0},
		"mp3 as mere bytes":   {servicetest.Reply{Body: servicetest.MP3(sentence), Type: "application/octet-stream"}, "pcm", whole + 576, 24000},
		"mp3":                 {servicetest.Reply{Body: servicetest.MP3(sentence), Type: "audio/mpeg"}, "mp3", whole + 576, 24000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, test.reply)
			got := speak(t.Context(), voice(t, s, Options{Format: test.asked}), sentence)
			if test.asked == "opus" && got.packets*60 < len(sentence)*40 {
				t.Errorf("%d packets of 60 ms", got.packets)
			}
			if got.err != nil || got.samples < test.samples || got.samples > test.samples+4*576 || got.rate != test.rate {
				t.Errorf("%d samples at %d Hz, error %v, want %d at %d", got.samples, got.rate, got.err, test.samples, test.rate)
			}
		})
	}
}

func TestFailuresAreNamed(t *testing.T) {
	pcm := servicetest.Speech(sentence, 24000)
	good := servicetest.Reply{Type: "audio/pcm", Body: pcm, Piece: 4801, Broken: []byte(`{"error":{"message":"out of memory"}}`), Filler: pcm}
	for name, test := range map[string]struct {
		fault servicetest.Fault
		reply servicetest.Reply
		kind  providers.Kind
		words string
	}{
		"silent":       {servicetest.Silent, good, providers.Unavailable, "in time"},
		"cut":          {servicetest.Cut, good, providers.Unavailable, ""},
		"words":        {servicetest.Broken, good, providers.Unavailable, "out of memory"},
		"huge":         {servicetest.Huge, good, providers.Unavailable, "does not end"},
		"no sound":     {servicetest.None, servicetest.Reply{Type: "audio/pcm"}, providers.Unavailable, "no sound"},
		"another one":  {servicetest.None, servicetest.Reply{Type: "audio/flac", Body: []byte("fLaC and more of it")}, providers.Unavailable, ""},
		"torn header":  {servicetest.None, servicetest.Reply{Body: servicetest.WAV(16000, 9)[:20]}, providers.Unavailable, "WAV"},
		"refused":      {servicetest.None, servicetest.Reply{Status: 422, Body: []byte(`{"detail":"no voice sk-right-key-0123456789"}`)}, providers.BadRequest, "no voice ***"},
		"short of wav": {servicetest.None, servicetest.Reply{Body: append(servicetest.WAV(16000, 9999), pcm[:100]...)}, providers.Unavailable, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.fault == servicetest.Broken {
				test.reply.Type = "application/json"
			}
			s := server(t, test.reply)
			s.Fail(test.fault)
			o := Options{Format: "pcm"}
			if name == "another one" {
				o.Format = "opus"
			}
			o.Section = service.Section{Key: servicetest.Key, Timeouts: service.Timeouts{First: 60 * time.Millisecond, Next: 60 * time.Millisecond}}
			if test.fault == servicetest.Huge {
				o.Section.Timeouts = service.Timeouts{}
			}
			got := speak(t.Context(), voice(t, s, o), sentence)
			failed, ok := errors.AsType[*providers.Error](got.err)
			if !ok || failed.Provider != "home" || failed.Kind != test.kind || !strings.Contains(got.err.Error(), test.words) {
				t.Errorf("error %v, want %v and %q", got.err, test.kind, test.words)
			}
		})
	}
}

func TestNothingToSayAsksNothing(t *testing.T) {
	s := server(t, servicetest.Reply{Body: servicetest.Speech("a", 24000)})
	v := voice(t, s, Options{Format: "pcm"})
	if got := speak(t.Context(), v, "...!?"); got.err != nil || got.samples > 0 || len(s.Requests()) > 0 {
		t.Errorf("%+v after %d requests", got, len(s.Requests()))
	}
}

func TestEndOfContextIsNoticed(t *testing.T) {
	s := server(t, servicetest.Reply{})
	s.Fail(servicetest.Silent)
	v := voice(t, s, Options{Format: "pcm", Most: 1})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan spoken)
	for range 2 { // one of which waits for the other
		go func() { done <- speak(ctx, v, sentence) }()
	}
	time.Sleep(20 * time.Millisecond)
	cancel()
	begun := time.Now()
	for range 2 {
		if got := <-done; got.err != context.Canceled || time.Since(begun) > 100*time.Millisecond { //nolint:errorlint // unchanged
			t.Errorf("error %v after %v", got.err, time.Since(begun))
		}
	}
	if n := len(s.Requests()); n != 1 {
		t.Errorf("%d requests at once, want 1", n)
	}
}

func TestRequestsAreMadeAgain(t *testing.T) {
	twice := 2
	for name, test := range map[string]struct {
		retries *int
		status  int
		want    int
	}{
		"unavailable": {&twice, 503, 3},
		"no setting":  {nil, 503, 1},
		"refused":     {&twice, 402, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, servicetest.Reply{Status: test.status, Body: []byte("busy")})
			v := voice(t, s, Options{Format: "pcm", Section: service.Section{Retries: test.retries, Headers: map[string]providers.Secret{"X-Own": "1"}}})
			got := speak(t.Context(), v, sentence)
			if n := len(s.Requests()); n != test.want || got.err == nil || s.Requests()[0].Header.Get("X-Own") != "1" {
				t.Errorf("%d requests, error %v, want %d", n, got.err, test.want)
			}
		})
	}
}

func TestWarmOpensAConnection(t *testing.T) {
	s := server(t, servicetest.Reply{Type: "audio/pcm", Body: servicetest.Speech(sentence, 24000)})
	v := voice(t, s, Options{Format: "pcm", Ping: func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodHead, s.URL(), nil)
	}})
	if err := v.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := speak(t.Context(), v, sentence); got.err != nil || s.Conns() != 1 {
		t.Errorf("%d connections, error %v, want 1", s.Conns(), got.err)
	}
	_ = v.client.Transport.(*transport.HTTP)
	v.client.CloseIdleConnections()
}

// TestRetryEndsWithItsContext ends the context while a request waits to be made again.
func TestRetryEndsWithItsContext(t *testing.T) {
	s := servicetest.New(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	once := 1
	v := voice(t, s, Options{Section: service.Section{Retries: &once}, Format: "pcm"})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if got := speak(ctx, v, sentence); got.err != context.Canceled { //nolint:errorlint // unchanged
		t.Errorf("got %v", got.err)
	}
}
