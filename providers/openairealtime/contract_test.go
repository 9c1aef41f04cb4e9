package openairealtime

import (
	"testing"

	fake "xiaozhi/internal/servicetest/openairealtime"
	"xiaozhi/internal/servicetest/qwenomni"
	"xiaozhi/providers/providertest"
)

func TestOpenAIContract(t *testing.T) {
	providertest.TestDuplexContract(t, providertest.Case{Kind: Kinds()[ga], Fake: fake.New, Truncates: `"audio_end_ms":20`})
}

func TestQwenContract(t *testing.T) {
	providertest.TestDuplexContract(t, providertest.Case{Kind: Kinds()[beta], Fake: qwenomni.New})
}
