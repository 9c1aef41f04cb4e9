package piper

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/wyoming"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestContract(t *testing.T) {
	providertest.TestVoiceContract(t, providertest.Case{
		Kind: Kind(), Fake: fake.NewPiper, Reuses: true,
		Skip: map[servicetest.Fault]string{servicetest.Huge: "what follows the sound is not read"},
	})
}

// TestOlderServer: it knows another path only, which is found out once.
func TestOlderServer(t *testing.T) {
	var paths []string
	var asked map[string]any
	s := servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &asked)
		pcm := servicetest.Speech("hello", 22050)
		_, _ = w.Write(append(servicetest.WAV(22050, uint32(len(pcm))), pcm...))
	})
	v, err := NewTTS(service.Section{Name: "home", BaseURL: s.URL(), Speed: 2, Settings: map[string]any{"speaker": "s"}, Voices: map[string]string{"": "v"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello"}) {
			if err != nil || sound.Rate != 22050 {
				t.Fatalf("%d Hz, %v", sound.Rate, err)
			}
		}
	}
	if !slices.Equal(paths, []string{"/synthesize", "/", "/"}) {
		t.Errorf("asked at %v", paths)
	}
	if asked["text"] != "hello" || asked["voice"] != "v" || asked["speaker"] != "s" || asked["length_scale"] != 0.5 {
		t.Errorf("asked for %v", asked)
	}
}

func TestVoicesAreListed(t *testing.T) {
	s := fake.NewPiper(t)
	all, err := listVoices(t.Context(), service.Section{Name: "home", BaseURL: s.URL()})
	if err != nil || len(all) == 0 {
		t.Errorf("%v, %v", all, err)
	}
	for body, want := range map[string]int{`{"zh_CN-huayan-medium":{},"en_US-amy-low":{}}`: 2, `["a"]`: 1} {
		if names, err := namesOf([]byte(body)); err != nil || len(names) != want {
			t.Errorf("%s: %v, %v", body, names, err)
		}
	}
	if _, err := namesOf([]byte("<html>")); err == nil {
		t.Error("HTML is a list of voices")
	}
}
