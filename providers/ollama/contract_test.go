package ollama

import (
	"testing"

	fake "xiaozhi/internal/servicetest/ollamanative"
	"xiaozhi/providers/providertest"
)

func TestContract(t *testing.T) {
	providertest.TestModelContract(t, providertest.Case{Kind: Kind(), Fake: fake.New, Reuses: true})
}
