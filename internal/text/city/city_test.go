package city

import (
	"testing"
	"time"

	"xiaozhi/internal/text"
)

// TestPlaces: every zone is one, and every name means one place.
func TestPlaces(t *testing.T) {
	now := time.Date(2026, 11, 24, 7, 4, 0, 0, time.UTC)
	seen := map[string]bool{}
	for _, name := range Names() {
		if seen[text.Bare(name)] && name != "xian" && name != "hongkong" {
			t.Errorf("%s is there twice", name)
		}
		seen[text.Bare(name)] = true
		p, ok := Find(name)
		if !ok || len(p.Times(now, text.English)) != len(p.zones) || p.Name(text.English) == "" || p.Name(text.Chinese) == "" {
			t.Errorf("%s: %+v, %v", name, p, ok)
		}
	}
	for name, want := range map[string]string{"New York": "02:04", "纽约": "02:04", "tokyo": "16:04", "the uk": "07:04", "德里": "12:34"} {
		p, ok := Find(name)
		if !ok || p.Times(now, text.English)[0].Time.Format("15:04") != want {
			t.Errorf("%s: %+v", name, p)
		}
	}
	usa, _ := Find("美国")
	if all := usa.Times(now, text.Chinese); len(all) != 2 || all[0].City != "纽约" || all[1].City != "洛杉矶" || all[1].Time.Hour() != 23 {
		t.Errorf("%+v", all)
	}
	if p, _ := Find("the uk"); p.Name(text.English) != "the UK" || p.Name(text.Chinese) == "" {
		t.Errorf("%+v", p)
	}
	if p, ok := Find("atlantis"); ok {
		t.Errorf("%+v", p)
	}
}
