package funasr

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/funasr"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// recognise speaks, or is silent, and returns what was understood in the end.
func recognise(t *testing.T, a providers.ASR, pcm []int16) (providers.Transcript, error) {
	t.Helper()
	s, err := a.Open(t.Context(), providers.ASRRequest{Rate: 16000, Language: "zh-CN"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Write(pcm), s.CloseWrite()); err != nil {
		t.Fatal(err)
	}
	var last providers.Transcript
	for tr, err := range s.Transcripts() {
		if last = tr; err != nil {
			return last, err
		}
	}
	return last, nil
}

// TestOldServer: an old Python server says nothing of silence, and its is_final means the
// opposite.
func TestOldServer(t *testing.T) {
	s := fake.Serve(t, fake.OldPython)
	a, err := New(service.Section{Name: "home", BaseURL: s.WS(), Timeouts: service.Timeouts{First: 2 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	tone := servicetest.Samples(servicetest.Speech(strings.Repeat("a", 26), 16000))
	for _, fault := range []servicetest.Fault{servicetest.None, servicetest.Parts} {
		s.Fail(fault)
		begun := time.Now()
		if got, err := recognise(t, a, tone); err != nil || strings.ReplaceAll(got.Text, " ", "") != strings.ReplaceAll(servicetest.Words, " ", "") || !got.Final {
			t.Errorf("%v: %+v, %v", fault, got, err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the end was found after %v", took)
		}
	}
	s.Fail(servicetest.None)
	if got, err := recognise(t, a, make([]int16, 16000)); err != nil || got.Text != "" || !got.Final {
		t.Errorf("silence: %+v, %v", got, err)
	}
}

// TestModes: in each mode the C++ server's last answer is known as such.
func TestModes(t *testing.T) {
	s := fake.Serve(t, fake.TwoPass)
	tone := servicetest.Samples(servicetest.Speech(strings.Repeat("a", 26), 16000))
	for _, mode := range []string{"online", "offline"} {
		a, err := New(service.Section{Name: "home", BaseURL: s.WS() + "/", Settings: map[string]any{"mode": mode}})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if got, err := recognise(t, a, tone); err != nil || got.Text != servicetest.Words || time.Since(begun) > 2*time.Second {
			t.Errorf("%s: %+v, %v after %v", mode, got, err, time.Since(begun))
		}
	}
}

// TestForeignCertificate: the servers come with a certificate of their own.
func TestForeignCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	server.StartTLS()
	defer server.Close()
	for insecure, want := range map[bool]string{false: "setting insecure", true: "404"} {
		a, err := New(service.Section{
			Name: "home", BaseURL: strings.Replace(server.URL, "https", "wss", 1), Settings: map[string]any{"insecure": insecure},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := recognise(t, a, make([]int16, 960)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("insecure %v: %v, want %q", insecure, err, want)
		}
	}
}

// TestStreams: whether texts come early is known from how the server answers.
func TestStreams(t *testing.T) {
	for variant, want := range map[fake.Variant]bool{fake.TwoPass: true, fake.Offline: false} {
		a, err := New(service.Section{Name: "home", BaseURL: fake.Serve(t, variant).WS()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := recognise(t, a, servicetest.Samples(servicetest.Speech("aaaaaaaaaa", 16000))); err != nil {
			t.Error(err)
		}
		if got := a.(providers.Streamer).Streams(); got != want {
			t.Errorf("%d: %v", variant, got)
		}
	}
}

func TestOpening(t *testing.T) {
	b, err := json.Marshal(opening{ChunkSize: [3]int{5, 10, 5}, Hotwords: `{"lamp":20}`})
	if err != nil || !strings.Contains(string(b), `"chunk_size":[5,10,5]`) || !strings.Contains(string(b), `"hotwords":"{`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestDialects tells the servers apart by their answers. A line is an answer; > is our end mark.
func TestDialects(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		words   string
		want    outcome
	}{
		"C++": {[]string{
			`{"mode":"2pass-online","text":"tur","slice_type":0}`, `{"mode":"2pass-online","text":"n it","slice_type":1}`, ">",
			`{"mode":"2pass-offline","text":"Turn it on.","is_final":false,"timestamp":17}`, `{"text":"","is_final":true}`,
		}, "Turn it on.", last},
		"C++, more to come": {[]string{`{"mode":"2pass-online","text":"a","slice_type":0}`, ">", `{"mode":"2pass-offline","text":"A.","is_final":false}`}, "A.", more},
		"C++, no mode":      {[]string{">", `{"text":"","is_final":true}`}, "", last},
		"C++, as most have it": {[]string{
			`{"mode":"2pass-online","text":"a","is_final":false}`, ">", `{"mode":"2pass-offline","text":"A.","is_final":false}`,
			`{"mode":"2pass-offline","text":"B.","is_final":true,"timestamp":"[[1,2]]"}`,
		}, "A. B.", maybe},
		"C++, a sentence that ends with the sound": {[]string{`{"mode":"2pass-online","text":"a","is_final":false}`, ">", `{"mode":"2pass-offline","text":"A.","is_final":false}`}, "A.", hardly},
		"C++ in the mode online":                   {[]string{`{"mode":"2pass-online","text":"a","is_final":false}`, ">", `{"mode":"2pass-online","text":"b","is_final":true}`}, "ab", last},
		"C++ in the mode online, one word":         {[]string{">", `{"mode":"2pass-online","text":"a","is_final":true}`}, "a", maybe},
		"old Python, in pieces": {[]string{
			`{"mode":"2pass-online","text":"a","is_final":true}`, `{"mode":"2pass-offline","text":"A.","is_final":true}`, ">",
			`{"mode":"2pass-online","text":"b","is_final":true}`, `{"mode":"2pass-offline","text":"B.","is_final":false}`,
		}, "A. B.", maybe},
		"odd members": {[]string{">", `{"mode":"2pass-offline","text":"A.","is_final":"yes","wav_name":7}`}, "A.", maybe},
		"offline":     {[]string{">", `{"mode":"offline","text":"A.","is_final":false}`}, "A.", last},
		"new Python": {[]string{
			`{"mode":"2pass-offline","text":"A.","is_final":true,"timestamp":[[1,2]]}`, ">",
			`{"mode":"2pass-offline","text":"B.","is_final":true}`, `{"is_end":true,"is_final":true}`,
		}, "A. B.", last},
		"new Python, not acknowledged": {[]string{`{"mode":"2pass-offline","text":"A.","is_final":true}`, ">", `{"mode":"2pass-offline","text":"B.","is_final":true}`}, "A. B.", maybe},
		"old Python":                   {[]string{`{"mode":"2pass-online","text":"a","is_final":true}`, ">", `{"mode":"2pass-offline","text":"A.","is_final":false}`}, "A.", maybe},
		"speaking":                     {[]string{`{"mode":"2pass-online","text":"a"}`, `{"mode":"2pass-online","text":"b"}`}, "ab", more},
	} {
		d := dialogue{online: strings.Contains(name, "mode online")}
		var words string
		var got outcome
		over := false
		for _, a := range c.answers {
			if a == ">" {
				over = true
				continue
			}
			m, _, err := parse([]byte(a))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			words, got = d.add(m, over)
		}
		if words != c.words || got != c.want {
			t.Errorf("%s: %q and %d, want %q and %d", name, words, got, c.words, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	m, language, err := parse([]byte(`{"text":"<|en|><|NEUTRAL|><|Speech|><|withitn|>Hello"}`))
	if err != nil || m.Text != "Hello" || language != "en" {
		t.Errorf("%q, %q, %v", m.Text, language, err)
	}
	for _, answer := range []string{
		"ERROR. Real-time transcription service ONLY SUPPORT PCM stream.", `{"text":"ERROR. Real-time transcription service ONLY SUPPORT PCM stream.","is_final":true}`,
		`{"is_end":true,"error":"out of memory"}`, `{"text":`,
	} {
		if _, _, err := parse([]byte(answer)); err == nil {
			t.Errorf("%s is no error", answer)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mode":"2pass-online","text":"<|zh|>a","is_final":true,"timestamp":"[[1,2]]"}`))
	f.Add([]byte(`{"is_end":true,"error":null}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		if m, _, err := parse(b); err == nil {
			var d dialogue
			d.add(m, false)
			d.add(m, true)
		}
	})
}
