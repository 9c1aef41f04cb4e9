package dashscope

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/dashscope"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestRecognisersKeepTheContract(t *testing.T) {
	for _, model := range []string{"fun-asr-realtime", "qwen3-asr-flash-realtime"} {
		t.Run(model, func(t *testing.T) {
			providertest.TestRecogniserContract(t, providertest.Case{
				Kind: Kind(), Fake: fake.New,
				Skip:    map[servicetest.Fault]string{servicetest.WrongVoice: "it is of the voices"},
				Section: func(s *service.Section) { s.Models = map[service.Role]string{service.ASR: model} },
			})
		})
	}
}

func TestQwenIsToldTheEnd(t *testing.T) {
	providertest.TestRecogniserContract(t, providertest.Case{
		Kind: Kind(), Fake: fake.New, Uploads: true,
		Skip: map[servicetest.Fault]string{servicetest.WrongVoice: "it is of the voices", servicetest.Parts: "it cuts nothing by itself"},
		Section: func(s *service.Section) {
			s.Models = map[service.Role]string{service.ASR: "qwen3-asr-flash-realtime"}
			s.Settings = map[string]any{"turn_detection": noTurns}
		},
	})
}

func TestVoicesKeepTheContract(t *testing.T) {
	for _, model := range []string{"cosyvoice-v2", "qwen3-tts-flash-realtime", "qwen3-tts-flash"} {
		t.Run(model, func(t *testing.T) {
			providertest.TestVoiceContract(t, providertest.Case{
				Kind: Kind(), Fake: fake.New, Reuses: model != "qwen3-tts-flash-realtime", Keeps: model != "qwen3-tts-flash-realtime",
				Section: func(s *service.Section) { s.Models = map[service.Role]string{service.TTS: model} },
			})
		})
	}
}
