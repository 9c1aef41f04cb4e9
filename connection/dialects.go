package connection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"xiaozhi/mcp/rawjson"
)

// methodRegister is the method that only the light dialect has.
const methodRegister = "mcp/registerTools"

// maxAsked is how many bare requests of a device are remembered until they are
// answered; the oldest is forgotten, and its answer goes in the envelope.
const maxAsked = 16

// dialects tells apart how a device speaks JSON-RPC, and frames what it is sent
// accordingly. There are two on one connection: the standard one (docs/protocol.md
// 5), where the server asks, and the light one (docs/mcp.md, Dialects), where the
// device registers its tools. Frames of either come bare or in the envelope of
// docs/protocol.md 5.1; answers go as the questions came. A device that registers
// and never says hello is sent nothing but JSON-RPC frames: it has no speaker.
// Its methods may be called at the same time.
type dialects struct {
	greeted atomic.Bool   // a hello was answered
	bare    atomic.Bool   // the light dialect goes without the envelope
	muted   atomic.Uint64 // the turn of which something was kept back, since there was no hello

	mu    sync.Mutex
	asked []string // ids of bare requests to be answered bare, at most maxAsked
}

// mutes reports whether a turn's ordinary messages and sound are kept from the
// device: it has said no hello, or said it in the middle of that turn.
func (d *dialects) mutes(turn uint64) bool {
	if !d.greeted.Load() {
		d.muted.Store(turn)
		return true
	}
	return turn != 0 && d.muted.Load() == turn
}

// rpc holds the members of a JSON-RPC payload that decide its way.
type rpc struct {
	method string // "" for an answer
	id     json.RawMessage
	params json.RawMessage
}

// readRPC reads a payload as far as it is readable.
func readRPC(payload json.RawMessage) rpc {
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &fields) != nil {
		return rpc{}
	}
	m := rpc{params: fields["params"]}
	m.method, _ = stringIn(fields["method"])
	if rawjson.Present(fields["id"]) {
		m.id = fields["id"]
	}
	return m
}

// askedBare remembers a bare request of the device to the standard dialect.
func (d *dialects) askedBare(id json.RawMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked = append(d.asked, string(id)); len(d.asked) > maxAsked {
		d.asked = slices.Delete(d.asked, 0, 1)
	}
}

// answersBare reports whether a payload of ours answers a bare request, once.
func (d *dialects) answersBare(payload json.RawMessage) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) == 0 {
		return false
	}
	m := readRPC(payload)
	if m.method != "" || m.id == nil {
		return false
	}
	i := slices.Index(d.asked, string(m.id))
	if i < 0 {
		return false
	}
	d.asked = slices.Delete(d.asked, i, i+1)
	return true
}

// addressIn is the mac_addr of a registration as a Device-Id: in lower case, a
// MAC with colons. "" when there is none that can be used.
func addressIn(params json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil {
		return ""
	}
	address, _ := stringIn(bytes.TrimSpace(fields["mac_addr"]))
	address = strings.ToLower(strings.TrimSpace(address))
	if address == "" || CheckID("mac_addr", address) != nil {
		return ""
	}
	digits := strings.NewReplacer("-", "", ":", "", ".", "", " ", "").Replace(address)
	if len(digits) != 12 || strings.Trim(digits, "0123456789abcdef") != "" {
		return address
	}
	pairs := make([]string, 0, 6)
	for pair := range slices.Chunk([]byte(digits), 2) {
		pairs = append(pairs, string(pair))
	}
	return strings.Join(pairs, ":")
}

// maxID is how long a Device-Id or Client-Id may be, in bytes.
const maxID = 128

// CheckID refuses ids that are longer than 128 bytes or not printable ASCII. name
// is for the error.
func CheckID(name, id string) error {
	if len(id) > maxID {
		return fmt.Errorf("%s is longer than %d bytes", name, maxID)
	}
	for _, c := range id {
		if c < ' ' || c > '~' {
			return fmt.Errorf("%s holds signs that are not printable ASCII", name)
		}
	}
	return nil
}
