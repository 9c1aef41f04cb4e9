package gemini

import (
	"testing"

	fake "xiaozhi/internal/servicetest/gemini"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestContract(t *testing.T) {
	providertest.TestModelContract(t, providertest.Case{Kind: Kind(), Fake: fake.New, Reuses: true, Section: func(s *service.Section) { s.BaseURL += "/v1beta" }})
}
