package gateway

import (
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"xiaozhi/mcp/gateway/catalog"
)

// talkLine is the line to one session of a talk. It knows the requests that are
// under way: the SDK would take any number, and lose one whose id is in use.
type talkLine struct {
	*catalog.Pipe
	talk *talk

	mu    sync.Mutex
	asked map[jsonrpc.ID]asked
}

// asked is a request that is under way.
type asked struct {
	place     places // where it has one
	cancelled bool   // the client does not wait for the answer any more
}

func newTalkLine(t *talk) *talkLine {
	l := &talkLine{talk: t, asked: map[jsonrpc.ID]asked{}}
	l.Pipe = catalog.NewPipe(l.send)
	return l
}

// ask notes a request, which has taken a place. False: its id is in use.
func (l *talkLine) ask(id jsonrpc.ID, place places) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, used := l.asked[id]; used {
		return false
	}
	l.asked[id] = asked{place: place}
	return true
}

// cancel notes that a request was taken back, whose answer is not sent (MCP
// 2025-11-25, cancellation: clients take one for a mistake). One that has been
// answered is unknown, as it may be: the two cross.
func (l *talkLine) cancel(params json.RawMessage) {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, used := l.asked[id]; used {
		a.cancelled = true
		l.asked[id] = a
	}
}

// answered frees the id of a request that is about to be answered. place is where it
// has one. wanted reports whether the client still waits for the answer.
func (l *talkLine) answered(id jsonrpc.ID) (place places, wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.asked[id]
	delete(l.asked, id)
	return a.place, !a.cancelled
}

// drop gives the places of all requests back, which will not be answered.
func (l *talkLine) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.asked {
		a.place.free()
	}
	clear(l.asked)
}

// send sends a message of the session.
func (l *talkLine) send(m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *jsonrpc.Response:
		place, wanted := l.answered(m.ID) // the client may use the id again as soon as it has the answer
		if place != nil {
			defer place.free() // not sooner: the answer may be long
		}
		if !wanted {
			return nil
		}
	case *jsonrpc.Request:
		if isNews(m) {
			return l.talk.news.add(data)
		}
	}
	return l.talk.wire.send(data)
}
