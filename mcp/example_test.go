package mcp_test

import (
	"fmt"

	"xiaozhi/mcp"
)

// What a tool returns decides what a conversation does next, and what an MCP
// client is shown.
func ExampleActionResponse_Outcome() {
	for _, r := range []mcp.ActionResponse{
		{Action: mcp.ActionTypeReqLLM, Result: map[string]any{"volume": 30}},
		{Action: mcp.ActionTypeResponse, Response: "The volume is now 30."},
		{Action: mcp.ActionTypeError, Result: "the device refused"},
	} {
		o := r.Outcome("en")
		fmt.Printf("history %q, say %q, ask the model again %v, failed %v\n", o.Text, o.Say, o.Again, o.Failed)
	}
	// Output:
	// history "{\"volume\":30}", say "", ask the model again true, failed false
	// history "The volume is now 30.", say "The volume is now 30.", ask the model again false, failed false
	// history "the device refused", say "", ask the model again true, failed true
}

// Models take no dots in the name of a function, and no name twice.
func ExampleFunctionNames() {
	fmt.Println(mcp.FunctionNames([]string{"self.lamp.turn_on", "self_lamp_turn_on", "查询天气"}))
	// Output: [self_lamp_turn_on self_lamp_turn_on_2 tool_22cf3c76]
}

// A tool that does not say whether its result is awaited is judged by the
// settings, by its hints and by its name.
func ExampleExplainKind() {
	overrides := map[string]mcp.Kind{"self.door.*": mcp.Query}
	for _, name := range []string{"self.lamp.turn_on", "self.lamp.get_power", "self.door.open"} {
		kind, why := mcp.ExplainKind(mcp.Tool{Name: name}, overrides)
		fmt.Printf("%s: %s (%s)\n", name, kind, why)
	}
	// Output:
	// self.lamp.turn_on: control (its name begins with turn)
	// self.lamp.get_power: query (nothing says that it is a control)
	// self.door.open: query (tools.kinds: self.door.*)
}
