package openai

import (
	"encoding/base64"
	"encoding/json"

	gopenai "github.com/sashabaranov/go-openai"

	"xiaozhi/providers"
)

// noParameters is the schema of a tool that takes nothing.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// chatRequest maps a step to the wire's request.
func (o Options) chatRequest(req providers.LLMRequest) gopenai.ChatCompletionRequest {
	chat := gopenai.ChatCompletionRequest{Model: o.Model, Stream: true}
	for _, m := range req.Messages {
		chat.Messages = append(chat.Messages, chatMessage(m))
	}
	for _, spec := range req.Tools {
		parameters := spec.Parameters
		if len(parameters) == 0 {
			parameters = noParameters
		}
		chat.Tools = append(chat.Tools, gopenai.Tool{
			Type: gopenai.ToolTypeFunction,
			Function: &gopenai.FunctionDefinition{
				Name: spec.Name, Description: spec.Description, Parameters: parameters,
			},
		})
	}
	if req.NoTools && len(chat.Tools) > 0 { // with no tools listed, servers refuse a choice
		chat.ToolChoice = "none"
	}
	return chat
}

// chatMessage maps one message. Calls go out with arguments that are JSON, for
// strict servers refuse a dialogue that holds a model's broken ones.
func chatMessage(m providers.Message) gopenai.ChatCompletionMessage {
	message := gopenai.ChatCompletionMessage{Role: string(m.Role), Content: m.Content, ToolCallID: m.ToolCallID}
	if len(m.Images) > 0 {
		message.Content, message.MultiContent = "", parts(m)
	}
	for _, call := range m.ToolCalls {
		arguments := call.Arguments
		if !json.Valid([]byte(arguments)) {
			arguments = "{}"
		}
		message.ToolCalls = append(message.ToolCalls, gopenai.ToolCall{
			ID: call.ID, Type: gopenai.ToolTypeFunction,
			Function: gopenai.FunctionCall{Name: call.Name, Arguments: arguments},
		})
	}
	return message
}

// parts is the content of a message that holds pictures: the text and then each
// picture as a data URL, which every server takes, also one on this machine.
func parts(m providers.Message) []gopenai.ChatMessagePart {
	var out []gopenai.ChatMessagePart
	if m.Content != "" {
		out = append(out, gopenai.ChatMessagePart{Type: gopenai.ChatMessagePartTypeText, Text: m.Content})
	}
	for _, image := range m.Images {
		out = append(out, gopenai.ChatMessagePart{
			Type: gopenai.ChatMessagePartTypeImageURL,
			ImageURL: &gopenai.ChatMessageImageURL{
				URL: "data:" + image.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(image.Data),
			},
		})
	}
	return out
}
