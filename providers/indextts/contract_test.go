package indextts

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/indextts"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestVoice(t *testing.T) {
	skip := map[string]map[servicetest.Fault]string{
		"as it is": {servicetest.Huge: "the file says how long it is, and no more of it is read"},
		"patched":  {servicetest.Closed: "samples that do not say how many they are may end anywhere"},
	}
	for name, make := range map[string]func(testing.TB) *servicetest.Server{"as it is": fake.New, "patched": fake.Patched} {
		t.Run(name, func(t *testing.T) {
			providertest.TestVoiceContract(t, providertest.Case{
				Kind: Kind(), Fake: make, Reuses: true, Skip: skip[name],
				Section: func(s *service.Section) { s.Voices = map[string]string{"": "ada"} },
			})
		})
	}
}
