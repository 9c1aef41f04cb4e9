package fishspeech

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/fishspeech"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestVoice(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind.Type, func(t *testing.T) {
			providertest.TestVoiceContract(t, providertest.Case{
				Kind: kind, Fake: fake.New, Reuses: true, Skip: map[servicetest.Fault]string{servicetest.Closed: "sound that does not say how long it is may end anywhere"},
				Section: func(s *service.Section) { s.Voices = map[string]string{"": "ada"} },
			})
		})
	}
}
