package doubaodialogue

import (
	"testing"

	fake "xiaozhi/internal/servicetest/doubaodialogue"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/volcframe"
)

func TestContract(t *testing.T) {
	providertest.TestDuplexContract(t, providertest.Case{Kind: Kind(), Fake: fake.New})
}

func FuzzEvent(f *testing.F) {
	f.Add(int32(eventASR), []byte(`{"results":[{"text":"x","is_interim":true}]}`))
	f.Add(int32(eventChat), []byte(`{"content":"x"}`))
	f.Add(int32(volcframe.EventTTSResponse), []byte{1})
	f.Fuzz(func(_ *testing.T, event int32, b []byte) {
		_, _ = (&wire{asked: true}).take(volcframe.Frame{Event: event, Payload: b})
	})
}
