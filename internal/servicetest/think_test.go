package servicetest

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAskedAndArguments(t *testing.T) {
	lamp := Tool{"lamp", json.RawMessage(`{"type":"object","properties":{"on":{"type":"boolean"},"room":{"enum":["hall","bath"]},"level":{"type":"integer","minimum":3},"x":{"type":"string"}},"required":["on","room","level"]}`)}
	got := Asked("the radio and the lamp", []Tool{lamp, {Name: "clock"}, {Name: "radio"}})
	if len(got) != 2 || got[0].Name != "radio" || got[1].Name != "lamp" {
		t.Errorf("got %v", got)
	}
	if len(Asked(Words, []Tool{lamp})) != 1 {
		t.Error("the words ask for no lamp")
	}
	if got, want := Arguments(lamp.Schema), `{"level":3,"on":true,"room":"hall"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Arguments(nil); got != "{}" {
		t.Errorf("got %s", got)
	}
	if got := Thirds(Words); len(got) != 3 || strings.Join(got, "") != Words {
		t.Errorf("got %q", got)
	}
}
