package generation

import (
	"bytes"
	"net/http"
	"sync"
)

// Memory remembers which keys of a request a server does not take for a model, for as long
// as the program runs. Its zero value is empty. It may be used by any number of goroutines
// at once.
type Memory struct {
	mu   sync.Mutex
	keys map[string]bool
}

// Has reports whether something was learned.
func (m *Memory) Has(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keys[key]
}

// Drop takes what was refused out of a body.
func (m *Memory) Drop(body map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.keys {
		delete(body, key)
	}
}

// Note remembers something, and reports whether it is new.
func (m *Memory) Note(what string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys[what] {
		return false
	}
	if m.keys == nil {
		m.keys = map[string]bool{}
	}
	m.keys[what] = true
	return true
}

// Learn notes which of the keys a refusal names, and reports whether any is new. own are
// the keys that the user has set: they stay, so that he sees what is wrong with them.
func (m *Memory) Learn(status int, said []byte, own map[string]any, keys ...string) bool {
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		return false
	}
	learned := false
	for _, key := range keys {
		if _, set := own[key]; !set && Names(said, key) {
			learned = m.Note(key) || learned
		}
	}
	return learned
}

// Names reports whether a text names a key, as a whole word.
func Names(said []byte, key string) bool {
	for from := 0; ; {
		i := bytes.Index(said[from:], []byte(key))
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(key)
		if (start == 0 || !inWord(said[start-1])) && (end == len(said) || !inWord(said[end])) {
			return true
		}
		from = end
	}
}

func inWord(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}
