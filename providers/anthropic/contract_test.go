package anthropic

import (
	"testing"

	fake "xiaozhi/internal/servicetest/anthropic"
	"xiaozhi/providers/providertest"
)

func TestContract(t *testing.T) {
	providertest.TestModelContract(t, providertest.Case{Kind: Kind(), Fake: fake.New, Reuses: true})
}
