package fleet

import (
	"errors"
	"strings"
	"testing"
)

// TestMeant: an address means those that it names, and nobody else.
func TestMeant(t *testing.T) {
	all := []Device{
		{ID: "24:6f:28:aa:10:01", Name: "Kitchen", Agent: "default", Known: true}, {ID: "24:6f:28:aa:10:02", Name: "Hall", Agent: "grandma", Known: true},
		{ID: "24:6f:28:aa:10:03", Name: "Hall", Agent: "Grandma", Known: true}, {ID: "24:6f:28:aa:10:04", Name: "Door"},
		{ID: "page-1", Name: "Page", Agent: "default", Known: true, Browser: true}, {ID: "group:x", Name: "Odd", Known: true},
	}
	groups := func(id string) []string {
		return map[string][]string{"24:6f:28:aa:10:01": {"Upstairs"}, "24:6f:28:aa:10:02": {"upstairs", "kids"}, "24:6f:28:aa:10:04": {"upstairs"}, "page-1": {"kids"}}[id]
	}
	for to, want := range map[string]string{
		"24:6F:28:AA:10:01": "01", "246f28aa1002": "02", " kitchen ": "01", "hall": "several", "door": "nobody", "24:6f:28:aa:10:04": "nobody", "cellar": "nobody", "": "nobody",
		"all": "01 02 03 :x", "ALL": "01 02 03 :x", "group:upstairs": "01 02", "group:Kids": "02", "group:grandma": "02 03", "agent:grandma": "02 03", "agent:default": "01",
		"group:": "nobody", "agent:nobody": "nobody", "page-1": "-1", "Page": "nobody", "group:x": "nobody",
	} {
		meant, err := Meant(to, all, groups)
		got := ""
		for _, d := range meant {
			got += " " + d.ID[len(d.ID)-2:]
		}
		switch {
		case errors.Is(err, ErrNobody):
			got = "nobody"
		case errors.Is(err, ErrSeveral):
			got = "several"
		}
		if got = strings.TrimSpace(got); got != want {
			t.Errorf("%q: %q, want %q", to, got, want)
		}
	}
}
