package openai

import (
	"encoding/json"
	"slices"
	"testing"

	"xiaozhi/providers"
)

// assemble reads the entries of tool_calls, one JSON text each.
func assemble(t *testing.T, entries []string) (calls []providers.ToolCall, err error) {
	t.Helper()
	var a assembler
	take := func(complete []providers.ToolCall, failed error) {
		calls = append(calls, complete...)
		if err == nil {
			err = failed
		}
	}
	for _, entry := range entries {
		var p callPiece
		if err := json.Unmarshal([]byte(entry), &p); err != nil {
			t.Fatalf("entry %s: %v", entry, err)
		}
		take(a.push(p))
	}
	take(a.give(true))
	return calls, err
}

func TestToolCallDialects(t *testing.T) {
	call := func(id, name, arguments string) providers.ToolCall {
		return providers.ToolCall{ID: id, Name: name, Arguments: arguments}
	}
	tests := []struct {
		name    string
		entries []string
		want    []providers.ToolCall
	}{
		{"as described", []string{
			`{"index":0,"id":"1","type":"function","function":{"name":"a","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"x\""}}`, `{"index":0,"function":{"arguments":":1}"}}`,
			`{"index":1,"id":"2","function":{"name":"b","arguments":"{}"}}`,
		}, []providers.ToolCall{call("1", "a", `{"x":1}`), call("2", "b", "{}")}},
		{"no index, whole calls", []string{
			`{"id":"1","function":{"name":"a","arguments":"{}"}}`, `{"id":"2","function":{"name":"a","arguments":"{}"}}`,
		}, []providers.ToolCall{call("1", "a", "{}"), call("2", "a", "{}")}},
		{"no index, in pieces", []string{
			`{"id":"1","function":{"name":"a","arguments":"{\"x\""}}`, `{"function":{"arguments":":1}"}}`, `{"id":"2","function":{"name":"b"}}`,
		}, []providers.ToolCall{call("1", "a", `{"x":1}`), call("2", "b", "{}")}},
		{"every index zero", []string{
			`{"index":0,"id":"1","function":{"name":"a","arguments":"{}"}}`, `{"index":0,"id":"2","function":{"name":"b","arguments":"{}"}}`,
		}, []providers.ToolCall{call("1", "a", "{}"), call("2", "b", "{}")}},
		{"id alone first", []string{
			`{"index":0,"id":"1"}`, `{"index":0,"function":{"name":"a"}}`, `{"index":0,"function":{"arguments":"{}"}}`,
		}, []providers.ToolCall{call("1", "a", "{}")}},
		{"name and id in every piece", []string{
			`{"index":0,"id":"1","function":{"name":"a","arguments":"{\"x\":"}}`, `{"index":0,"id":"1","function":{"name":"a","arguments":"1}"}}`,
		}, []providers.ToolCall{call("1", "a", `{"x":1}`)}},
		{"a new id in every piece", []string{
			`{"index":0,"id":"1","function":{"name":"a","arguments":"{\"x\":"}}`, `{"index":0,"id":"9","function":{"name":"a","arguments":"1}"}}`, `{"index":0,"id":"8","function":{"arguments":""}}`,
		}, []providers.ToolCall{call("1", "a", `{"x":1}`)}},
		{"name in two pieces", []string{
			`{"index":0,"id":"1","function":{"name":"get_"}}`, `{"index":0,"function":{"name":"time"}}`,
		}, []providers.ToolCall{call("1", "get_time", "{}")}},
		{"arguments an object", []string{`{"index":0,"id":"1","function":{"name":"a","arguments":{"x": 1}}}`}, []providers.ToolCall{call("1", "a", `{"x": 1}`)}},
		{"arguments null", []string{`{"index":0,"id":"1","function":{"name":"a","arguments":null}}`}, []providers.ToolCall{call("1", "a", "{}")}},
		{"arguments the text null", []string{`{"index":0,"id":"1","function":{"name":"a","arguments":"null"}}`}, []providers.ToolCall{call("1", "a", "{}")}},
		{"broken arguments stay", []string{`{"index":0,"id":"1","function":{"name":"a","arguments":"{\"x\""}}`}, []providers.ToolCall{call("1", "a", `{"x"`)}},
		{"pieces of several calls in turns", []string{
			`{"index":0,"id":"1","function":{"name":"a","arguments":""}}`, `{"index":1,"id":"2","function":{"name":"b","arguments":""}}`, `{"index":2,"id":"3","function":{"name":"c"}}`,
			`{"index":0,"function":{"arguments":"{}"}}`, `{"index":1,"function":{"arguments":"{\"x\""}}`, `{"index":0,"function":{"arguments":""}}`, `{"index":1,"function":{"arguments":":1}"}}`,
		}, []providers.ToolCall{call("1", "a", "{}"), call("2", "b", `{"x":1}`), call("3", "c", "{}")}},
		{"two calls with the same id", []string{
			`{"index":0,"id":"1","function":{"name":"a","arguments":"{\"x\":1}"}}`, `{"index":1,"id":"1","function":{"name":"a","arguments":"{\"x\":2}"}}`,
		}, []providers.ToolCall{call("1", "a", `{"x":1}`), call("1", "a", `{"x":2}`)}}, // who sends them on tells them apart
		{"two calls with the same id and no index", []string{
			`{"id":"1","function":{"name":"a","arguments":"{\"x\":1}"}}`, `{"id":"1","function":{"name":"b","arguments":"{}"}}`,
		}, []providers.ToolCall{call("1", "a", `{"x":1}`), call("1", "b", "{}")}},
		{"all once more at the end", []string{
			`{"index":0,"id":"1","function":{"name":"a","arguments":"{}"}}`, `{"index":1,"id":"2","function":{"name":"b","arguments":"{\"x\":1}"}}`,
			`{"index":0,"id":"1","function":{"name":"a","arguments":"{}"}}`, `{"index":1,"id":"2","function":{"name":"b","arguments":"{\"x\":1}"}}`,
		}, []providers.ToolCall{call("1", "a", "{}"), call("2", "b", `{"x":1}`)}},
		{"an empty piece too late", []string{
			`{"index":0,"id":"1","function":{"name":"a"}}`, `{"index":1,"id":"2","function":{"name":"b"}}`, `{"index":0,"function":{"arguments":""}}`,
		}, []providers.ToolCall{call("1", "a", "{}"), call("2", "b", "{}")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := assemble(t, tt.entries); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

func TestToolCallsInvalid(t *testing.T) {
	for name, entries := range map[string][]string{
		"no name":    {`{"index":0,"id":"1"}`},
		"late piece": {`{"index":0,"id":"1","function":{"name":"a","arguments":"{}"}}`, `{"index":1,"id":"2","function":{"name":"b"}}`, `{"index":0,"function":{"arguments":"x"}}`},
	} {
		if got, err := assemble(t, entries); err == nil {
			t.Errorf("%s: no error, %+v", name, got)
		}
	}
}

func TestCallsWithoutIDsGetOne(t *testing.T) {
	got, err := assemble(t, []string{`{"function":{"name":"a","arguments":"{}"}}`, `{"function":{"name":"a","arguments":"{}"}}`})
	if err != nil || len(got) != 2 || got[0].ID == "" || got[0].ID == got[1].ID {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzToolCalls(f *testing.F) {
	f.Add(`[{"index":0,"id":"1","function":{"name":"a","arguments":"{"}},{"index":0,"function":{"arguments":"}"}}]`)
	f.Add(`[{"function":{"name":"a","arguments":{}}},{"id":"2","function":{}},{"index":-1}]`)
	f.Fuzz(func(t *testing.T, text string) {
		var entries []callPiece
		if json.Unmarshal([]byte(text), &entries) != nil {
			return
		}
		var a assembler
		given := 0
		check := func(calls []providers.ToolCall) {
			given += len(calls)
			for _, call := range calls {
				if call.ID == "" || call.Name == "" || call.Arguments == "" {
					t.Errorf("incomplete call %+v", call)
				}
			}
		}
		for _, p := range entries {
			calls, err := a.push(p)
			if err != nil {
				return
			}
			check(calls)
		}
		calls, err := a.give(true)
		check(calls)
		if err == nil && len(entries) > 0 && given == 0 {
			t.Error("the open calls are lost")
		}
	})
}
