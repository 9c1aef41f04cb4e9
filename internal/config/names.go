package config

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// Names that people give are shown in lists and stand in paths of pages. Those in files are the owner's.
const (
	maxSectionName = 64 // characters
	maxServerName  = 40
)

// GoodSection reports whether a section of providers may have a name that somebody types.
func GoodSection(name string) bool {
	for _, r := range name {
		if r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return utf8.ValidString(name) && name != "" && utf8.RuneCountInString(name) <= maxSectionName && !slices.Contains([]string{"auto", NoChain, "add"}, name)
}

// GoodServer reports whether a server of tools may have a name that somebody types.
func GoodServer(name string) bool {
	for i, r := range name {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !plain && (i == 0 || r != '-' && r != '_' && r != '.') {
			return false
		}
	}
	return name != "" && len(name) <= maxServerName
}

// Named is a place of the settings below which people name things.
type Named struct {
	At   []string
	Good func(name string) bool
	Bad  string // id of a message
}

// NamedByPeople lists these places.
func NamedByPeople() []Named {
	return []Named{
		{[]string{"providers"}, GoodSection, "services/bad-name"},
		{[]string{"tools", "external", "mcpServers"}, GoodServer, "settings/bad-server-name"},
	}
}
