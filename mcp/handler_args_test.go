package mcp_test

import (
	"encoding/json"
	"testing"
	"time"

	"xiaozhi/mcp"
)

func TestDecodeArgs(t *testing.T) {
	due := time.Date(2026, 11, 22, 7, 0, 0, 0, time.FixedZone("", 8*3600))
	want := mcp.TimerArgs{Action: mcp.TimerSet, Reminder: true, Due: due, Text: "开会"}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := `{"action":"set","reminder":true,"due":"2026-11-22T07:00:00+08:00","text":"开会"}`; string(data) != got {
		t.Errorf("as JSON: %s, want %s", data, got)
	}
	for name, args := range map[string]any{
		"value": want, "pointer": &want, "raw JSON": json.RawMessage(data),
		"map": map[string]any{"action": "set", "reminder": true, "due": "2026-11-22T07:00:00+08:00", "text": "开会", "more": 1},
	} {
		got, err := mcp.DecodeArgs[mcp.TimerArgs](args)
		if err != nil || !got.Due.Equal(want.Due) || got.Text != want.Text || got.Action != want.Action || !got.Reminder {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, args := range map[string]any{"nil": nil, "nil pointer": (*mcp.TimerArgs)(nil), "nil map": map[string]any(nil)} {
		if got, err := mcp.DecodeArgs[mcp.TimerArgs](args); err != nil || got != (mcp.TimerArgs{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, args := range map[string]any{
		"text": "set", "number": 5, "list": []any{1}, "a function": func() {},
		"wrong type": map[string]any{"action": "set", "due": "soon"},
	} {
		if got, err := mcp.DecodeArgs[mcp.TimerArgs](args); err == nil || got != (mcp.TimerArgs{}) {
			t.Errorf("%s: %+v, %v, want an error and nothing else", name, got, err)
		}
	}
}
