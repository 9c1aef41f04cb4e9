package aliyun

import (
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/aliyun"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

func TestForgottenConnectionCostsNoSentence(t *testing.T) {
	t.Parallel()
	s := fake.New(t)
	v, err := newTTS(service.Section{
		Name: "x", Key: servicetest.Key, Secret: servicetest.Secret, ID: servicetest.ID, BaseURL: s.URL(),
		Models: map[service.Role]string{service.TTS: flowing},
	})
	if err != nil {
		t.Fatal(err)
	}
	for again := range 2 {
		heard := 0
		for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello", Language: "en"}) {
			if err != nil {
				t.Error(err)
			}
			heard += len(sound.PCM)
		}
		if heard == 0 {
			t.Error("no sound")
		}
		open := s.Open()
		for end := time.Now().Add(5 * time.Second); again == 0 && s.Open() == open && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond) // until the service closes what is idle
		}
	}
}
