package keeper

import (
	"encoding/json"

	"xiaozhi/providers"
	"xiaozhi/store"
)

// storedMessages makes the rows of the messages of a turn.
func storedMessages(messages []providers.Message) []store.Message {
	rows := make([]store.Message, 0, len(messages))
	for i := range messages {
		if m := &messages[i]; m.Content != "" || len(m.ToolCalls) > 0 || m.ToolCallID != "" {
			rows = append(rows, store.Message{Role: string(m.Role), Body: messageBody(m)})
		}
	}
	return rows
}

// body is the JSON form of a message that has more than words. One that has only words is a JSON string. Pictures are
// not kept.
type body struct {
	Text   string     `json:"text,omitempty"`
	Calls  []bodyCall `json:"calls,omitempty"`
	CallID string     `json:"call_id,omitempty"`
	Echo   *bodyEcho  `json:"echo,omitempty"`
}

type bodyCall struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Arguments string    `json:"arguments"`
	Echo      *bodyEcho `json:"echo,omitempty"`
}

type bodyEcho struct {
	Owner string          `json:"owner"`
	JSON  json.RawMessage `json:"json"`
}

// storedEcho is the form of an echo; nil for none.
func storedEcho(e providers.Echo) *bodyEcho {
	if e.JSON == "" {
		return nil
	}
	return &bodyEcho{e.Owner, json.RawMessage(e.JSON)}
}

// echo undoes storedEcho.
func (e *bodyEcho) echo() providers.Echo {
	if e == nil {
		return providers.Echo{}
	}
	return providers.NewEcho(e.Owner, string(e.JSON))
}

func messageBody(m *providers.Message) string {
	var v any = m.Content
	if len(m.ToolCalls) > 0 || m.ToolCallID != "" || m.Echo.JSON != "" {
		b := body{Text: m.Content, CallID: m.ToolCallID, Echo: storedEcho(m.Echo)}
		for _, c := range m.ToolCalls {
			b.Calls = append(b.Calls, bodyCall{c.ID, c.Name, c.Arguments, storedEcho(c.Echo)})
		}
		v = b
	}
	data, err := json.Marshal(v)
	if err != nil {
		return `""` // strings always have a form
	}
	return string(data)
}

// ReadMessage undoes messageBody.
func ReadMessage(row store.Message) (providers.Message, error) {
	m := providers.Message{Role: providers.Role(row.Role)}
	if json.Unmarshal([]byte(row.Body), &m.Content) == nil {
		return m, nil
	}
	var b body
	if err := json.Unmarshal([]byte(row.Body), &b); err != nil {
		return m, err
	}
	m.Content, m.ToolCallID, m.Echo = b.Text, b.CallID, b.Echo.echo()
	for _, c := range b.Calls {
		m.ToolCalls = append(m.ToolCalls, providers.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Echo: c.Echo.echo()})
	}
	return m, nil
}
