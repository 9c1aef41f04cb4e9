package tencent

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/tencent"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

func TestRecognisersKeepTheContract(t *testing.T) {
	for _, model := range []string{"16k_zh"} {
		t.Run(model, func(t *testing.T) {
			providertest.TestRecogniserContract(t, providertest.Case{
				Kind: Kind(), Fake: fake.New,
				Skip: map[servicetest.Fault]string{servicetest.WrongVoice: "it is of the voices"},
				Section: func(s *service.Section) {
					s.Models, s.Settings = map[service.Role]string{service.ASR: model}, map[string]any{"pace": 2.9}
				},
			})
		})
	}
}

func TestVoicesKeepTheContract(t *testing.T) {
	for _, model := range []string{""} {
		t.Run(model, func(t *testing.T) {
			providertest.TestVoiceContract(t, providertest.Case{
				Kind: Kind(), Fake: fake.New, Reuses: false, Causes: map[servicetest.Fault][]transport.Cause{servicetest.WrongModel: {transport.CauseVoice}},
				Section: func(s *service.Section) { s.Models = map[service.Role]string{service.TTS: model} },
			})
		})
	}
}
