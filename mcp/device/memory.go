package device

import (
	"container/list"

	"xiaozhi/mcp"
)

// What a ListCache remembers of devices that are away. The oldest is forgotten first.
const (
	maxRemembered      = 4096     // devices
	maxRememberedBytes = 32 << 20 // of all their lists, each counted whole
)

// memory is the last complete list of each device, whether it is connected or
// not. The ListCache guards it.
type memory struct {
	byID  map[string]*list.Element
	order *list.List // of remembered, newest first
	bytes int
}

// remembered is the last list of one device, and who it said it was.
type remembered struct {
	id    string
	info  ServerInfo
	tools *[]mcp.Tool
	bytes int
}

func newMemory() memory { return memory{byID: make(map[string]*list.Element), order: list.New()} }

// set makes r what is remembered of its device. A list that is too large on its
// own is not remembered at all.
func (m *memory) set(r remembered) {
	m.drop(m.byID[r.id])
	if r.bytes = sizeOf(*r.tools); r.bytes > maxRememberedBytes {
		return
	}
	m.byID[r.id] = m.order.PushFront(r)
	m.bytes += r.bytes
	for m.order.Len() > maxRemembered || m.bytes > maxRememberedBytes {
		m.drop(m.order.Back())
	}
}

// get is what is remembered of a device.
func (m *memory) get(id string) (remembered, bool) {
	e, ok := m.byID[id]
	if !ok {
		return remembered{}, false
	}
	m.order.MoveToFront(e)
	return e.Value.(remembered), true
}

// drop forgets one entry; nil changes nothing.
func (m *memory) drop(e *list.Element) {
	if e == nil {
		return
	}
	r := m.order.Remove(e).(remembered)
	delete(m.byID, r.id)
	m.bytes -= r.bytes
}

// sizeOf is about what a list takes, in bytes.
func sizeOf(tools []mcp.Tool) int {
	const fixed = 256 // of one tool, its hints included
	n := 0
	for _, t := range tools {
		n += fixed + len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}

// remember keeps a device's list for its next connection. A nil cache and an
// empty id remember nothing.
func (s *ListCache) remember(id string, info ServerInfo, tools *[]mcp.Tool) {
	if s == nil || id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.set(remembered{id: id, info: info, tools: tools})
}

// recall is the list that a device had when it was last here, and who it was.
func (s *ListCache) recall(id string) (remembered, bool) {
	if s == nil || id == "" {
		return remembered{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.get(id)
}
