package aliyun

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/aliyun"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestRecognisersKeepTheContract(t *testing.T) {
	for _, model := range Kind().Models[service.ASR][:2] {
		t.Run(model, func(t *testing.T) {
			providertest.TestRecogniserContract(t, providertest.Case{
				Kind: Kind(), Fake: fake.New, Reuses: true,
				Skip: map[servicetest.Fault]string{servicetest.WrongVoice: "it is of the voices"},
				Section: func(s *service.Section) {
					s.Models, s.Settings = map[service.Role]string{service.ASR: model}, map[string]any{"pace": 20}
				},
			})
		})
	}
}

func TestVoicesKeepTheContract(t *testing.T) {
	for _, model := range []string{plain, flowing} {
		t.Run(model, func(t *testing.T) {
			providertest.TestVoiceContract(t, providertest.Case{
				Kind: Kind(), Fake: fake.New, Keeps: true,
				Section: func(s *service.Section) { s.Models = map[service.Role]string{service.TTS: model} },
			})
		})
	}
}
