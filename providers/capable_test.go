package providers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"xiaozhi/providers"
)

func TestNarrow(t *testing.T) {
	say := func(role providers.Role, text string) providers.Message {
		return providers.Message{Role: role, Content: text}
	}
	req := providers.LLMRequest{
		Messages: []providers.Message{
			say(providers.RoleSystem, "prompt"), say(providers.RoleUser, "old"), say(providers.RoleAssistant, "answer"),
			say(providers.RoleUser, "new"), say(providers.RoleTool, "result"),
		},
		Tools: []providers.ToolSpec{{Name: "f"}}, NoTools: true, DeviceID: "d",
	}
	if got := (providers.Capabilities{}).Narrow(req); len(got.Messages) != 5 || len(got.Tools) != 1 {
		t.Errorf("an ordinary model gets %+v", got)
	}
	got := providers.Capabilities{Stateful: true}.Narrow(req)
	if len(got.Messages) != 2 || got.Messages[0].Content != "new" || len(got.Tools) != 1 || got.DeviceID != "d" || len(got.Before) != 3 {
		t.Errorf("a stateful one gets %+v", got)
	}
	if again := (providers.Capabilities{Stateful: true}).Narrow(got); len(again.Before) != 3 || len(again.Messages) != 2 {
		t.Errorf("narrowed again: %+v", again)
	}
	if got := (providers.Capabilities{OwnTools: true}).Narrow(req); len(got.Messages) != 5 || got.Tools != nil || got.NoTools {
		t.Errorf("one with its own tools gets %+v", got)
	}
	if req.NewestText() != "new" || (providers.LLMRequest{}).NewestText() != "" {
		t.Errorf("the newest text is %q", req.NewestText())
	}
	if got := (providers.Capabilities{Stateful: true}).Narrow(providers.LLMRequest{Messages: req.Messages[:1]}); len(got.Messages) != 0 {
		t.Errorf("without words of the user: %+v", got)
	}
}

func TestEcho(t *testing.T) {
	if e := providers.NewEcho("a", `{"x":1}`); e.For("a") != `{"x":1}` || e.For("b") != "" {
		t.Errorf("%+v", e)
	}
	for _, text := range []string{"", "{", `"` + strings.Repeat("x", providers.MaxEcho) + `"`} {
		if e := providers.NewEcho("a", text); e != (providers.Echo{}) {
			t.Errorf("%.20q is kept: %d bytes", text, len(e.JSON))
		}
	}
}

func TestAwaitCertain(t *testing.T) {
	if err := (providers.LLMRequest{}).AwaitCertain(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (providers.LLMRequest{Certain: make(chan struct{})}).AwaitCertain(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
