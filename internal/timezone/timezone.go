// Package timezone owns the time zone of the server, and knows which zones there are.
package timezone

import (
	_ "embed"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
	_ "time/tzdata" // zones must load on machines without a database

	"xiaozhi/prompts"
)

// Zone is the time zone in which a server tells times. Who tells one asks for it each time, as it is replaced when the
// settings change. Its methods may be called at the same time.
type Zone struct{ now atomic.Pointer[time.Location] }

// New returns a zone that begins as at.
func New(at *time.Location) *Zone {
	z := &Zone{}
	z.Set(at)
	return z
}

// Location returns the zone as it is now.
func (z *Zone) Location() *time.Location { return z.now.Load() }

// Set puts another one in its place. What was set before keeps its moment.
func (z *Zone) Set(at *time.Location) { z.now.Store(at) }

// Load returns the zone of an IANA name; "" is the machine's own. Local is refused: it means another zone on each machine.
func Load(name string) (*time.Location, error) {
	switch name {
	case "":
		return Machine(), nil
	case "Local":
		return nil, fmt.Errorf("unknown time zone %s", name)
	}
	return time.LoadLocation(name)
}

// Machine returns the machine's own zone, under its IANA name where the machine tells it: that of [time.Local] is Local, which
// says nothing to people.
func Machine() *time.Location {
	link, _ := os.Readlink("/etc/localtime") // "" on a machine without one
	written, _ := os.ReadFile("/etc/timezone")
	return named(time.Local, os.Getenv("TZ"), link, string(written))
}

// named returns local under the first of the names that fits its clock. Names may be paths of the files of a database.
func named(local *time.Location, names ...string) *time.Location {
	for _, name := range append(names, "UTC") {
		name = strings.TrimSpace(strings.TrimPrefix(name, ":"))
		if _, in, is := strings.Cut(name, "zoneinfo/"); is {
			name = in
		}
		if zone, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" && agree(zone, local) {
			return zone
		}
	}
	return local
}

// agree reports whether the clocks of two zones show the same now and during the next year.
func agree(a, b *time.Location) bool {
	now := time.Now()
	for weeks := range 53 {
		at := now.AddDate(0, 0, 7*weeks)
		_, x := at.In(a).Zone()
		if _, y := at.In(b).Zone(); x != y {
			return false
		}
	}
	return true
}

//go:embed zones.txt
var zones string

// Names lists the zones that people choose from, by the alphabet. Old names that are not among them are zones as well.
func Names() []string { return strings.Fields(zones) }

// Near returns the name that was likely meant by one that is no zone: with another case or a slip, or just the city; "" if
// none comes near.
func Near(name string) string {
	if len(name) > 64 {
		return ""
	}
	typed, all := strings.ReplaceAll(strings.TrimSpace(name), " ", "_"), Names()
	for _, known := range all {
		if strings.EqualFold(typed, known) || strings.EqualFold(typed, known[strings.LastIndexByte(known, '/')+1:]) {
			return known
		}
	}
	if near, ok := prompts.Misspelt(typed, all); ok {
		return near
	}
	return ""
}
