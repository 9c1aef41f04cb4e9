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
