package gptsovits

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/gptsovits"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestVoice(t *testing.T) {
	skip := map[string]map[servicetest.Fault]string{
		"v2": {servicetest.Closed: "a file that does not say how long it is may end anywhere"},
	}
	for _, api := range []string{"v2", "v1"} {
		t.Run(api, func(t *testing.T) {
			providertest.TestVoiceContract(t, providertest.Case{
				Kind: Kind(), Fake: fake.New, Reuses: true, Skip: skip[api],
				Section: func(s *service.Section) {
					s.Settings, s.Voices = map[string]any{"api": api}, map[string]string{"": "ref.wav|some words|zh"}
				},
			})
		})
	}
}
