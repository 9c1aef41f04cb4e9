package whispercpp

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/whispercpp"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/transport"
)

func TestContract(t *testing.T) {
	providertest.TestRecogniserContract(t, providertest.Case{
		Kind: Kind(), Fake: fake.New, Uploads: true, Reuses: true, Causes: map[servicetest.Fault][]transport.Cause{servicetest.RateLimited: {transport.CauseUnknown}},
		Kinds: map[servicetest.Fault][]providers.Kind{servicetest.RateLimited: {providers.Unavailable}}, // it is loading its model
	})
}
