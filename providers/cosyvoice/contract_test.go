package cosyvoice

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/cosyvoice"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/transport"
)

func TestVoice(t *testing.T) {
	providertest.TestVoiceContract(t, providertest.Case{
		Kind: Kind(), Fake: fake.New, Reuses: true,
		Kinds:  map[servicetest.Fault][]providers.Kind{servicetest.WrongVoice: {providers.Unavailable}}, // it says "Internal Server Error" and nothing else
		Causes: map[servicetest.Fault][]transport.Cause{servicetest.WrongVoice: {transport.CauseUnknown}},
		Skip:   map[servicetest.Fault]string{servicetest.Closed: "samples that do not say how many they are may end anywhere"},
	})
}
