package edge

import (
	"testing"

	fake "xiaozhi/internal/servicetest/edge"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestContract(t *testing.T) {
	for _, format := range []string{"mp3", "opus"} {
		t.Run(format, func(t *testing.T) {
			providertest.TestVoiceContract(t, providertest.Case{
				Kind: Kind(), Fake: fake.New,
				Section: func(s *service.Section) { s.Format, s.Voices = format, map[string]string{"": "xx-XX-NobodyNeural"} },
			})
		})
	}
}
