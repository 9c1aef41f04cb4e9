package coze

import (
	"encoding/json"
	"fmt"
	"strings"
)

// toolCall is the id of the one call that the bot makes.
const toolCall = "BUJJF0dAQ0NAEBVeQkVKEV5HFURFXhFCEhFeFxdHShcSQEtFSxY"

// stream makes the events of one chat.
type stream struct {
	conversation, chat, query string
	turn                      int
	stop                      <-chan struct{}
	list                      [][]byte
}

// event adds an event. The service puts no space after its colons.
func (s *stream) event(name string, data any) {
	s.list = append(s.list, event(name, data))
}

func event(name string, data any) []byte {
	raw, _ := json.Marshal(data) // it can be encoded
	return fmt.Appendf(nil, "event:%s\ndata:%s\n\n", name, raw)
}

// chatObject describes the chat in a state.
func (s *stream) chatObject(status string) map[string]any {
	return map[string]any{"id": s.chat, "conversation_id": s.conversation, "bot_id": Bot, "status": status, "last_error": map[string]any{"code": 0, "msg": ""}}
}

// message adds a message of a type, or a piece of one.
func (s *stream) message(event, kind, content, reasoning string) {
	m := map[string]any{
		"id": "7374752000116130000", "conversation_id": s.conversation, "bot_id": Bot, "chat_id": s.chat,
		"role": "assistant", "type": kind, "content": content, "content_type": "text",
	}
	if reasoning != "" {
		m["reasoning_content"] = reasoning
	}
	s.event("conversation.message."+event, m)
}

// pieces are those of the answer to a query: 400 if "long" stands in it, else three.
func pieces(n int, query string) []string {
	if strings.Contains(query, "long") {
		out := make([]string, 400)
		for i := range out {
			out[i] = fmt.Sprintf("piece %d. ", i)
		}
		return out
	}
	words := []rune(Answer(n, query))
	return []string{string(words[:4]), string(words[4:10]), string(words[10:])}
}

// say adds the answer, and all that must not be spoken around it.
func (s *stream) say(pieces []string, b Behaviour) {
	s.message("completed", "function_call", `{"name":"search","arguments":{"q":"x"}}`, "")
	s.message("completed", "tool_response", `{"results":["secret of a plugin"]}`, "")
	s.message("delta", "answer", "", "They ask something.")
	for i, p := range pieces {
		s.message("delta", "answer", p, "")
		if i == 0 && b == Fails {
			return
		}
		if i == 0 {
			s.event("conversation.audio.delta", map[string]any{"type": "answer", "content": "AAAA", "content_type": "audio"})
		}
	}
	s.message("completed", "answer", strings.Join(pieces, ""), "")
	s.message("delta", "follow_up", "Shall I go on?", "")
	s.message("completed", "follow_up", "Shall I go on?", "")
	s.message("completed", "verbose", `{"msg_type":"generate_answer_finish","data":""}`, "")
}

// wantTool adds the call of a tool of the client, after which the stream ends.
func (s *stream) wantTool() {
	call := map[string]any{"id": toolCall, "type": "function", "function": map[string]any{"name": "lamp_on", "arguments": `{"room":"kitchen"}`}}
	s.message("completed", "function_call", `{"name":"lamp_on","arguments":{"room":"kitchen"}}`, "")
	o := s.chatObject("requires_action")
	o["required_action"] = map[string]any{"type": "submit_tool_outputs", "submit_tool_outputs": map[string]any{"tool_calls": []any{call}}}
	s.event("conversation.chat.requires_action", o)
	s.list = append(s.list, []byte("event:done\ndata:\"[DONE]\"\n\n"))
}

// end are the last events of a chat that is not cancelled.
func (b Behaviour) end(s *stream) [][]byte {
	o := s.chatObject("completed")
	o["usage"] = map[string]any{"token_count": 633, "output_count": 19, "input_count": 614}
	last := [][]byte{event("conversation.chat.completed", o)}
	switch b {
	case Fails:
		o = s.chatObject("failed")
		o["last_error"] = map[string]any{"code": 5000, "msg": "An internal error has occurred."}
		last = [][]byte{event("conversation.chat.failed", o)}
	case NoDone:
		return last
	case Debug:
		return append(last, []byte("event:done\ndata:{\"debug_url\":\"https://www.coze.cn/work_flow?execute_id=1\"}\n\n"))
	default:
	}
	return append(last, []byte("event:done\ndata:\"[DONE]\"\n\n"))
}
