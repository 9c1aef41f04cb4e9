package azure

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/azure"
	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

func TestAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		s        service.Section
		tts, stt string
	}{
		"region":   {service.Section{Region: "westeurope"}, "https://westeurope.tts.speech.microsoft.com", "https://westeurope.stt.speech.microsoft.com"},
		"China":    {service.Section{Region: "chinaeast2"}, "https://chinaeast2.tts.speech.azure.cn", "https://chinaeast2.stt.speech.azure.cn"},
		"none":     {service.Section{}, "https://eastasia.tts.speech.microsoft.com", "https://eastasia.stt.speech.microsoft.com"},
		"its own":  {service.Section{BaseURL: "http://127.0.0.1:9/"}, "http://127.0.0.1:9", "http://127.0.0.1:9"},
		"one part": {service.Section{BaseURL: "https://x.tts.speech.azure.us"}, "https://x.tts.speech.azure.us", "https://x.stt.speech.azure.us"},
		"both":     {service.Section{BaseURL: "http://a", Settings: map[string]any{"stt_url": "http://b"}}, "http://a", "http://b"},
	} {
		if tts, stt := address(test.s, "tts"), address(test.s, "stt"); tts != test.tts || stt != test.stt {
			t.Errorf("%s: %s and %s", name, tts, stt)
		}
	}
	for tag, want := range map[string]string{"zh": "zh-CN", "zh-TW": "zh-TW", "en": "en-US", "": "zh-CN", "pt-PT": "pt-PT", "la": "la"} {
		if got := locale(tag); got != want {
			t.Errorf("%q: %q, want %q", tag, got, want)
		}
	}
}

func TestMessagesAreUnderstood(t *testing.T) {
	const id = "0123456789ABCDEF0123456789abcdef"
	say := func(path, body string) string { return "X-RequestId:" + id + "\r\npath: " + path + "\r\n\r\n" + body }
	for name, test := range map[string]struct {
		message string
		want    recognition.Result
		kind    providers.Kind // of the error
		fails   bool
	}{
		"begin":       {say("turn.start", "{}"), recognition.Result{}, 0, false},
		"hypothesis":  {say("speech.hypothesis", `{"Text":"a b","Offset":1}`), recognition.Result{Kind: recognition.Partial, Text: "a b"}, 0, false},
		"phrase":      {say("Speech.Phrase", `{"RecognitionStatus":"Success","DisplayText":"A b."}`), recognition.Result{Kind: recognition.Sentence, Text: "A b."}, 0, false},
		"detailed":    {say("speech.phrase", `{"RecognitionStatus":"Success","NBest":[{"Display":"A b."}]}`), recognition.Result{Kind: recognition.Sentence, Text: "A b."}, 0, false},
		"silence":     {say("speech.phrase", `{"RecognitionStatus":"InitialSilenceTimeout"}`), recognition.Result{Kind: recognition.Partial}, 0, false},
		"end":         {say("turn.end", "{}"), recognition.Result{Kind: recognition.Over}, 0, false},
		"of another":  {strings.ReplaceAll(say("turn.end", "{}"), "0", "9"), recognition.Result{}, 0, false},
		"too many":    {say("speech.phrase", `{"RecognitionStatus":"TooManyRequests"}`), recognition.Result{}, providers.RateLimited, true},
		"no quota":    {say("speech.phrase", `{"RecognitionStatus":"Forbidden"}`), recognition.Result{}, providers.NoCredit, true},
		"torn":        {"Path: turn.end\r\n", recognition.Result{}, 0, true},
		"no path":     {"X: y\r\n\r\n{}", recognition.Result{}, 0, true},
		"broken":      {say("speech.phrase", `{"Recog`), recognition.Result{}, 0, true},
		"more broken": {say("speech.hypothesis", `[]`), recognition.Result{}, 0, true},
	} {
		got, err := understand([]byte(test.message), strings.ToLower(id))
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: %+v, error %v", name, got, err)
		}
		if r, ok := errors.AsType[*transport.Refusal](err); ok && r.Kind != test.kind {
			t.Errorf("%s: %v, want %v", name, r.Kind, test.kind)
		}
	}
}

func TestHints(t *testing.T) {
	if got := hints(service.Section{}, []string{"a", "b"}); got != `{"dgi":{"Groups":[{"Type":"Generic","Items":[{"Text":"a"},{"Text":"b"}]}]}}` {
		t.Error(got)
	}
	off := service.Section{Settings: map[string]any{"phrases": false}}
	if hints(off, []string{"a"}) != "{}" || hints(service.Section{}, nil) != "{}" || len(hints(service.Section{}, make([]string, 1000))) > 2000 {
		t.Error("phrases that nobody wants told, none, or too many")
	}
}

func TestVoicesAreListed(t *testing.T) {
	s := fake.New(t)
	voices, err := listVoices(t.Context(), service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL()})
	if err != nil || len(voices) == 0 || voices[0].Name == "" || voices[0].Language[0] == "" {
		t.Errorf("%+v, error %v", voices, err)
	}
	_, err = listVoices(t.Context(), service.Section{Name: "x", Key: "wrong", BaseURL: s.URL()})
	if failed, ok := errors.AsType[*providers.Error](err); !ok || failed.Kind != providers.Unauthorized || !strings.Contains(err.Error(), "region") {
		t.Errorf("with a wrong key: %v", err)
	}
}

func TestFrames(t *testing.T) {
	b := binaryFrame("id", "audio/x-wav", []byte{1, 2})
	n := int(binary.BigEndian.Uint16(b))
	if head := string(b[2 : 2+n]); !strings.HasPrefix(head, "Path: audio\r\nX-RequestId: id\r\nX-Timestamp: ") || !strings.HasSuffix(head, "Content-Type: audio/x-wav\r\n") || !bytes.Equal(b[2+n:], []byte{1, 2}) {
		t.Errorf("%q", b)
	}
	if h := wavHeader(16000); len(h) != 44 || string(h[36:40]) != "data" {
		t.Errorf("%d bytes: %q", len(h), h)
	}
	if first, next := newID(), newID(); len(first) != 32 || first == next {
		t.Error("a number that is none, or the same twice")
	}
}

func TestSpeechIsSSML(t *testing.T) {
	s := service.Section{Speed: 1.2, Settings: map[string]any{"style": "cheerful"}, Voices: map[string]string{"en": "en-US-GuyNeural"}}
	b, err := speech(s, providers.TTSRequest{Text: `a < b & "c"` + "\x00", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	var words strings.Builder
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if text, ok := token.(xml.CharData); ok {
			words.Write(text)
		}
	}
	for _, part := range []string{`xml:lang="en-US"`, `name="en-US-GuyNeural"`, `rate="+20%"`, `style="cheerful"`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("no %s in %s", part, b)
		}
	}
	if words.String() != "a < b & \"c\" " {
		t.Errorf("words %q", words.String())
	}
	if _, err := speech(service.Section{}, providers.TTSRequest{Text: "a", Voice: "guy"}); err == nil {
		t.Error("a voice without a language: no error")
	}
	for tag, want := range map[string]string{"zh": "zh-CN-XiaoxiaoNeural", "en": "en-US-AvaMultilingualNeural", "ja": "ja-JP-NanamiNeural", "zh-TW": "zh-TW-HsiaoChenNeural", "xx": "zh-CN-XiaoxiaoNeural"} {
		if got := service.Fitting(voices(), tag); got != want {
			t.Errorf("%s: %s, want %s", tag, got, want)
		}
	}
	if _, err := NewTTS(service.Section{Rate: 11025}); err == nil {
		t.Error("a rate that the service does not have: no error")
	}
}

func TestOpusIsPassedThrough(t *testing.T) {
	v, err := NewTTS(service.Section{Name: "x", BaseURL: fake.New(t).URL(), Key: servicetest.Key, Format: "opus"})
	if err != nil {
		t.Fatal(err)
	}
	packets := 0
	for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "some words", Language: "en"}) {
		if err != nil {
			t.Fatal(err)
		}
		packets += len(sound.Packets)
	}
	if packets == 0 {
		t.Error("it was decoded")
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte("Path: speech.phrase\r\nX-RequestId: 1\r\n\r\n{\"RecognitionStatus\":\"Success\",\"DisplayText\":\"a\"}"))
	f.Add([]byte("Path:turn.end\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := understand(b, "1"); err != nil && r != (recognition.Result{}) {
			t.Errorf("words with an error: %+v, %v", r, err)
		}
	})
}
