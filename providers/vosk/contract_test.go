package vosk

import (
	"testing"

	fake "xiaozhi/internal/servicetest/vosk"
	"xiaozhi/providers/providertest"
)

func TestContract(t *testing.T) {
	providertest.TestRecogniserContract(t, providertest.Case{Kind: Kind(), Fake: fake.New})
}
