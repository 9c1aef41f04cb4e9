package geminilive

import (
	"testing"

	fake "xiaozhi/internal/servicetest/geminilive"
	"xiaozhi/providers/providertest"
)

func TestContract(t *testing.T) {
	providertest.TestDuplexContract(t, providertest.Case{Kind: Kind(), Fake: fake.New})
}

func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"AAA="}}]},"turnComplete":true}}`,
		`{"toolCall":{"functionCalls":[{"id":"a","name":"b","args":{}}]}}`, `{"error":5}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = (&wire{open: true}).take(b) })
}
