package wyoming

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/wyoming"
	"xiaozhi/providers/providertest"
)

func TestContract(t *testing.T) {
	t.Run("recogniser", func(t *testing.T) {
		providertest.TestRecogniserContract(t, providertest.Case{
			Kind: Kind(), Fake: fake.New, Skip: map[servicetest.Fault]string{servicetest.WrongVoice: "it is of voices"}, Uploads: true,
		})
	})
	t.Run("voice", func(t *testing.T) {
		providertest.TestVoiceContract(t, providertest.Case{
			Kind: Kind(), Fake: fake.New, Skip: map[servicetest.Fault]string{servicetest.WrongModel: "it is of recognisers"},
		})
	})
}
