package device

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"weak"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/lru"
	"xiaozhi/mcp"
)

// What a [ListCache] remembers of devices that are away.
const (
	maxRemembered      = 4096     // devices
	maxRememberedBytes = 32 << 20 // of all their lists, each counted whole
)

// ListCache holds the tool lists of devices once for all that have the same: a thousand speakers of
// one kind list the same tools, at 10 to 40 KiB each. It remembers the last complete list of each
// device, so that it is there when the device connects again (see Options.Device). Other lists are
// dropped when no device has them any more. A ListCache may be used at the same time; make it with
// [NewListCache].
type ListCache struct {
	last *lru.Cache[string, remembered] // by device
	// The SDK's client holds our name and version only: one serves all devices. It does not
	// log: our own reading of the wire does, with the device's name.
	peer *sdk.Client

	mu    sync.Mutex
	lists map[listKey]weak.Pointer[[]mcp.Tool]
}

// remembered is the last list of one device, and what it said of itself then.
type remembered struct {
	info  ServerInfo
	tools *[]mcp.Tool
}

// listKey is the fingerprint of a list. It is a cryptographic one, since
// devices are strangers and must not choose each other's tools.
type listKey [sha256.Size]byte

// NewListCache makes an empty cache. version is ours, for clientInfo.
func NewListCache(version string) *ListCache {
	return &ListCache{
		last:  lru.New[string, remembered](maxRemembered, maxRememberedBytes),
		lists: make(map[listKey]weak.Pointer[[]mcp.Tool]),
		peer: sdk.NewClient(&sdk.Implementation{Name: "xiaozhi", Version: version}, &sdk.ClientOptions{
			Capabilities: &sdk.ClientCapabilities{},
			// A device has no say in what we ask again. No KeepAlive: firmware refuses ping.
			MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		}),
	}
}

// Forget drops the list of a device.
func (c *ListCache) Forget(id string) { c.last.Remove(id) }

// share returns a list that is equal to tools, byte for byte, and must not be
// changed. It stays in the cache while a client holds the pointer.
func (c *ListCache) share(tools []mcp.Tool) *[]mcp.Tool {
	own := slices.Clone(tools) // without room to grow
	key := keyOf(own)
	c.mu.Lock()
	defer c.mu.Unlock()
	if shared := c.lists[key].Value(); shared != nil {
		return shared
	}
	maps.DeleteFunc(c.lists, func(_ listKey, list weak.Pointer[[]mcp.Tool]) bool { return list.Value() == nil })
	c.lists[key] = weak.Make(&own)
	return &own
}

// keyOf takes in everything that a Tool holds.
func keyOf(tools []mcp.Tool) (key listKey) {
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

// remember keeps a device's list for its next connection, and reports whether it is another than before. An empty id
// remembers nothing.
func (c *ListCache) remember(id string, info ServerInfo, tools *[]mcp.Tool) (other bool) {
	if id == "" {
		return false
	}
	old, _ := c.last.Peek(id)
	const fixed = 256 // bytes of one tool, its hints included
	weight := 0
	for _, t := range *tools {
		weight += fixed + len(t.Name) + len(t.Description) + len(t.Schema)
	}
	c.last.Put(id, remembered{info, tools}, weight)
	return old != remembered{info, tools}
}
