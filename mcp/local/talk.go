package local

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"xiaozhi/mcp"
)

// originalRole is what the model says to go back to the role it began with.
const originalRole = "original"

// roles are the names of the roles that there are.
type roles []string

// schema lets the model choose among the roles that there are.
func (r roles) schema(definition string) string {
	names, _ := json.Marshal(append(slices.Clone(r), originalRole)) // texts always encode
	return strings.Replace(definition, `"{roles}"`, string(names), 1)
}

// changeRole asks the conversation to take another role, or the first one again.
func (r roles) changeRole(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	role := strings.TrimSpace(textArg(arguments, "role"))
	if role == originalRole {
		return handOver(mcp.HandlerChangeRole, mcp.RoleArgs{})
	}
	if !slices.Contains(r, role) {
		return fail(say(ctx, "local/role-none", role, strings.Join(r, ", ")))
	}
	return handOver(mcp.HandlerChangeRole, mcp.RoleArgs{Role: role})
}

// forget asks the conversation to forget what was said.
func forget(context.Context, map[string]any) mcp.ActionResponse {
	return handOver(mcp.HandlerForget, nil)
}

// remember asks the conversation to keep something for good.
func remember(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	words := strings.TrimSpace(textArg(arguments, "text"))
	if words == "" {
		return fail(say(ctx, "local/remember-what"))
	}
	return handOver(mcp.HandlerMemory, mcp.MemoryArgs{Action: mcp.MemoryRemember, Text: words})
}

// memory asks the conversation about what is remembered.
func memory(action mcp.MemoryAction) Handler {
	return func(_ context.Context, arguments map[string]any) mcp.ActionResponse {
		return handOver(mcp.HandlerMemory, mcp.MemoryArgs{Action: action, Text: strings.TrimSpace(textArg(arguments, "about"))})
	}
}

// enrol asks the conversation to learn somebody's voice.
func enrol(_ context.Context, arguments map[string]any) mcp.ActionResponse {
	return handOver(mcp.HandlerEnrol, mcp.EnrolArgs{Name: strings.TrimSpace(textArg(arguments, "name"))})
}

// exit asks the conversation to end itself. The arguments go on as they are.
func exit(_ context.Context, arguments map[string]any) mcp.ActionResponse {
	return handOver(mcp.HandlerExit, arguments)
}
