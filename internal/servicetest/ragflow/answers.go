package ragflow

import (
	"bytes"
	"maps"
	"net/http"

	"xiaozhi/internal/servicetest"
)

// chat answers in the server's own shape. What is not streamed is one object.
func (f *Fake) chat(w http.ResponseWriter, r *http.Request, q request) {
	id := f.session(q.Session, q.words())
	switch {
	case q.ChatID != Chat:
		f.refuse(w, 102, "You don't own the chat "+q.ChatID)
		return
	case q.words() == "":
		f.refuse(w, 102, "Please input your question.")
		return
	case id == "":
		f.refuse(w, 102, "You don't own the session")
		return
	}
	n := f.turn(id)
	data := func(answer string, more map[string]any) []byte {
		d := map[string]any{"answer": answer, "reference": map[string]any{}, "audio_binary": nil, "id": "e7f5a5b0", "session_id": id}
		maps.Copy(d, more)
		return event(map[string]any{"code": 0, "message": "", "data": d})
	}
	if q.Stream != nil && !*q.Stream {
		f.Refuse(w, http.StatusOK, string(bytes.TrimPrefix(data(Answer(n, q.words()), nil), []byte("data:"))))
		return
	}
	f.mu.Lock()
	cumulative := f.cumulative || q.Legacy
	f.mu.Unlock()
	var list [][]byte
	if !cumulative {
		list = append(list, data("", map[string]any{"start_to_think": true}), data("hm", nil), data("", map[string]any{"end_to_think": true}))
	}
	said := ""
	for _, piece := range pieces(n, q.words()) {
		if said += piece; cumulative { //nolint:modernize // each of them is sent
			piece = said
		}
		list = append(list, data(piece, nil))
	}
	if cumulative {
		list = append(list, data(said, map[string]any{"reference": map[string]any{"total": 1}}))
	}
	f.stream(w, r, append(list, event(map[string]any{"code": 0, "message": "", "data": true})), data(servicetest.More, nil))
}

// agent answers as an agent does, with events that are named in their data.
func (f *Fake) agent(w http.ResponseWriter, r *http.Request, q request) {
	id := f.session(q.Session, q.words())
	if q.AgentID != Agent || id == "" || q.words() == "" {
		f.refuse(w, 102, "You don't own the agent or the session")
		return
	}
	one := func(name string, data map[string]any) []byte {
		return event(map[string]any{"event": name, "message_id": "m", "task_id": "t", "session_id": id, "created_at": 1, "data": data})
	}
	list := [][]byte{one("workflow_started", map[string]any{"inputs": nil}), one("node_started", map[string]any{"component_name": "Agent"})}
	for _, piece := range pieces(f.turn(id), q.words()) {
		list = append(list, one("message", map[string]any{"content": piece}))
	}
	f.stream(w, r, append(list,
		one("message_end", map[string]any{"reference": map[string]any{}}), one("node_finished", map[string]any{"outputs": map[string]any{"content": "all of it again"}}),
		[]byte("data:[DONE]\n\n")), one("message", map[string]any{"content": servicetest.More}))
}

// openai answers in the shape of OpenAI's, and keeps nothing.
func (f *Fake) openai(w http.ResponseWriter, r *http.Request, q request, id string) {
	turns := 0
	for _, m := range q.Messages {
		if m.Role == "user" {
			turns++
		}
	}
	if id != Chat && id != Agent || turns == 0 {
		f.refuse(w, 102, "The last content of this conversation is not from user, or the chat is not yours.")
		return
	}
	chunk := func(content, finish, usage any) []byte {
		return event(map[string]any{
			"id": "chatcmpl-" + id, "object": "chat.completion.chunk", "created": 1, "model": "model", "system_fingerprint": "", "usage": usage,
			"choices": []any{map[string]any{"index": 0, "logprobs": nil, "finish_reason": finish, "delta": map[string]any{
				"content": content, "role": "assistant", "function_call": nil, "tool_calls": nil,
			}}},
		})
	}
	var list [][]byte
	for _, piece := range pieces(turns, q.words()) {
		list = append(list, chunk(piece, nil, nil))
	}
	usage := map[string]int{"prompt_tokens": 5, "completion_tokens": 188, "total_tokens": 193}
	f.stream(w, r, append(list, chunk(nil, "stop", usage), []byte("data:[DONE]\n\n")), chunk(servicetest.More, nil, nil))
}

// retrieve finds the same chunk for every question.
func (f *Fake) retrieve(w http.ResponseWriter, q request) {
	if q.Question == "" {
		f.refuse(w, 102, "`question` is required.")
		return
	}
	f.Refuse(w, http.StatusOK, `{"code":0,"data":{"total":1,"chunks":[{"content":"The lamp is in the kitchen.","similarity":0.97,"document_keyword":"house.md"}]}}`)
}
