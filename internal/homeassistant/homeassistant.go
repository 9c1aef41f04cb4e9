// Package homeassistant reads what people set on the page of the app in Home Assistant (deploy/homeassistant), which its
// supervisor hands over as /data/options.json, as the environment that a server elsewhere would have.
package homeassistant

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"xiaozhi/internal/text/message"
)

// limit is how large the file of options may be, in bytes.
const limit = 64 << 10

// variables are what the options stand for, by name. An option that is empty is not set.
var variables = map[string]string{
	"language":          "XIAOZHI_SERVER__LANGUAGE",
	"timezone":          "XIAOZHI_SERVER__TIMEZONE",
	"pairing":           "XIAOZHI_AUTH__PAIRING",
	"log_level":         "XIAOZHI_LOG__LEVEL",
	"deepseek_api_key":  "DEEPSEEK_API_KEY",
	"dashscope_api_key": "DASHSCOPE_API_KEY",
	"openai_api_key":    "OPENAI_API_KEY",
}

// more is the option with all other variables.
const more = "environment"

// Options returns the names of all options, sorted.
func Options() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(variables)), more)))
}

// variable is the name of one: no other way to run something than by the server's own settings is handed on.
var variable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// Environment reads a file of options and returns NAME=value for each that is set, in the order of their names, what is
// listed under environment last. An error names the option, never its value.
func Environment(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	env, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return env, nil
}

func parse(text []byte) ([]string, error) {
	if len(text) > limit {
		return nil, errors.New(message.Both("homeassistant/large", limit))
	}
	var options map[string]json.RawMessage
	if err := json.Unmarshal(text, &options); err != nil || options == nil {
		return nil, errors.New(message.Both("homeassistant/no-object"))
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if name == more {
			continue
		}
		to, ok := variables[name]
		if !ok {
			return nil, errors.New(message.Both("homeassistant/unknown", name, strings.Join(Options(), ", ")))
		}
		var value string
		if json.Unmarshal(options[name], &value) != nil || strings.ContainsRune(value, 0) {
			return nil, errors.New(message.Both("homeassistant/no-text", name))
		}
		if value != "" {
			env = append(env, to+"="+value)
		}
	}
	others, err := listed(options[more])
	return append(env, others...), err
}

// listed are the variables that stand under environment.
func listed(text json.RawMessage) ([]string, error) {
	if text == nil {
		return nil, nil
	}
	var entries []struct{ Name, Value *string }
	if json.Unmarshal(text, &entries) != nil {
		return nil, errors.New(message.Both("homeassistant/no-list", more))
	}
	var env []string
	for i, e := range entries {
		switch {
		case e.Name == nil || !variable.MatchString(*e.Name):
			return nil, errors.New(message.Both("homeassistant/no-name", more, i+1))
		case e.Value == nil || strings.ContainsRune(*e.Value, 0):
			return nil, errors.New(message.Both("homeassistant/no-text", *e.Name))
		}
		env = append(env, *e.Name+"="+*e.Value)
	}
	return env, nil
}
