package cartesia

import (
	"testing"

	fake "xiaozhi/internal/servicetest/cartesia"
	"xiaozhi/providers/providertest"
)

func TestVoice(t *testing.T) {
	providertest.TestVoiceContract(t, providertest.Case{Kind: Kind(), Fake: fake.New, Reuses: true, Keeps: true})
}
