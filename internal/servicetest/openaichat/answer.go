package openaichat

import (
	"fmt"
	"maps"
	"net/http"

	"xiaozhi/internal/servicetest"
)

// answer collects the events of one.
type answer struct {
	vendor Vendor
	model  string
	list   [][]byte
}

// chunk is an event with a delta.
func (a *answer) chunk(delta object, reason any, more object) []byte {
	o := object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1790000000, "model": a.model,
		"choices": []object{{"index": 0, "delta": delta, "finish_reason": reason}}}
	maps.Copy(o, more)
	return servicetest.Event("", string(servicetest.JSON(o).Data))
}

func (a *answer) add(delta object) { a.list = append(a.list, a.chunk(delta, nil, nil)) }

// begin gives the role, comments, and thoughts where the vendor has them.
func (a *answer) begin(q *request) {
	switch {
	case a.vendor == OpenRouter:
		a.list = append(a.list, []byte(": OPENROUTER PROCESSING\n\n"), []byte(": OPENROUTER PROCESSING\n\n"))
	case a.vendor == DeepSeek:
		a.list = append(a.list, []byte(": keep-alive\n\n"))
	}
	a.add(object{"role": "assistant", "content": ""})
	if q.thinks(a.vendor) {
		for _, p := range servicetest.Thirds("The user speaks.") {
			a.add(object{"reasoning_content": p, "content": nil})
		}
	}
	if a.vendor == MiniMax {
		for _, p := range servicetest.Thirds("<think>The user speaks.</think>\n") {
			a.add(object{"content": p})
		}
	}
	if a.vendor == OpenRouter || a.vendor == Groq {
		a.add(object{"reasoning": "The user speaks."})
	}
}

// text gives a text in pieces.
func (a *answer) text(text string) {
	for _, p := range servicetest.Thirds(text) {
		if a.vendor == Mistral {
			a.add(object{"content": []object{{"type": "text", "text": p}}})
			continue
		}
		a.add(object{"content": p})
	}
}

// calls gives calls in the way of the vendor: whole, or in pieces.
func (a *answer) calls(tools []servicetest.Tool) {
	for i, t := range tools {
		id, args := fmt.Sprintf("call_%02d_%d", i, len(a.list)), servicetest.Arguments(t.Schema)
		call := object{"index": i, "id": id, "type": "function", "function": object{"name": t.Name, "arguments": args}}
		switch a.vendor {
		case Mistral:
			call["id"] = fmt.Sprintf("aB3%06d", i)
		case Gemini:
			call["id"], call["index"] = "", 0
			if i == 0 {
				call["extra_content"] = object{"google": object{"thought_signature": sign(t.Name)}}
			}
		case GLM, MiniMax:
		default:
			a.pieces(call, args)
			continue
		}
		a.add(object{"tool_calls": []object{call}})
	}
}

// pieces gives a call whose arguments come in three.
func (a *answer) pieces(call object, args string) {
	first := object{"index": call["index"], "id": call["id"], "type": "function", "function": object{"arguments": ""}}
	if f, ok := call["function"].(object); ok {
		first["function"] = object{"name": f["name"], "arguments": ""}
	}
	a.add(object{"tool_calls": []object{first}})
	for _, p := range servicetest.Thirds(args) {
		later := object{"index": call["index"], "function": object{"arguments": p}}
		if a.vendor == Qwen {
			later["id"], later["type"] = "", "function"
			later["function"] = object{"name": "", "arguments": p}
		}
		a.add(object{"tool_calls": []object{later}})
	}
	if a.vendor == Qwen {
		a.add(object{"tool_calls": []object{{"index": call["index"], "id": "", "function": object{"name": nil, "arguments": nil}}}})
	}
}

// end gives the reason, the usage, and the end of the stream.
func (a *answer) end(reason string, usage bool) {
	counts := object{"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
	more := object{}
	switch a.vendor {
	case DeepSeek, GLM, OpenRouter:
		more["usage"] = counts
	case Groq:
		more["x_groq"] = object{"id": "req_1", "usage": counts}
	case MiniMax:
		more["base_resp"] = object{"status_code": 0, "status_msg": ""}
	case Kimi:
		more["choices"] = []object{{"index": 0, "delta": object{}, "finish_reason": reason, "usage": counts}}
	}
	a.list = append(a.list, a.chunk(object{}, reason, more))
	if usage && len(more) == 0 {
		a.list = append(a.list, a.chunk(object{}, nil, object{"choices": []object{}, "usage": counts}))
	}
	if a.vendor != Gemini {
		a.list = append(a.list, []byte("data: [DONE]\n\n"))
	}
}

// fail ends the answer with a failure, or returns one that comes instead of it.
func (a *answer) fail() *problem {
	wrong := func(e any) {
		a.list = append(a.list, servicetest.Event("", string(servicetest.JSON(object{"error": e}).Data)))
	}
	switch a.vendor {
	case Groq:
		return &problem{http.StatusBadRequest, "tool_use_failed", "invalid_request_error", "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."}
	case DeepSeek:
		a.list = append(a.list, a.chunk(object{}, "insufficient_system_resource", nil), []byte("data: [DONE]\n\n"))
	case GLM:
		a.list = append(a.list, a.chunk(object{}, "sensitive", nil), []byte("data: [DONE]\n\n"))
	case MiniMax:
		a.list = append(a.list, a.chunk(object{}, nil, object{"choices": nil, "base_resp": object{"status_code": 1027, "status_msg": "output new_sensitive"}}))
	case OpenRouter:
		a.list = append(a.list, a.chunk(object{"content": ""}, "error", object{"error": object{"code": http.StatusBadGateway, "message": "Provider returned error"}}))
	case Qwen:
		wrong(object{"code": "data_inspection_failed", "message": "Output data may contain inappropriate content.", "type": "data_inspection_failed"})
	case Gemini:
		a.list = append(a.list, servicetest.Event("", `[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`))
	default:
		wrong(object{"message": "The server had an error while processing your request.", "type": "server_error", "code": "server_error"})
	}
	return nil
}
