package azure

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/azure"
	"xiaozhi/providers/providertest"
)

func TestRecognition(t *testing.T) {
	providertest.TestRecogniserContract(t, providertest.Case{
		Kind: Kind(), Fake: fake.New,
		Skip: map[servicetest.Fault]string{
			servicetest.WrongVoice: "a fault of voices",
			servicetest.Ends:       "the service ends no turn of a conversation, and what was sent to a turn that has ended is lost",
		},
	})
}

func TestVoice(t *testing.T) {
	providertest.TestVoiceContract(t, providertest.Case{
		Kind: Kind(), Fake: fake.New, Reuses: true,
		Skip: map[servicetest.Fault]string{
			servicetest.Parts: "a fault of recognition", servicetest.Late: "a fault of recognition", servicetest.Ends: "a fault of recognition",
			servicetest.Closed: "a body of bare samples that ends too early is not known from a whole one",
		},
	})
}
