package mcp

import (
	"errors"
	"fmt"
	"time"
)

// Limits on what a device may send us and what we send to it.
const (
	maxPayload  = 1 << 20   // bytes of one JSON-RPC payload from a device
	maxDepth    = 64        // nesting of objects and arrays in a payload
	maxQueue    = 64        // payloads waiting for the session; more are dropped
	maxQueued   = 4 << 20   // bytes waiting for the session; more are dropped
	maxSend     = 7 << 10   // bytes of one payload to a device, which takes 8 KiB with the envelope
	maxPages    = 32        // pages of one tools/list (device-protocol 5.3)
	maxTools    = 256       // tools of one device
	maxToolName = 256       // bytes of a tool's name
	maxBlocks   = 64        // content blocks of one result
	maxID       = 1<<31 - 1 // firmware reads ids into 32 bits (device-protocol 5.1)
	maxLate     = 64        // given-up requests whose late reply is still recognised

	requestTimeout = 15 * time.Second       // of initialize and of one page of tools/list
	relistPause    = time.Second            // between two lists that the device asked for
	relistGather   = 100 * time.Millisecond // for further signs that the list has changed
)

var errTooDeep = errors.New("nested too deeply")

// checkSize is an error when payload is larger or nested deeper than any honest
// message is. It runs before the payload is parsed.
func checkSize(payload []byte) error {
	if len(payload) > maxPayload {
		return fmt.Errorf("payload of %d bytes is over the limit of %d", len(payload), maxPayload)
	}
	if Depth(payload) > maxDepth {
		return fmt.Errorf("%w: more than %d levels", errTooDeep, maxDepth)
	}
	return nil
}

// Depth counts how deep the arrays and objects of a JSON text nest, without
// parsing it. Signs in strings do not count; broken JSON gets a number that is
// good enough.
func Depth(data []byte) int {
	deepest, depth := 0, 0
	inString, escaped := false, false
	for _, b := range data {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = b == '\\'
			inString = b != '"'
		case b == '"':
			inString = true
		case b == '{' || b == '[':
			depth++
			deepest = max(deepest, depth)
		case b == '}' || b == ']':
			depth--
		}
	}
	return deepest
}
