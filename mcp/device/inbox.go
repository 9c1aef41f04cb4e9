package device

import (
	"bytes"
	"encoding/json"
	"sync/atomic"

	"xiaozhi/mcp/rawjson"
)

// inbox holds the payloads that wait for the session: at most maxQueue of them,
// of at most maxQueued bytes.
type inbox struct {
	payloads chan *json.RawMessage // never closed. Pointers, for most of these queues lie idle
	bytes    atomic.Int64          // in payloads
}

// put takes a copy of payload; false: there is no room for it. It never waits.
func (b *inbox) put(payload json.RawMessage) bool {
	size := int64(len(payload))
	if size > rawjson.MaxSize {
		return false
	}
	if b.bytes.Add(size) <= maxQueued {
		own := json.RawMessage(bytes.Clone(payload))
		select {
		case b.payloads <- &own:
			return true
		default:
		}
	}
	b.bytes.Add(-size)
	return false
}

// taken notes that payload, which came from payloads, is no longer waiting.
func (b *inbox) taken(payload *json.RawMessage) { b.bytes.Add(-int64(len(*payload))) }
