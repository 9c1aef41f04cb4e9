package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestSchemaRead: arguments are read, repaired and checked as for a device's tool.
func TestSchemaRead(t *testing.T) {
	c, err := Compile(json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9},"on":{"type":"boolean"}},"required":["n"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, ok := range []struct {
		text string
		want map[string]any
	}{
		{`{"n":3}`, map[string]any{"n": int64(3)}},
		{`{"n":"3","on":"true","other":1}`, map[string]any{"n": int64(3), "on": true}},
	} {
		got, _, err := c.Read(ok.text)
		if err != nil || !reflect.DeepEqual(got, ok.want) {
			t.Errorf("%s: %#v, %v, want %#v", ok.text, got, err, ok.want)
		}
	}
	for text, want := range map[string]string{``: "n", `{"n":10}`: `"n"`, `[]`: "object", `{"n":"x"}`: `"n"`, strings.Repeat("[", 100): "levels"} {
		if got, _, err := c.Read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, %v, want an error with %s", text, got, err, want)
		}
	}
}

// TestCompileSchemas: no schema is any object; one that cannot be used is an error.
func TestCompileSchemas(t *testing.T) {
	c, err := Compile(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := c.Read(`{"a":1}`); err != nil || len(got) != 1 {
		t.Errorf("any object: %v, %v", got, err)
	}
	for _, bad := range []string{`{"$ref":"#"}`, `7`, `{"type":`} {
		if _, err := Compile(json.RawMessage(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// What is said of a long value that is wrong is not as long.
func TestSchemaReadIsBrief(t *testing.T) {
	c, err := Compile([]byte(`{"type":"object","properties":{"on":{"type":"boolean"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Read(`{"on":"` + strings.Repeat("x", 10<<10) + `"}`); err == nil || len(err.Error()) > 2*maxReason || !strings.Contains(err.Error(), "on") {
		t.Errorf("got %.100v…", err)
	}
}
