// Package doctor says how the server is, what is wrong with it, and what to do.
package doctor

import (
	"cmp"
	"slices"

	"xiaozhi/internal/contact"
	"xiaozhi/internal/text"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // something is missing, or will go wrong
	Problem Level = "problem" // something does not work
)

// rank orders levels, the worst first.
func (l Level) rank() int { return slices.Index([]Level{Problem, Warning, OK}, l) }

// Compare orders levels, [OK] first.
func (l Level) Compare(other Level) int { return cmp.Compare(other.rank(), l.rank()) }

// Area is a part of the server.
type Area string

// The areas, in the order in which they are shown.
const (
	Addresses Area = "addresses"
	Ports     Area = "ports"
	Proxy     Area = "proxy"
	HTTPS     Area = "https"
	Clock     Area = "clock"
	Disk      Area = "disk"
	Speed     Area = "speed"
	Services  Area = "services"
	Store     Area = "store"
	Safety    Area = "safety"
	Program   Area = "program"
)

// Areas lists all areas in their order.
func Areas() []Area {
	return []Area{Addresses, Ports, Proxy, HTTPS, Clock, Disk, Speed, Services, Store, Safety, Program}
}

// Title names an area for people.
func (a Area) Title() contact.Why {
	return contact.Say(map[Area]string{
		Addresses: "doctor/area-addresses", Ports: "doctor/area-ports", Proxy: "doctor/area-proxy", HTTPS: "doctor/area-https", Clock: "doctor/area-clock", Disk: "doctor/area-disk",
		Speed: "doctor/area-speed", Services: "doctor/area-services", Store: "doctor/area-store", Safety: "doctor/area-safety", Program: "doctor/area-program",
	}[a])
}

// Finding is one thing that was looked at: what is so, and what to do.
type Finding struct {
	Area  Area        `json:"area"`
	Level Level       `json:"level"`
	What  contact.Why `json:"what"`
	Do    contact.Why `json:"do,omitzero"` // empty where all is well
}

// In returns both sentences of a finding in a language; do may be empty.
func (f Finding) In(lang text.Lang) (what, do string) { return f.What.In(lang), f.Do.In(lang) }

func ok(a Area, id string, args ...any) Finding {
	return Finding{Area: a, Level: OK, What: contact.Say(id, args...)}
}

// bad is a finding of something that is not well.
func bad(a Area, l Level, what, do contact.Why) Finding { return Finding{a, l, what, do} }

// Worst returns the worst level of findings.
func Worst(all []Finding) Level {
	worst := OK
	for _, f := range all {
		if f.Level.rank() < worst.rank() {
			worst = f.Level
		}
	}
	return worst
}

// sorted orders findings by area, and in it the worst first.
func sorted(all []Finding) []Finding {
	areas := Areas()
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(areas, a.Area), slices.Index(areas, b.Area)), cmp.Compare(a.Level.rank(), b.Level.rank()))
	})
	return all
}
