package identity

import (
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	const mac = "24:6f:28:aa:10:02"
	for _, said := range []string{
		"24:6f:28:aa:10:02", "24:6F:28:AA:10:02", "24-6f-28-aa-10-02", "24-6F-28-AA-10-02", "246f28aa1002", "246F28AA1002",
		"246f.28aa.1002", "246F:28AA:1002", "24 6f 28 aa 10 02", "24_6f_28_aa_10_02", " 24:6f:28:aa:10:02\t", "246f28-aa1002",
		"24:6f:28:aa:10:2", "24:6f:28:AA:10:02:", "24::6f:28:aa:10:02",
	} {
		if got := Canonical(said); got != mac {
			t.Errorf("%q is %q", said, got)
		}
	}
	for said, want := range map[string]string{
		"":                        "",
		"Kitchen":                 "kitchen",
		"24:6f:28:aa:10":          "24:6f:28:aa:10",
		"24:6f:28:aa:10:02:03":    "24:6f:28:aa:10:02:03",
		"24:6f:28:aa:10:0g":       "24:6f:28:aa:10:0g",
		"24:6f:28:aa:10:02~0a1b":  "24:6f:28:aa:10:02_0a1b", // nobody names himself like a stranger
		"web_test_client":         "web_test_client",
		"24;6f;28;aa;10;02":       "24;6f;28;aa;10;02",
		"0x246f28aa1002":          "0x246f28aa1002",
		"00:00:00:00:00:00":       "00:00:00:00:00:00",
		"1:2:3:4:5:6":             "01:02:03:04:05:06",
		"sim-001 with more words": "sim-001 with more words",
	} {
		if got := Canonical(said); got != want {
			t.Errorf("%q is %q, want %q", said, got, want)
		}
	}
}

func TestParseID(t *testing.T) {
	for typed, want := range map[string]string{
		"24-6F-28-AA-10-02":            "24:6f:28:aa:10:02",
		" 246F28AA1002~0A1B2C3D ":      "24:6f:28:aa:10:02~0a1b2c3d",
		"24:6f:28:aa:10:02~0a1b2c3d~x": "24:6f:28:aa:10:02~0a1b2c3d~x",
	} {
		if got := ParseID(typed); got != want {
			t.Errorf("%q is %q, want %q", typed, got, want)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{"24:6F:28:aa:10:02", "246f.28aa.1002", "a~b", "İ", "\xff~", "::::::", "4:F:8~a:0:0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		c := Canonical(id)
		if again := Canonical(c); again != c {
			t.Errorf("%q is %q and then %q", id, c, again)
		}
		if strings.Contains(c, mark) {
			t.Errorf("%q is %q, which is the id of a stranger", id, c)
		}
		if up := Canonical(strings.ToUpper(c)); up != c && strings.ToLower(strings.ToUpper(c)) == c {
			t.Errorf("%q and its upper case differ: %q", c, up)
		}
	})
}
