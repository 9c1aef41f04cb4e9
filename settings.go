// Package xiaozhi holds the settings that the program comes with, as a file.
package xiaozhi

import _ "embed"

//go:embed config.yaml
var settings []byte

// Settings returns config.yaml as it is shipped: every key with its default, and what it means in both languages.
func Settings() []byte { return settings }
