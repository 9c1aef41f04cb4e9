package deepgram

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/deepgram"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

func TestRecognition(t *testing.T) {
	for _, model := range []string{"nova-3", "flux-general-en"} {
		t.Run(model, func(t *testing.T) {
			providertest.TestRecogniserContract(t, providertest.Case{
				Kind: Kind(), Fake: fake.New,
				Section: func(s *service.Section) { s.Models = map[service.Role]string{service.ASR: model} },
				Skip:    map[servicetest.Fault]string{servicetest.WrongVoice: "a fault of voices"},
			})
		})
	}
}

func TestVoice(t *testing.T) {
	providertest.TestVoiceContract(t, providertest.Case{
		Kind: Kind(), Fake: fake.New, Reuses: true,
		Section: func(s *service.Section) { s.Voices = map[string]string{"": "aura-2-thalia-en"} },       // the contract speaks Chinese
		Causes:  map[servicetest.Fault][]transport.Cause{servicetest.WrongVoice: {transport.CauseModel}}, // which a voice is
		Skip: map[servicetest.Fault]string{
			servicetest.Parts: "a fault of recognition", servicetest.Late: "a fault of recognition",
			servicetest.Closed: "a body of bare samples that ends too early is not known from a whole one",
		},
	})
}
