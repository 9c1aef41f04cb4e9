package config

import (
	"slices"
	"strings"
	"testing"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "1048576": 1 << 20, "2GiB": 2 << 30, " 500 mib ": 500 << 20, "1.5GiB": 3 << 29, "2gb": 2e9, "10 KB": 10000, "7b": 7, "1TiB": 1 << 40, "3tb": 3e12,
	} {
		if got, ok := parseSize(text); !ok || got != want {
			t.Errorf("%q: %d %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1e3", "1,5GiB", "2 gigs", "0x10", "inf", "nan", "99999999999TiB", "1 2", "1.2.3"} {
		if got, ok := parseSize(text); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
	for size, want := range map[Size]string{0: "0", 1000: "1000", 2 << 30: "2GiB", 1536: "1536", 512 << 20: "512MiB", 1 << 40: "1TiB"} {
		if got := size.String(); got != want {
			t.Errorf("%d is %q, want %q", size, got, want)
		}
		if back, ok := parseSize(size.String()); !ok || back != size {
			t.Errorf("%d came back as %d", size, back)
		}
	}
}

func FuzzSize(f *testing.F) {
	f.Add("2GiB")
	f.Fuzz(func(t *testing.T, text string) {
		if s, ok := parseSize(text); ok {
			if back, ok := parseSize(s.String()); !ok || back != s || s < 0 {
				t.Errorf("%q is %d, which is written %q", text, s, s)
			}
		}
	})
}

// TestRecorded: what switches recording on is named, and off is the default.
func TestRecorded(t *testing.T) {
	c := Default()
	if on := c.Recorded(); len(on) > 0 {
		t.Errorf("by default: %q", on)
	}
	c.Agents["anna"], c.Agents["bert"] = Persona{Record: "both"}, Persona{Record: "off"}
	c.Devices.ByID["d"] = Device{Record: "user"}
	c.Recording.Sound = "user"
	if on := c.Recorded(); !slices.Equal(on, []string{"recording.sound: user", "agents.anna.record: both", "devices.d.record: user"}) {
		t.Errorf("%q", on)
	}
}

// TestAgentRecords: an agent that people make says it as one of a file does, and where no turns are kept it may not.
func TestAgentRecords(t *testing.T) {
	c := Default()
	for doc, want := range map[string]string{`{"record":"both"}`: "", `{"record":"off"}`: "", `{"record":"always"}`: "agents.x.record: "} {
		if _, err := c.ReadAgent("x", []byte(doc), nil); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", doc, err)
		}
	}
	c.Store.Driver = "none"
	if _, err := c.ReadAgent("x", []byte(`{"record":"user"}`), nil); err == nil || !strings.Contains(err.Error(), "keeps no turns") {
		t.Error(err)
	}
	if _, err := c.ReadAgent("x", []byte(`{"record":"off"}`), nil); err != nil {
		t.Error(err)
	}
}
