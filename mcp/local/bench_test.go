package local_test

import (
	"fmt"
	"testing"

	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
)

// BenchmarkOffers is what every look-up of a tool costs beside a device with 20 tools.
func BenchmarkOffers(b *testing.B) {
	s := local.New(local.Options{Music: local.NewMusic("data/music")})
	if err := s.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	d := standard()
	for i := range 16 {
		d.tools = append(d.tools, device("device", nil, fmt.Sprintf("self.thing_%d.set_state(value:integer:0:100)", i)).tools...)
	}
	box := router.New(router.Options{}, s, d)
	defer box.Close()
	b.ReportAllocs()
	for b.Loop() {
		box.Offers()
	}
}
