package history

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"xiaozhi/providers"
)

func said(role providers.Role, text string) providers.Message {
	return providers.Message{Role: role, Content: text}
}

func TestTrim(t *testing.T) {
	count := func(s string) int { return len(strings.Fields(s)) }
	var h Log
	for i := range 10 {
		id := fmt.Sprint("call", i)
		h.Add(
			said(providers.RoleUser, "one two three four five six"),
			providers.Message{Role: providers.RoleAssistant, ToolCalls: []providers.ToolCall{{ID: id, Name: "x", Arguments: "{}"}}},
			providers.Message{Role: providers.RoleTool, ToolCallID: id, Content: "a result of some words"},
			said(providers.RoleAssistant, "and the answer"),
		)
	}
	h.Trim(100, count)
	if len(h.messages) == 0 || h.messages[0].Role != providers.RoleUser {
		t.Fatalf("history begins with %+v", h.messages[0])
	}
	total := 0
	for _, m := range h.messages {
		total += messageTokens(m, count)
	}
	if total > 100 || total < 60 {
		t.Errorf("%d tokens are left of a budget of 100", total)
	}
	calls := map[string]int{}
	for _, m := range h.messages {
		for _, c := range m.ToolCalls {
			calls[c.ID]++
		}
		if m.ToolCallID != "" {
			calls[m.ToolCallID]--
		}
	}
	for id, n := range calls {
		if n != 0 {
			t.Errorf("call %s was split from its result", id)
		}
	}
}

// What a model wants back is sent with each request, so it counts; it survives packing.
func TestEchoIsKeptAndCounted(t *testing.T) {
	echo := providers.NewEcho("a model", `"`+strings.Repeat("x", 3000)+`"`)
	m := providers.Message{Role: providers.RoleAssistant, Content: "a", Echo: echo, ToolCalls: []providers.ToolCall{{ID: "1", Name: "f", Echo: echo}}}
	h := New([]providers.Message{said(providers.RoleUser, "old"), m, said(providers.RoleUser, "new")})
	h.Pack()
	h.Unpack()
	if got := h.Snapshot(); len(got) != 3 || !reflect.DeepEqual(got[1], m) {
		t.Errorf("unpacked: %+v", got)
	}
	h.Trim(1900, func(s string) int { return len(s) })
	if got := h.Snapshot(); len(got) != 1 {
		t.Errorf("%d messages are within 1900 tokens", len(got))
	}
}

func TestTrimKeepsNewestExchange(t *testing.T) {
	var h Log
	h.Add(said(providers.RoleUser, strings.Repeat("old ", 100)), said(providers.RoleUser, strings.Repeat("new ", 100)))
	h.Trim(10, func(s string) int { return len(s) })
	if len(h.messages) != 1 || !strings.HasPrefix(h.messages[0].Content, "new") {
		t.Errorf("%d messages left", len(h.messages))
	}
}

func TestTrimUnderBudget(t *testing.T) {
	var h Log
	h.Add(said(providers.RoleUser, "a"), said(providers.RoleUser, "b"))
	h.Trim(100, func(string) int { t.Error("counted"); return 0 })
	if len(h.messages) != 2 {
		t.Errorf("%d messages left", len(h.messages))
	}
}

// However often a history is cut, each message is counted once, and again when it
// has become another.
func TestTrimCountsOnce(t *testing.T) {
	const broken = "it broke, for many reasons that take their time to be told"
	var h Log
	counted := map[string]int{}
	count := func(s string) int { counted[s]++; return len(s) }
	for i := range 8 {
		id := fmt.Sprint("c", i)
		h.Add(said(providers.RoleUser, "question "+id), providers.Message{Role: providers.RoleTool, ToolCallID: id, Content: "result " + id})
		h.Trim(90, count)
	}
	if !h.replaceResult("c7", broken) {
		t.Fatal("not replaced")
	}
	h.Trim(90, count)
	for _, want := range []string{"question c0", "question c7", "result c7", broken} {
		if counted[want] == 0 {
			t.Errorf("%q was never counted", want)
		}
	}
	total := 0
	for _, m := range h.messages {
		total += messageTokens(m, func(s string) int { return len(s) })
	}
	if total > 90 || h.messages[0].Role != providers.RoleUser {
		t.Errorf("%d left of a budget of 90", total)
	}
	for text, n := range counted {
		if n != 1 {
			t.Errorf("%q was counted %d times", text, n)
		}
	}
}

func TestReplaceResult(t *testing.T) {
	var h Log
	h.Add(providers.Message{Role: providers.RoleTool, ToolCallID: "a", Content: "success"})
	if !h.replaceResult("a", "it broke") || h.messages[0].Content != "it broke" {
		t.Errorf("not replaced: %+v", h.messages)
	}
	if h.replaceResult("b", "x") {
		t.Error("an unknown call was replaced")
	}
}

// TestPack: a packed history is small, and comes back as it was.
func TestHistoryAtRest(t *testing.T) {
	var h Log
	for i := range 100 {
		id := fmt.Sprint("call", i)
		h.Add(
			providers.Message{Role: providers.RoleUser, Content: "开灯 \xff", Images: []providers.Image{{MIMEType: "image/jpeg", Data: []byte{0, 255, 1}}}},
			providers.Message{Role: providers.RoleAssistant, ToolCalls: []providers.ToolCall{{ID: id, Name: "x", Arguments: `{"a":1`}}},
			providers.Message{Role: providers.RoleTool, ToolCallID: id, Content: ""},
			said(providers.RoleAssistant, "好的"),
		)
	}
	h.Trim(1500, func(s string) int { return len(s) })
	want := h
	h.Pack()
	if h.messages != nil || h.tokens != nil || len(h.packed) > 40*len(want.messages) {
		t.Errorf("%d messages took %d bytes, and %d are left", len(want.messages), len(h.packed), len(h.messages))
	}
	h.Pack()
	h.Unpack()
	if !reflect.DeepEqual(h, want) {
		t.Errorf("%d messages and %d counts, at version %d; before %d, %d, %d",
			len(h.messages), len(h.tokens), h.version, len(want.messages), len(want.tokens), want.version)
	}
	h.Unpack()
	if len(h.messages) != len(want.messages) {
		t.Error("unpacked twice, it is gone")
	}
}

func TestNewCopies(t *testing.T) {
	given := []providers.Message{said(providers.RoleUser, "hi")}
	h := New(given)
	given[0].Content = "changed"
	h.Snapshot()[0].Content = "changed"
	if got := h.Snapshot(); len(got) != 1 || got[0].Content != "hi" {
		t.Errorf("%+v", got)
	}
}

// TestSaid: what was said does not change with a result that comes late.
func TestSaid(t *testing.T) {
	var l Log
	l.Add(providers.Message{Role: providers.RoleTool, ToolCallID: "1", Content: "success"})
	said, version := l.Said(), l.Version()
	l.SetResult("1", "too loud")
	if l.Said() != said || l.Version() == version {
		t.Errorf("said %d and %d, version %d and %d", said, l.Said(), version, l.Version())
	}
	if l.Clear(); l.Said() == said {
		t.Error("what was said is forgotten, and it does not show")
	}
}
