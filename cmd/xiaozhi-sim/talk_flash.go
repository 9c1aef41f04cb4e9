package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// flash is the file in which the simulated speaker keeps its tokens while it is off: one for each server and
// Device-Id. An empty path keeps nothing.
type flash string

// defaultFlash is in the person's folder of settings, if there is one.
func defaultFlash() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "xiaozhi", "speaker.json")
}

// read returns all tokens. No file is none yet.
func (f flash) read() (map[string]string, error) {
	tokens := map[string]string{}
	if f == "" {
		return tokens, nil
	}
	raw, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return tokens, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &tokens)
	}
	return tokens, err
}

// keep stores the token of a key, for the person's eyes only.
func (f flash) keep(key, token string) error {
	tokens, err := f.read()
	if err != nil || f == "" || tokens[key] == token {
		return err
	}
	tokens[key] = token
	raw, err := json.MarshalIndent(tokens, "", "  ")
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return err
	}
	whole, err := os.CreateTemp(filepath.Dir(string(f)), ".speaker-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = whole.Write(append(raw, '\n'))
	if err = errors.Join(err, whole.Close()); err == nil {
		err = os.Rename(whole.Name(), string(f))
	}
	if err != nil {
		_ = os.Remove(whole.Name())
	}
	return err
}
