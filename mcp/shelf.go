package mcp

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"weak"
)

// Shelf holds the tool lists of devices once for all that have the same: a
// thousand speakers of one kind list the same tools, at 10 to 40 KiB each. A
// list is forgotten when no device has it any more, and none that may come back
// (see ClientOptions.Device). A Shelf may be used at the same time; make it with
// NewShelf.
type Shelf struct {
	mu     sync.Mutex
	lists  map[shelfKey]weak.Pointer[[]Tool]
	memory memory
}

// shelfKey is the fingerprint of a list. It is a cryptographic one, since
// devices are strangers and must not choose each other's tools.
type shelfKey [sha256.Size]byte

// NewShelf makes an empty shelf.
func NewShelf() *Shelf {
	return &Shelf{lists: make(map[shelfKey]weak.Pointer[[]Tool]), memory: newMemory()}
}

// share gives a list that is equal to tools, byte for byte. Nobody may change
// it, and it stays on the shelf for as long as somebody holds the pointer. A
// nil shelf shares nothing.
func (s *Shelf) share(tools []Tool) *[]Tool {
	own := slices.Clone(tools) // without room to grow
	if s == nil {
		return &own
	}
	key := keyOf(own)
	s.mu.Lock()
	defer s.mu.Unlock()
	if shared := s.lists[key].Value(); shared != nil {
		return shared
	}
	maps.DeleteFunc(s.lists, func(_ shelfKey, list weak.Pointer[[]Tool]) bool { return list.Value() == nil })
	s.lists[key] = weak.Make(&own)
	return &own
}

// keyOf takes in everything that a Tool holds.
func keyOf(tools []Tool) (key shelfKey) {
	hash := sha256.New()
	for _, t := range tools {
		hints, err := json.Marshal(t.Annotations)
		if err != nil {
			panic(err) // booleans and strings always have a JSON form
		}
		fmt.Fprintf(hash, "%q %q %q %q %q %q %q %q\n", t.Name, t.Description, []byte(t.Schema), t.Origin, t.Kind, hints, t.Source, t.Stream)
	}
	hash.Sum(key[:0])
	return key
}
