package config

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Recording configures whose sound of turns is kept, beside what single devices and agents say.
type Recording struct {
	Sound string `koanf:"sound"` // off, user or both
	Days  int    `koanf:"days"`  // that it is kept
	Quota Size   `koanf:"quota"` // of all files; the oldest make room
}

// Whose sound of a turn is kept.
const (
	RecordOff  = "off"
	RecordUser = "user"
	RecordBoth = "both"
)

func records() []string { return []string{RecordOff, RecordUser, RecordBoth} }

// Recorded lists the keys by which sound is recorded, empty if it never is.
func (c *Config) Recorded() (keys []string) {
	on := func(says string, at ...string) {
		if says != "" && says != RecordOff {
			keys = append(keys, keyName(at)+": "+says)
		}
	}
	on(c.Recording.Sound, "recording", "sound")
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		on(c.Agents[name].Record, "agents", name, "record")
	}
	for _, id := range slices.Sorted(maps.Keys(c.Devices.ByID)) {
		on(c.Devices.ByID[id].Record, "devices", id, "record")
	}
	return keys
}

func (ch checker) checkRecording(c *Config) {
	ch.checkRecord(c, c.Recording.Sound, "recording", "sound")
	within(ch, c.Recording.Days, 1, 3650, "recording", "days")
	if c.Recording.Quota < 1<<20 {
		ch.bad(key("recording", "quota"), "config/quota")
	}
	for _, id := range slices.Sorted(maps.Keys(c.Devices.ByID)) {
		ch.checkRecord(c, c.Devices.ByID[id].Record, "devices", id, "record")
	}
}

// checkRecord checks what a key says about whose sound is kept; "" is nothing.
func (ch checker) checkRecord(c *Config, says string, at ...string) {
	switch {
	case says == "" || says == RecordOff:
	case !slices.Contains(records(), says):
		ch.oneOf(says, records(), at...)
	case c.Store.Driver == "none":
		ch.bad(at, "config/record-no-store")
	}
}

// Size is a number of bytes. In a file it may have a unit: 2GiB, 500 MB.
type Size int64

// unit is a unit of sizes, in lower case.
type unit struct {
	name  string
	bytes float64
}

// units are tried in their order: what is longer comes first.
func units() []unit {
	return []unit{
		{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
	}
}

// parseSize reads a size. false: it is none.
func parseSize(text string) (Size, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, u := range units() {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		bytes := n * u.bytes
		return Size(bytes), err == nil && bytes >= 0 && bytes < math.MaxInt64 && strings.Trim(number, "0123456789. ") == ""
	}
	return 0, false
}

// String writes the size with the largest unit that leaves a whole number.
func (s Size) String() string {
	for i, u := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if unit := Size(1) << (40 - 10*i); s >= unit && s%unit == 0 {
			return strconv.FormatInt(int64(s/unit), 10) + u
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

func (r reader) size(n *yaml.Node, path []string) (any, bool) {
	if s, ok := parseSize(n.Value); ok && n.Kind == yaml.ScalarNode {
		return int64(s), true
	}
	return r.wrong(n, path, "config/a-size")
}
