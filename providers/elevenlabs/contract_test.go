package elevenlabs

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/elevenlabs"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestRecognition(t *testing.T) {
	providertest.TestRecogniserContract(t, providertest.Case{
		Kind: Kind(), Fake: fake.New,
		Skip: map[servicetest.Fault]string{servicetest.WrongVoice: "a fault of voices"},
	})
}

func TestVoice(t *testing.T) {
	skip := map[servicetest.Fault]string{
		servicetest.Parts: "a fault of recognition", servicetest.Late: "a fault of recognition", servicetest.Ends: "a fault of recognition",
	}
	t.Run("websocket", func(t *testing.T) {
		providertest.TestVoiceContract(t, providertest.Case{Kind: Kind(), Fake: fake.New, Skip: skip, Reuses: true, Keeps: true})
	})
	skip[servicetest.Closed] = "a body of bare samples that ends too early is not known from a whole one"
	t.Run("http", func(t *testing.T) {
		providertest.TestVoiceContract(t, providertest.Case{
			Kind: Kind(), Fake: fake.New, Skip: skip, Reuses: true,
			Section: func(s *service.Section) { s.Settings = map[string]any{"wire": "http"} },
		})
	})
}
