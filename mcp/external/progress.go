package external

import (
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
)

// maxProgress is how much of the words of a report is passed on, in bytes.
const maxProgress = 200

// hearers own who hears of the progress of calls. Their methods may be called at the same time.
type hearers struct {
	mu     sync.Mutex
	number int64
	calls  map[int64]func(mcp.Progress)
}

// add notes who hears of a call, and returns the token of its reports. stop must be called.
func (h *hearers) add(f func(mcp.Progress)) (token int64, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number++
	number := h.number
	if h.calls == nil {
		h.calls = map[int64]func(mcp.Progress){}
	}
	h.calls[number] = f
	return number, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.calls, number)
	}
}

// hear passes a report on to the call that it is about. One about no call says nothing.
func (h *hearers) hear(p *sdk.ProgressNotificationParams) {
	if p == nil {
		return
	}
	number, _ := p.ProgressToken.(float64) // as JSON has it
	h.mu.Lock()
	f := h.calls[int64(number)]
	h.mu.Unlock()
	if f != nil {
		f(mcp.Progress{Done: p.Progress, Total: p.Total, Message: text.Cut(text.Line(p.Message), maxProgress)})
	}
}
