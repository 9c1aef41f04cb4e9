package timezone

import (
	"slices"
	"sync"
	"testing"
	"time"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestZone: who asks gets the zone that was set last, while others set it.
func TestZone(t *testing.T) {
	berlin, shanghai := zone(t, "Europe/Berlin"), zone(t, "Asia/Shanghai")
	z := New(shanghai)
	if z.Location() != shanghai {
		t.Errorf("it begins as %v", z.Location())
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				z.Set(berlin)
				if z.Location() != berlin {
					t.Error("what was set does not count")
					return
				}
			}
		})
	}
	all.Wait()
}

func TestLoad(t *testing.T) {
	for name, there := range map[string]bool{"Asia/Shanghai": true, "Etc/GMT+5": true, "": true, "Local": false, "Mars/Olympus": false, "../etc/passwd": false, "/etc/localtime": false, "CEST": false} {
		if z, err := Load(name); (err == nil) != there || there && name != "" && z.String() != name {
			t.Errorf("%q: %v, %v", name, z, err)
		}
	}
	if z, err := Load(""); err != nil || !agree(z, time.Local) {
		t.Errorf("the machine's own is %v, %v", z, err)
	}
}

// TestNamed: the machine's zone has the name of the first source that tells one which fits its clock.
func TestNamed(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for want, names := range map[string][]string{
		"Europe/Berlin": {"", "/usr/share/zoneinfo/Europe/Berlin"},
		"Europe/Paris":  {":Europe/Paris", "Europe/Berlin\n"}, // the clocks of both show the same
		"Europe/Rome":   {"Asia/Shanghai", "", "Europe/Rome\n"},
	} {
		if got := named(berlin, names...).String(); got != want {
			t.Errorf("of %q: %s, want %s", names, got, want)
		}
	}
	odd := time.FixedZone("Local", 17*60)
	if got := named(odd, "Europe/Berlin"); got != odd {
		t.Errorf("a zone without a name is %v", got)
	}
	if got := named(time.FixedZone("Local", 0)).String(); got != "UTC" {
		t.Errorf("a machine without a zone has %s", got)
	}
}

// TestNames: each zone that is offered loads, and the list is in order.
func TestNames(t *testing.T) {
	all := Names()
	for _, name := range all {
		if _, err := Load(name); err != nil {
			t.Error(err)
		}
	}
	if len(all) < 400 || !slices.IsSorted(all) || !slices.Contains(all, "Asia/Shanghai") {
		t.Errorf("%d zones", len(all))
	}
}

func TestNear(t *testing.T) {
	for typed, want := range map[string]string{
		"Asia/Shangai": "Asia/Shanghai", "asia/shanghai": "Asia/Shanghai", "Berlin": "Europe/Berlin", "new york": "America/New_York", "utc": "UTC",
		"Mars/Olympus": "", "": "", "x": "",
	} {
		if got := Near(typed); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}
