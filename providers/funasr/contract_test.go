package funasr

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/funasr"
	"xiaozhi/providers/providertest"
)

func TestContract(t *testing.T) {
	const came = "the one answer has come"
	for name, c := range map[string]providertest.Case{
		"2pass":  {Fake: fake.New},
		"python": {Fake: func(tb testing.TB) *servicetest.Server { return fake.Serve(tb, fake.Python) }},
		"offline": {
			Fake: func(tb testing.TB) *servicetest.Server { return fake.Serve(tb, fake.Offline) }, Uploads: true,
			Skip: map[servicetest.Fault]string{servicetest.Cut: came, servicetest.Closed: came, servicetest.Huge: came},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.Kind = Kind()
			providertest.TestRecogniserContract(t, c)
		})
	}
}
