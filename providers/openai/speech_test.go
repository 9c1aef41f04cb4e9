package openai

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/openaispeech"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// kindOf returns the kind of a type.
func kindOf(t *testing.T, name string) service.Kind {
	t.Helper()
	for _, k := range append(Kinds(), SpeechKinds()...) {
		if k.Type == name {
			return k
		}
	}
	t.Fatalf("there is no %s", name)
	return service.Kind{}
}

// at puts the fake's address under a path, and sets a mode and a model.
func at(path, mode, model string) func(*service.Section) {
	return func(s *service.Section) {
		s.BaseURL += path
		if mode != "" {
			s.Settings = map[string]any{"mode": mode}
		}
		if model != "" {
			s.Models = map[service.Role]string{service.ASR: model}
		}
	}
}

func TestRecogniserContract(t *testing.T) {
	const theEnd = "the end of the body is that of the text"
	for name, c := range map[string]providertest.Case{
		"openai":      {Fake: fake.New, Section: at("/v1", "", ""), Uploads: true, Reuses: true},
		"siliconflow": {Fake: fake.NewSiliconFlow, Section: at("/v1", "", ""), Uploads: true, Reuses: true},
		"speaches": {
			Fake: fake.NewSpeaches, Section: at("/v1", "", ""), Uploads: true, Reuses: true,
			Skip: map[servicetest.Fault]string{servicetest.Closed: theEnd, servicetest.Huge: theEnd},
		},
		"realtime": {Fake: fake.New, Section: at("/v1", "", "gpt-live-transcribe")},
	} {
		t.Run(name, func(t *testing.T) {
			kind := name
			if name == "realtime" {
				kind = "openai"
			}
			c.Kind = kindOf(t, kind)
			if c.Skip == nil {
				c.Skip = map[servicetest.Fault]string{}
			}
			c.Skip[servicetest.WrongVoice] = "it is of voices"
			providertest.TestRecogniserContract(t, c)
		})
	}
}

func TestVoiceContract(t *testing.T) {
	const theEnd = "the end of the body is that of the sound"
	for name, c := range map[string]providertest.Case{
		"openai":      {Fake: fake.New, Section: at("/v1", "", "")},
		"siliconflow": {Fake: fake.NewSiliconFlow, Section: at("/v1", "", "")},
		"glm":         {Fake: fake.NewZhipu, Section: at("/api/paas/v4", "", "")},
		"kokoro":      {Fake: fake.NewKokoro, Section: at("/v1", "", "")},
	} {
		t.Run(name, func(t *testing.T) {
			c.Kind, c.Reuses = kindOf(t, name), true
			if name != "glm" {
				c.Skip = map[servicetest.Fault]string{servicetest.Closed: theEnd}
			}
			providertest.TestVoiceContract(t, c)
		})
	}
}

func TestModes(t *testing.T) {
	openai := kindOf(t, "openai")
	for model, want := range map[string]bool{"gpt-live-transcribe": true, "whisper-1": false, "": false} {
		a, err := openai.ASR(service.Section{Name: "x", Models: map[service.Role]string{service.ASR: model}})
		if err != nil {
			t.Fatal(err)
		}
		if _, uploads := a.(*Upload); uploads == want {
			t.Errorf("%q: a WebSocket: %v", model, !uploads)
		}
	}
	s := service.Section{Name: "x", Models: map[service.Role]string{service.ASR: "gpt-live-transcribe"}, Settings: map[string]any{"mode": "upload"}}
	if _, err := openai.ASR(s); err == nil || !strings.Contains(err.Error(), "x: mode") {
		t.Errorf("got %v", err)
	}
	if _, err := openai.TTS(service.Section{Name: "x", Format: "flac"}); err == nil || !strings.Contains(err.Error(), "x: format") {
		t.Errorf("got %v", err)
	}
}

func TestVoicesAreListed(t *testing.T) {
	s := fake.NewKokoro(t)
	k := kindOf(t, "kokoro")
	all, err := k.ListVoices(t.Context(), service.Section{Name: "x", BaseURL: s.URL() + "/v1"})
	if err != nil || len(all) < 3 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestWhatIsAskedFor: each vendor gets the names that it knows.
func TestWhatIsAskedFor(t *testing.T) {
	s := fake.NewSiliconFlow(t)
	k := kindOf(t, "siliconflow")
	section := service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL() + "/v1", Speed: 1.5, Extra: map[string]any{"gain": 3}}
	v, err := k.TTS(section)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	body := string(s.Requests()[0].Body)
	for _, want := range []string{`"voice":"FunAudioLLM/CosyVoice2-0.5B:alex"`, `"sample_rate":24000`, `"speed":1.5`, `"gain":3`, `"response_format":"pcm"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
}

// TestRatesByFormat: SiliconFlow refuses rates that a format does not have.
func TestRatesByFormat(t *testing.T) {
	s := fake.NewSiliconFlow(t)
	for _, format := range []string{"pcm", "wav", "mp3", "opus"} {
		v, err := kindOf(t, "siliconflow").TTS(service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL() + "/v1", Format: format, Speed: 9})
		if err != nil {
			t.Fatal(err)
		}
		heard := false
		for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello"}) {
			if heard = true; err != nil {
				t.Errorf("%s: %v", format, err)
			}
		}
		if !heard {
			t.Errorf("%s has no sound", format)
		}
	}
}

// TestVoiceOfTheLanguage: Kokoro reads Chinese with the rules of English where the voice is English.
func TestVoiceOfTheLanguage(t *testing.T) {
	s := fake.NewKokoro(t)
	v, err := kindOf(t, "kokoro").TTS(service.Section{Name: "x", BaseURL: s.URL() + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range []struct{ language, voice string }{{"zh", "zf_xiaobei"}, {"en", "af_heart"}, {"ja", "jf_alpha"}, {"fi", "zf_xiaobei"}} {
		for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello", Language: test.language}) {
			if err != nil && test.language != "ja" {
				t.Fatal(err)
			}
		}
		if body := string(s.Requests()[i].Body); !strings.Contains(body, `"voice":"`+test.voice+`"`) {
			t.Errorf("%s: %s", test.language, body)
		}
	}
}

// TestLongSpeechIsCut: the service refuses more than it takes at once.
func TestLongSpeechIsCut(t *testing.T) {
	s := fake.NewZhipu(t)
	v, err := kindOf(t, "glm").TTS(service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL() + "/api/paas/v4"})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: strings.Repeat("Nine chars ", 100) + "!!!"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// TestUploadsAreMadeAgain: as often as the settings say, and only where that may help.
func TestUploadsAreMadeAgain(t *testing.T) {
	for status, want := range map[int]int{503: 3, 400: 1} {
		asked := 0
		s := servicetest.New(t, func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(status)
		})
		twice := 2
		a, err := kindOf(t, "siliconflow").ASR(service.Section{Name: "x", Key: "k", BaseURL: s.URL(), Retries: &twice})
		if err != nil {
			t.Fatal(err)
		}
		stream, err := a.Open(t.Context(), providers.ASRRequest{Rate: 16000})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stream.Write(second()), stream.CloseWrite()); err != nil {
			t.Fatal(err)
		}
		for _, err := range stream.Transcripts() {
			if err == nil {
				t.Error("no error")
			}
		}
		if asked != want {
			t.Errorf("status %d: %d requests, want %d", status, asked, want)
		}
	}
}

func TestSoundOfEvents(t *testing.T) {
	for content, want := range map[string]string{"AAEC": "\x00\x01\x02", "0a0b": "\x0a\x0b", "": "", "!": "error"} {
		got, err := binaryOf(content)
		if err != nil {
			got = []byte("error")
		}
		if string(got) != want {
			t.Errorf("%q: %q", content, got)
		}
	}
}

func TestClickIsFaded(t *testing.T) {
	s := eventSound{rate: 1000}
	raw := []byte{0, 4, 0, 4, 0, 4}
	if got := s.fade(raw); got[1] != 0 || got[3] != 0 || got[4] == 0 && got[5] == 0 {
		t.Errorf("% x does not swell", got)
	}
	for range 4 {
		raw = []byte{0, 4, 0, 4, 0, 4}
		s.fade(raw)
	}
	if raw[1] != 4 {
		t.Errorf("% x: the swelling does not end", raw)
	}
}

func FuzzTranscriptEvent(f *testing.F) {
	f.Add([]byte(`{"type":"transcript.text.delta","delta":"a"}`))
	f.Add([]byte(`{"type":"transcript.text.done","text":"a"}`))
	f.Add([]byte(`{"error":{"message":"x"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := transcriptEvent(b); err != nil && r.Text != "" {
			t.Errorf("%+v and %v", r, err)
		}
	})
}

func FuzzEventSound(f *testing.F) {
	f.Add([]byte(`{"choices":[{"delta":{"content":"AAEC","return_sample_rate":24000}}]}`))
	f.Add([]byte(`{"choices":[{"finish_reason":"stop"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := eventSound{rate: 24000}
		_ = s.take(b)
		if s.rate < 8000 || s.rate > 48000 || len(s.rest) > len(b) {
			t.Errorf("%d Hz, %d bytes of %d", s.rate, len(s.rest), len(b))
		}
	})
}

// TestLeftAnswerIsClosed leaves the text of an upload before its end: the request is
// over then, and its connection is not counted as busy any more.
func TestLeftAnswerIsClosed(t *testing.T) {
	s := newServer(t)
	o := section(t, s)
	s.Reply(openaitest.Transcribe, openaitest.Events(`{"type":"transcript.text.delta","delta":"hello"}`, `{"type":"transcript.text.delta","delta":"hello"}`).Then(openaitest.Piece{Hang: true}))
	stream, err := newASR(t, o).Open(t.Context(), providers.ASRRequest{Rate: 16000})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.Write(second()), stream.CloseWrite()); err != nil {
		t.Fatal(err)
	}
	for tr, err := range stream.Transcripts() {
		if err != nil || tr.Text != "hello" {
			t.Errorf("got %+v, %v", tr, err)
		}
		time.Sleep(50 * time.Millisecond) // more has come by now, and waits
		break
	}
	wantGone(t, s.Requests(openaitest.Transcribe)[0])
	wire := o.Client.Transport.(*transport.HTTP)
	deadline := time.Now().Add(patience)
	for _, busy := wire.Counts(); busy > 0 && time.Now().Before(deadline); _, busy = wire.Counts() {
		time.Sleep(time.Millisecond)
	}
	if _, busy := wire.Counts(); busy != 0 {
		t.Errorf("%d requests are under way", busy)
	}
}

// TestBareRequest: SiliconFlow's pages name the sound and the model, and nothing more.
func TestBareRequest(t *testing.T) {
	for kind, want := range map[string]string{"siliconflow": "file model", "groq": "file language model response_format"} {
		got := ""
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ParseMultipartForm(1<<20) == nil {
				got = strings.Join(slices.Sorted(func(yield func(string) bool) {
					for name := range r.MultipartForm.Value {
						yield(name)
					}
					for name := range r.MultipartForm.File {
						yield(name)
					}
				}), " ")
			}
			_, _ = io.WriteString(w, `{"text":"hello"}`)
		}))
		a, err := kindOf(t, kind).ASR(service.Section{Name: "x", Key: "k", BaseURL: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		if tr, err := hear(t.Context(), a, second(), "zh"); err != nil || tr.Text != "hello" || got != want {
			t.Errorf("%s: %+v, %v, sent %q", kind, tr, err, got)
		}
		s.Close()
	}
}
