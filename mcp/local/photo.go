package local

import (
	"context"
	"strings"

	"xiaozhi/mcp"
)

// camera is the device's tool that takes a picture.
type camera struct {
	tool, argument string
	plain          bool // the model needs no other: it is named so and takes the question
}

func cameraOf(tools []mcp.Tool) (camera, bool) {
	for _, tool := range tools {
		t, ok := readTool(tool, "photo", "picture", "camera")
		if !ok || t.has("set", "get", "stop", "off", "on", "preview", "show", "delete") {
			continue
		}
		argument := t.only([]string{"string"}, "question", "prompt", "text", "query")
		if argument == "" && !t.free("") {
			continue
		}
		return camera{t.name, argument, argument != "" && t.has("photo", "picture")}, true
	}
	return camera{}, false
}

// lacksPhoto reports whether take_photo is offered: there is a camera, but its tool is
// not one that a model can just ask.
func lacksPhoto(tools []mcp.Tool) bool {
	c, ok := cameraOf(tools)
	return ok && !c.plain
}

// takePhoto leaves it to the conversation, which can look at the picture.
func takePhoto(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	c, ok := cameraOf(mcp.PeerFrom(ctx).Tools())
	if !ok {
		return fail(say(ctx, "local/no-camera"))
	}
	question := strings.TrimSpace(textArg(arguments, "question"))
	if question == "" {
		question = say(ctx, "local/in-picture")
	}
	return handOver(mcp.HandlerTakePhoto, mcp.PhotoArgs{Question: question, Tool: c.tool, Argument: c.argument})
}
