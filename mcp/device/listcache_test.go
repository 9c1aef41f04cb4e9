package device

import (
	"encoding/json"
	"reflect"
	"runtime"
	"testing"

	"xiaozhi/mcp"
)

// sameTools makes an equal list each time, in memory of its own.
func sameTools() []mcp.Tool {
	yes := true
	return []mcp.Tool{
		{Name: "a", Description: "first", Schema: json.RawMessage(`{"type":"object"}`), Origin: mcp.Remote, Source: "device"},
		{Name: "b", Description: "second", Schema: json.RawMessage(`{}`), Annotations: mcp.Annotations{ReadOnly: &yes, Audience: []string{"user"}}},
	}
}

func TestListCacheSharesEqualLists(t *testing.T) {
	s := NewListCache("")
	first := s.share(sameTools())
	if second := s.share(sameTools()); second != first {
		t.Error("an equal list is held twice")
	}
	if !reflect.DeepEqual(*first, sameTools()) {
		t.Errorf("the list was changed: %+v", *first)
	}
	runtime.KeepAlive(first)
}

func TestListCacheDifferentLists(t *testing.T) {
	no := false
	changes := map[string]func([]mcp.Tool){
		"name":        func(l []mcp.Tool) { l[0].Name = "c" },
		"description": func(l []mcp.Tool) { l[0].Description = "First" },
		"white space": func(l []mcp.Tool) { l[0].Schema = json.RawMessage(`{"type": "object"}`) },
		"origin":      func(l []mcp.Tool) { l[0].Origin = mcp.Local },
		"kind":        func(l []mcp.Tool) { l[0].Kind = mcp.Control },
		"hint":        func(l []mcp.Tool) { l[1].Annotations.ReadOnly = &no },
		"no hint":     func(l []mcp.Tool) { l[1].Annotations.ReadOnly = nil },
		"audience":    func(l []mcp.Tool) { l[1].Annotations.Audience = nil },
		"source":      func(l []mcp.Tool) { l[0].Source = "light" },
		"stream":      func(l []mcp.Tool) { l[0].Stream = "x" },
		"order":       func(l []mcp.Tool) { l[0], l[1] = l[1], l[0] },
		"moved text":  func(l []mcp.Tool) { l[0].Name, l[0].Description = `a" "first`, "" },
	}
	s := NewListCache("")
	first := s.share(sameTools())
	for what, change := range changes {
		other := sameTools()
		change(other)
		if got := s.share(other); got == first || !reflect.DeepEqual(*got, other) {
			t.Errorf("%s: a different list was taken for the same", what)
		}
	}
	runtime.KeepAlive(first)
}

func TestListCacheForgets(t *testing.T) {
	s := NewListCache("")
	first := s.share(sameTools())
	runtime.GC()
	if s.share(sameTools()) != first {
		t.Error("a list in use was forgotten")
	}
	runtime.KeepAlive(first)
	runtime.GC()
	s.share([]mcp.Tool{{Name: "another"}})
	if n := len(s.lists); n != 1 {
		t.Errorf("%d lists in the cache, want the one in use", n)
	}
}
