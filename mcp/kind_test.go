package mcp

import "testing"

func TestExplainKind(t *testing.T) {
	yes, no := true, false
	overrides := map[string]Kind{
		"self.lamp.*":        Query,
		"self.lamp.turn_*":   Control,
		"self.lamp.turn_off": Query,
		"*.report":           Control,
		"[":                  Control, // malformed: fits nothing
	}
	tests := []struct {
		why  string
		tool Tool
		want Kind
	}{
		{"declared, whatever else is said", Tool{Name: "self.lamp.turn_off", Kind: Control}, Control},
		{"an unknown declared kind does not count", Tool{Name: "self.get", Kind: "other"}, Query},
		{"an exact override before patterns", Tool{Name: "self.lamp.turn_off"}, Query},
		{"a longer pattern before a shorter", Tool{Name: "self.lamp.turn_on"}, Control},
		{"a pattern", Tool{Name: "self.lamp.set_color"}, Query},
		{"an override before annotations", Tool{Name: "self.report", Annotations: Annotations{ReadOnly: &yes}}, Control},
		{"readOnlyHint", Tool{Name: "self.fan.set_speed", Annotations: Annotations{ReadOnly: &yes}}, Query},
		{"readOnlyHint false says nothing", Tool{Name: "self.fan.info", Annotations: Annotations{ReadOnly: &no}}, Query},
		{"readOnlyHint false, an order by name", Tool{Name: "self.fan.set_speed", Annotations: Annotations{ReadOnly: &no}}, Control},
		{"set_", Tool{Name: "self.audio_speaker.set_volume"}, Control},
		{"set_", Tool{Name: "self.screen.set_brightness"}, Control},
		{"turn_", Tool{Name: "self.light.turn_on"}, Control},
		{"go_", Tool{Name: "self.chassis.go_forward"}, Control},
		{"camel case", Tool{Name: "Lamp.TurnOn"}, Control},
		{"one word", Tool{Name: "play"}, Control},
		{"on", Tool{Name: "self.light.on"}, Control},
		{"dashes", Tool{Name: "open-door"}, Control},
		{"only the beginning of a word", Tool{Name: "self.settings"}, Query},
		{"only the last part counts", Tool{Name: "set.status"}, Query},
		{"only the first word counts", Tool{Name: "get_play_list"}, Query},
		{"get_", Tool{Name: "self.get_device_status"}, Query},
		{"camera", Tool{Name: "self.camera.take_photo"}, Query},
		{"anything of the camera", Tool{Name: "self.camera.start_scan"}, Query},
		{"a photo", Tool{Name: "show_photo"}, Query},
		{"a picture of the screen", Tool{Name: "self.screen.snapshot"}, Query},
		{"Chinese", Tool{Name: "开灯"}, Query},
		{"no name", Tool{}, Query},
		{"ends with a dot", Tool{Name: "set."}, Query},
	}
	for _, test := range tests {
		if got, _ := ExplainKind(test.tool, overrides); got != test.want {
			t.Errorf("%s: ExplainKind(%q) = %q, want %q", test.why, test.tool.Name, got, test.want)
		}
	}
}

func TestToolType(t *testing.T) {
	tests := map[ToolType]struct {
		value int
		kind  Kind
	}{
		ToolNone: {1, Control}, ToolWait: {2, Query}, ToolChangeSysPrompt: {3, Query},
		ToolSystemCtl: {4, Query}, ToolIotCtl: {5, Control}, ToolMcpClient: {6, ""}, ToolType(7): {7, ""},
	}
	for tool, want := range tests {
		if int(tool) != want.value || tool.Kind() != want.kind {
			t.Errorf("tool type %d: kind %q, want %d, %q", tool, tool.Kind(), want.value, want.kind)
		}
	}
}

func TestActionValues(t *testing.T) {
	tests := map[Action]struct {
		value int
		name  string
	}{
		ActionTypeError: {-1, "error"}, ActionTypeNotFound: {0, "not_found"}, ActionTypeNone: {1, "none"},
		ActionTypeResponse: {2, "response"}, ActionTypeReqLLM: {3, "req_llm"}, ActionTypeCallHandler: {4, "call_handler"},
		Action(9): {9, "unknown"},
	}
	for action, want := range tests {
		if int(action) != want.value || action.String() != want.name {
			t.Errorf("action %d is %q, want %d, %q", action, action, want.value, want.name)
		}
	}
}
