package light

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

const (
	maxAbandoned = 64  // calls given up whose late answer is still recognised
	maxErrorText = 256 // bytes of a device's error in the log
)

// CallTool runs a tool of the device, once, and waits for its result as long as ctx allows:
// a string, or the JSON of any other value. Errors: ErrNoTool, ErrClosed, a *ToolError for
// what the device reports, and those of ctx.
func (l *Source) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	if arguments == nil {
		arguments = map[string]any{}
	}
	id, call, err := l.open(name)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	frame, err := rawjson.Marshal(request{Version: version2, Method: methodExecute, Params: executeParams{name, arguments}, ID: id})
	if err == nil {
		err = l.options.Send(frame)
	}
	if err != nil {
		l.mu.Lock()
		delete(l.pending, id)
		l.mu.Unlock()
		return nil, fmt.Errorf("send %s to device: %w", name, err)
	}
	select {
	case a, ok := <-call.answer:
		if !ok {
			return nil, fmt.Errorf("call %s: %w", name, mcp.ErrClosed)
		}
		return a.result, a.err
	case <-ctx.Done():
		l.giveUp(id)
		return nil, fmt.Errorf("call %s: %w", name, ctx.Err())
	}
}

// open gives a call its id and its place among those that wait for an answer.
func (l *Source) open(name string) (string, *pendingCall, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return "", nil, mcp.ErrClosed
	}
	if !l.has(name) {
		return "", nil, mcp.ErrNoTool
	}
	l.number++
	id := fmt.Sprintf("tool-call-%d-%s", l.number, l.mark)
	call := &pendingCall{tool: name, sent: time.Now(), answer: make(chan answer, 1)}
	l.pending[id] = call
	return id, call, nil
}

// giveUp marks a call whose caller has left. Its answer is still known
// as a late one, unless maxAbandoned others were given up after it.
func (l *Source) giveUp(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	call := l.pending[id]
	if call == nil {
		return // answered, or stopped, in the same moment
	}
	call.givenUp = true
	if l.late = append(l.late, id); len(l.late) > maxAbandoned {
		delete(l.pending, l.late[0])
		l.late = slices.Delete(l.late, 0, 1)
	}
}

// answered hands an answer to the call that waits for it.
func (l *Source) answered(f inbound) {
	call := l.take(f.id)
	switch {
	case call == nil:
		l.logSome(l.log.Info, "light device answer to no call of ours", "id", string(f.id))
	case call.givenUp:
		l.log.Info("light device answer came too late", "id", string(f.id), "tool", call.tool,
			"took", time.Since(call.sent), "failed", f.answer.err != nil)
	default:
		if f.answer.err != nil {
			l.log.Info("light device answered with an error", "id", string(f.id), "tool", call.tool, "err", text.Shorten(f.answer.err.Error(), maxErrorText))
		}
		call.answer <- f.answer // it has room for the only answer there can be
	}
}

// take removes the call with this id from the table; nil when there is none.
func (l *Source) take(rawID json.RawMessage) *pendingCall {
	var id string
	if json.Unmarshal(rawID, &id) != nil {
		id = string(rawID) // a number
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	call := l.pending[id]
	if call == nil {
		return nil
	}
	delete(l.pending, id)
	if call.givenUp {
		l.late = slices.DeleteFunc(l.late, func(other string) bool { return other == id })
	}
	return call
}
