package sherpaserver

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/sherpaserver"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestContract(t *testing.T) {
	for name, c := range map[string]providertest.Case{
		"streaming": {Fake: fake.New},
		"python":    {Fake: fake.NewPython},
		"offline": {Fake: fake.NewOffline, Uploads: true, Section: func(s *service.Section) {
			s.Settings = map[string]any{"mode": "offline"}
		}, Skip: map[servicetest.Fault]string{
			servicetest.Cut: "the one answer has come", servicetest.Closed: "the one answer has come", servicetest.Huge: "the one answer has come",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Kind = Kind()
			providertest.TestRecogniserContract(t, c)
		})
	}
}
