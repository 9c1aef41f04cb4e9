package catalog

import (
	"context"
	"strings"
	"testing"
)

// What a tool may do without a yes follows its server, though the tool looks as before: trust that is taken back, hints
// that are, and another server in its place.
func TestTrustTakenBack(t *testing.T) {
	yes, me := true, Caller{Owner: true, Language: "en"}
	for what, change := range map[string]func(*Tool){
		"trust":    func(o *Tool) { o.Trusted = false },
		"server":   func(o *Tool) { o.Source, o.Trusted = "external:other", false },
		"its hint": func(o *Tool) { o.Annotations.Destructive = &yes },
	} {
		s := newShop(t)
		tool := Tool{Stream: "shop", Name: "order", Source: "external:shop", Trusted: true, Foreign: true, Run: func(context.Context, map[string]any) (any, error) { return "done", nil }}
		set := func() {
			p := &Part{}
			if err := p.AddTool(tool); err != nil {
				t.Fatal(err)
			}
			s.SetChanged(map[string]*Part{PartShared: p})
		}
		set()
		if got, err := s.run(t, me, "shop.order"); got != "done" || err != nil {
			t.Errorf("%s: before: %q, %v", what, got, err)
		}
		change(&tool)
		set()
		if got, err := s.run(t, me, "shop.order"); !strings.Contains(got, "consent") || err != nil {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	one := Tool{Name: "x", Source: "external:lamp-2", Entry: "lamp", Run: says("", "x", "").Run}
	if e, err := one.entry(); err != nil || e.tool.Entry != "lamp" {
		t.Errorf("the gate is not told of the token: %v", err)
	}
}
