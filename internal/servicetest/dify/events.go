package dify

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"

	"xiaozhi/internal/servicetest"
)

func readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
}

// stream makes the events of one answer.
type stream struct {
	task, conversation string
	list               [][]byte
}

// add adds an event, which names task, message and conversation.
func (s *stream) add(event string, more map[string]any) {
	e := map[string]any{"event": event, "task_id": s.task, "message_id": "663c5084-a254-4040-8ad3-51f2a3c1a77c", "id": "663c5084-a254-4040-8ad3-51f2a3c1a77c", "created_at": 1705398420}
	if s.conversation != "" {
		e["conversation_id"] = s.conversation
	}
	maps.Copy(e, more)
	raw, _ := json.Marshal(e) // it can be encoded
	s.list = append(s.list, servicetest.Event("", string(raw)))
}

// ping adds the sign of life, which has no data.
func (s *stream) ping() { s.list = append(s.list, []byte("event: ping\n\n")) }

var usage = map[string]any{"usage": map[string]any{"prompt_tokens": 1033, "completion_tokens": 135, "total_tokens": 1168}}

// chat answers a query of a chatbot, an agent or a chatflow.
func (f *Fake) chat(w http.ResponseWriter, r *http.Request, app App, q request) {
	id, n, ok := f.turn(q)
	if !ok {
		f.refuse(w, http.StatusNotFound, "not_found", "Conversation Not Exists.")
		return
	}
	if q.Mode != "streaming" {
		raw, _ := json.Marshal(map[string]any{"event": "message", "answer": Answer(n, *q.Query), "conversation_id": id, "metadata": usage}) // it can be encoded
		f.Refuse(w, http.StatusOK, string(raw))
		return
	}
	task, stopped, end := f.begin(q.User)
	s := &stream{task: task, conversation: id}
	s.opening(app)
	s.answer(app, pieces(n, *q.Query))
	last := &stream{task: task, conversation: id}
	last.closing(app)
	f.run(w, r, s.list, last.list, stopped, end)
}

// run sends an answer. One whose reader is gone goes on until it is stopped or complete.
func (f *Fake) run(w http.ResponseWriter, r *http.Request, list, last [][]byte, stopped <-chan struct{}, end func()) {
	whole := false
	defer func() {
		if whole {
			end()
		}
	}()
	whole = f.Stream(w, r, f.Fault(), servicetest.Events{
		List: list, Last: last, Pause: pause, Stop: stopped,
		Broken: []byte("data: {\"event\": \"mess\n\n"), Filler: servicetest.Event("", `{"event":"message","answer":"`+servicetest.More+`"}`),
	})
}

// opening are the events before the answer.
func (s *stream) opening(app App) {
	s.ping()
	switch app {
	case Chatflow, FailedFlow, PausedFlow:
		s.add("workflow_started", map[string]any{"workflow_run_id": "r", "data": map[string]any{"id": "r"}})
		s.add("node_started", map[string]any{"data": map[string]any{"title": "LLM"}})
	case Agent, NewAgent:
		s.add("agent_thought", map[string]any{"thought": "They ask something.", "tool": "", "position": 1})
	default:
	}
}

// answer are the pieces of the answer, with whatever the app puts between them.
func (s *stream) answer(app App, pieces []string) {
	event := "message"
	if app == Agent || app == NewAgent {
		event = "agent_message"
	}
	for i, p := range pieces {
		s.add(event, map[string]any{"answer": p})
		if i > 0 {
			continue
		}
		s.add("reasoning_chunk", map[string]any{"data": map[string]any{"reasoning": "hm", "is_final": false}})
		s.add("tts_message", map[string]any{"audio": "qqqa"})
		s.ping()
		switch app {
		case FailedFlow, PausedFlow, FailsMidway:
			return
		case Moderated:
			s.add("message_replace", map[string]any{"answer": "I cannot talk about that."})
			return
		default:
		}
	}
	if app == NewAgent {
		s.add("message", map[string]any{"answer": strings.Join(pieces, "")})
	}
}

// closing are the events after the answer.
func (s *stream) closing(app App) {
	switch app {
	case FailsMidway:
		s.add("error", map[string]any{"status": 400, "code": "completion_request_error", "message": "the model behind has failed"})
		return
	case FailedFlow:
		s.add("workflow_finished", map[string]any{"data": map[string]any{"status": "failed", "error": "node LLM failed"}})
		s.add("error", map[string]any{"status": 400, "code": "invalid_param", "message": "node LLM failed"})
		return
	case PausedFlow:
		s.add("human_input_required", map[string]any{"data": map[string]any{"form_id": "f"}})
		s.add("workflow_paused", map[string]any{"data": map[string]any{"status": "paused"}})
		return
	default:
	}
	s.add("message_end", map[string]any{"metadata": usage})
	if app == Chatflow {
		s.add("workflow_finished", map[string]any{"data": map[string]any{"status": "succeeded", "outputs": map[string]any{"answer": "…"}}})
	}
}

// flow answers a workflow or a completion app, which have no conversation.
func (f *Fake) flow(w http.ResponseWriter, r *http.Request, path string, q request) {
	query, _ := q.Inputs["query"].(string)
	if query == "" {
		f.refuse(w, http.StatusBadRequest, "invalid_param", "query is required in input form")
		return
	}
	task, stopped, end := f.begin(q.User)
	s, last := &stream{task: task}, &stream{task: task}
	s.ping()
	if path == "/completion-messages" {
		s.answer(Completion, pieces(1, query))
		last.add("message_end", map[string]any{"metadata": usage})
	} else {
		s.add("workflow_started", map[string]any{"workflow_run_id": "r"})
		for _, p := range pieces(1, query) {
			s.add("text_chunk", map[string]any{"data": map[string]any{"text": p, "from_variable_selector": []string{"llm", "text"}}})
		}
		last.add("workflow_finished", map[string]any{"data": map[string]any{"status": "succeeded", "outputs": map[string]any{"answer": strings.Join(pieces(1, query), "")}}})
	}
	f.run(w, r, s.list, last.list, stopped, end)
}
