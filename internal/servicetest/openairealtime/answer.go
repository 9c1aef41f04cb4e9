package openairealtime

import (
	"fmt"
	"strings"
	"time"

	"xiaozhi/internal/servicetest"
)

// send puts an event behind those that are to be sent.
func (t *talk) send(s step) {
	if len(t.queue) == 0 {
		t.due = time.Now().Add(pace)
	}
	t.queue = append(t.queue, s)
}

// step sends the next event.
func (t *talk) step() bool {
	s := t.queue[0]
	t.queue = t.queue[1:]
	t.due = time.Now().Add(pace)
	if s.sound > 0 {
		t.lengths[s.item] += s.sound
	}
	if strings.Contains(string(s.m.Data), `"type":"response.done"`) {
		t.before, t.response = t.response, ""
	}
	if s.result {
		return t.line.Result(s.m, servicetest.Text(`{"type":"response.output_au`))
	}
	return t.line.Say(s.m)
}

// name is that of an event of sound or text: those of the beta are shorter.
func (t *talk) name(kind string) string {
	if t.d.Old {
		return "response." + kind
	}
	return "response.output_" + kind
}

// respond begins a response to what was asked last.
func (t *talk) respond() bool {
	if t.line.Fault() == servicetest.Late {
		t.line.Hold()
		return false
	}
	t.count++
	id := fmt.Sprintf("resp_%03d", t.count)
	t.response = id
	if !t.says("response.created", "response", map[string]any{"id": id, "object": "realtime.response", "status": "in_progress", "output": []any{}}) {
		return false
	}
	if t.before != "" && t.line.Fault() == servicetest.Stale && !t.stale() {
		return false
	}
	waiting := t.queue // the words of the user come amid the answer
	t.queue = nil
	if p := t.d.Fails(t.line.Fault()); p != nil {
		t.queue = waiting
		t.finish("failed", map[string]any{"type": "failed", "error": map[string]any{"type": p.Type, "code": p.Code, "message": p.Message}}, nil)
		return true
	}
	asked := t.asked
	t.asked = ""
	tools := servicetest.Asked(asked, t.set.Tools)
	if len(tools) > 0 && !t.told {
		t.callTools(tools)
	} else {
		t.speak(servicetest.Answer(asked))
	}
	at := min(5, len(t.queue))
	t.queue = append(t.queue[:at:at], append(waiting, t.queue[at:]...)...)
	return true
}

// finish ends the response.
func (t *talk) finish(status string, details any, output []any) {
	t.send(step{of: t.response, m: message("response.done", "response", map[string]any{
		"id": t.response, "object": "realtime.response", "status": status, "status_details": details, "output": output,
		"usage": map[string]any{"total_tokens": 30, "input_tokens": 20, "output_tokens": 10},
	})})
	t.send(step{m: message("rate_limits.updated", "rate_limits", []any{map[string]any{"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 60}})})
}

// about adds an event of the response about an item of it.
func (t *talk) about(kind, item string, index int, pairs ...any) {
	pairs = append(pairs, "response_id", t.response, "item_id", item, "output_index", index)
	t.send(step{of: t.response, m: message(kind, pairs...)})
}

// speak says a text, as sound with a transcript that runs ahead and lags behind, or as text.
func (t *talk) speak(text string) {
	id := t.item()
	t.items++
	t.lengths[id] = 0
	item := map[string]any{"id": id, "object": "realtime.item", "type": "message", "role": "assistant", "status": "in_progress", "content": []any{}}
	t.about("response.output_item.added", id, 0, "item", item)
	created := "conversation.item.added"
	if t.d.Old {
		created = "conversation.item.created"
	}
	t.send(step{of: t.response, m: message(created, "item", item)})
	t.about("response.content_part.added", id, 0, "content_index", 0, "part", map[string]any{"type": "audio", "transcript": ""})
	words := servicetest.Thirds(text)
	if t.set.Mute {
		for _, w := range words {
			t.send(step{of: t.response, result: true, m: message(t.name("text.delta"), "response_id", t.response, "item_id", id, "output_index", 0, "content_index", 0, "delta", w)})
		}
		t.about(t.name("text.done"), id, 0, "content_index", 0, "text", text)
	} else {
		t.about(t.name("audio_transcript.delta"), id, 0, "content_index", 0, "delta", words[0], "obfuscation", "aZ3")
		for i, p := range t.pieces(text) {
			t.send(step{of: t.response, item: id, sound: len(p), result: true, m: message(t.name("audio.delta"), "response_id", t.response, "item_id", id, "output_index", 0, "content_index", 0, "delta", p)})
			if i == 1 {
				t.about(t.name("audio_transcript.delta"), id, 0, "content_index", 0, "delta", words[1])
			}
		}
		t.about(t.name("audio.done"), id, 0, "content_index", 0)
		t.about(t.name("audio_transcript.delta"), id, 0, "content_index", 0, "delta", words[2])
		t.about(t.name("audio_transcript.done"), id, 0, "content_index", 0, "transcript", text)
	}
	item["status"] = "completed"
	t.about("response.content_part.done", id, 0, "content_index", 0, "part", map[string]any{"type": "audio", "transcript": text})
	t.about("response.output_item.done", id, 0, "item", item)
	t.finish("completed", nil, []any{item})
}

// pieces cuts the sound of a text unevenly, if it is odd within samples.
func (t *talk) pieces(text string) (out [][]byte) {
	sound := servicetest.Speech(text, 24000)
	for n := 2400; len(sound) > 0; n = n%7200 + 1200 {
		k := min(n, len(sound))
		if t.line.Fault() == servicetest.Odd && k < len(sound) {
			k |= 1
		}
		out = append(out, sound[:k])
		sound = sound[k:]
	}
	return out
}

// callTools calls tools, all in one response: their arguments come in three pieces each,
// those of several interleaved.
func (t *talk) callTools(tools []servicetest.Tool) {
	items := make([]map[string]any, len(tools))
	pieces := make([][]string, len(tools))
	for i, tool := range tools {
		t.items++
		call := fmt.Sprintf("call_%03d_%d", t.count, i)
		t.calls[call] = false
		items[i] = map[string]any{"id": t.item(), "object": "realtime.item", "type": "function_call", "status": "in_progress", "call_id": call, "name": tool.Name, "arguments": ""}
		pieces[i] = servicetest.Thirds(servicetest.Arguments(tool.Schema))
		t.items++
		t.about("response.output_item.added", id(items[i]), i, "item", items[i])
	}
	for n := range 3 {
		for i, item := range items {
			t.about("response.function_call_arguments.delta", id(item), i, "call_id", item["call_id"], "delta", pieces[i][n])
		}
	}
	var output []any
	for i, item := range items {
		arguments := strings.Join(pieces[i], "")
		done := []any{"call_id", item["call_id"], "arguments", arguments}
		if !t.d.Nameless {
			done = append(done, "name", item["name"])
		}
		t.about("response.function_call_arguments.done", id(item), i, done...)
		item["status"], item["arguments"] = "completed", arguments
		t.about("response.output_item.done", id(item), i, "item", item)
		output = append(output, item)
	}
	t.queue[len(t.queue)-1].result = true
	t.finish("completed", nil, output)
}

func id(item map[string]any) string {
	s, _ := item["id"].(string)
	return s
}

// cancel ends the response that is running. A piece of it comes afterwards.
func (t *talk) cancel(reason string) bool {
	var rest []step
	for _, s := range t.queue {
		if s.of != t.response {
			rest = append(rest, s)
		}
	}
	t.queue = rest
	t.before, t.response = t.response, ""
	return t.says("response.done", "response", map[string]any{
		"id": t.before, "object": "realtime.response", "status": "cancelled", "status_details": map[string]any{"type": "cancelled", "reason": reason}, "output": []any{},
	}) && t.stale()
}

// stale sends a piece of the response that ended last.
func (t *talk) stale() bool {
	return t.says(t.name("audio.delta"), "response_id", t.before, "item_id", "item_stale", "output_index", 0, "content_index", 0, "delta", make([]byte, 960))
}
