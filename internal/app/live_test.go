package app

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// oneTool is a device with a tool of that name.
type oneTool struct {
	mcp.Source
	name string
}

func (o oneTool) GetAvailableTools() []mcp.Tool {
	return []mcp.Tool{{Name: o.name, Schema: json.RawMessage(`{"type":"object"}`), Source: "device"}}
}

func (o oneTool) CallTool(context.Context, string, map[string]any) (any, error) { return o.name, nil }

func talkOf(t *testing.T, live *liveDevices, id, session, tool string) *deviceTalk {
	t.Helper()
	box := router.New(router.Options{}, oneTool{name: tool})
	t.Cleanup(box.Close)
	return &deviceTalk{tools: box, session: wire.Session{DeviceID: id, SessionID: session, Name: "kitchen", Language: "en"}, live: live}
}

// TestReconnect: a device that comes back before its old connection has ended is
// found with its new tools, and the old one's end does not take it away.
func TestReconnect(t *testing.T) {
	live := newLiveDevices()
	before, after := talkOf(t, live, "aa:bb", "s1", "old"), talkOf(t, live, "aa:bb", "s2", "new")
	live.add(before)
	live.add(after)
	live.remove(before)
	list := live.List()
	if len(list) != 1 || list[0].SessionID != "s2" || list[0].Tools != 1 || list[0].Name != "kitchen" || list[0].Language != "en" {
		t.Fatalf("%+v", list)
	}
	if offers, ok := live.Offers("aa:bb"); !ok || len(offers) != 1 || offers[0].Tool.Name != "new" {
		t.Error("the new connection's tools are not there")
	}
	live.remove(after)
	live.remove(after) // whose connection ends twice
	if _, ok := live.Offers("aa:bb"); ok || len(live.List()) != 0 {
		t.Error("the device is there after its end")
	}
}

// TestManyDevices: the list is in order, and devices may come and go while it is read.
func TestManyDevices(t *testing.T) {
	live := newLiveDevices()
	var coming sync.WaitGroup
	for i := range 50 {
		talk := talkOf(t, live, fmt.Sprintf("aa:%02d", 49-i), "s", "x")
		coming.Go(func() {
			live.add(talk)
			if len(live.List()) == 0 {
				t.Error("nobody is there")
			}
			if i%2 == 1 {
				live.remove(talk)
			}
		})
	}
	coming.Wait()
	list := live.List()
	if len(list) != 25 {
		t.Fatalf("%d devices, want 25", len(list))
	}
	for i := range list[1:] {
		if list[i].ID >= list[i+1].ID {
			t.Errorf("%s before %s", list[i].ID, list[i+1].ID)
		}
	}
}
