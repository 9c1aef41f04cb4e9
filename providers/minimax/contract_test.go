package minimax

import (
	"testing"

	fake "xiaozhi/internal/servicetest/minimax"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestVoicesKeepTheContract(t *testing.T) {
	for _, by := range []string{webSocket, plain} {
		t.Run(by, func(t *testing.T) {
			providertest.TestVoiceContract(t, providertest.Case{
				Kind: Kind(), Fake: fake.New, Reuses: true, Keeps: true,
				Section: func(s *service.Section) { s.Settings = map[string]any{"transport": by} },
			})
		})
	}
}
