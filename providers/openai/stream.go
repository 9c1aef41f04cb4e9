package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	gopenai "github.com/sashabaranov/go-openai"

	"xiaozhi/providers"
)

// chunk is one event of a chat stream. It is read from the raw event, because
// go-openai's own type refuses arguments that are an object.
type chunk struct {
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content          *string     `json:"content"`
			ReasoningContent string      `json:"reasoning_content"`
			Reasoning        string      `json:"reasoning"` // the same by another name: vLLM, Ollama, OpenRouter
			ToolCalls        []callPiece `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Error json.RawMessage `json:"error"`
}

// stream yields what the events hold until the answer is complete.
func (a *answer) stream(events *gopenai.ChatCompletionStream, x *exchange, g *guard) error {
	for !a.finished {
		if a.begun {
			g.arm(a.llm.o.Timeouts.NextToken)
		} else {
			g.arm(time.Until(a.deadline))
		}
		raw, err := events.RecvRaw()
		g.disarm()
		if errors.Is(err, io.EOF) && x.done() {
			break
		}
		if errors.Is(err, io.EOF) {
			return errors.New("the stream ended before the answer was complete")
		}
		if err != nil {
			return err
		}
		if err := a.event(raw); err != nil || a.left {
			return err
		}
	}
	return a.finish()
}

// event yields what one event holds.
func (a *answer) event(raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	if message, ok := errorMessage(raw); ok {
		return &statusError{text: message}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // we ask for one choice
		}
		var d providers.Delta
		d.Thought = choice.Delta.ReasoningContent
		if d.Thought == "" {
			d.Thought = choice.Delta.Reasoning
		}
		if choice.Delta.Content != nil {
			text, thought := a.think.push(*choice.Delta.Content)
			d.Text, d.Thought = text, d.Thought+thought
		}
		a.emit(d)
		for _, piece := range choice.Delta.ToolCalls {
			if err := a.piece(piece); err != nil {
				return err
			}
		}
		if choice.FinishReason == "error" {
			return errors.New("the server ended the answer with an error")
		}
		a.finished = a.finished || choice.FinishReason != ""
	}
	return nil
}

// piece takes a piece of a tool call and yields the calls that are complete by it.
func (a *answer) piece(p callPiece) error {
	calls, err := a.calls.push(p)
	a.emit(providers.Delta{ToolCalls: calls})
	return err
}

// finish yields what was held back, and looks whether there was an answer at all.
func (a *answer) finish() error {
	text, thought := a.think.flush()
	a.emit(providers.Delta{Text: text, Thought: thought})
	calls, err := a.calls.flush()
	if err != nil {
		return err
	}
	a.emit(providers.Delta{ToolCalls: calls})
	if !a.spoken && !a.left {
		return errors.New("the answer is empty")
	}
	return nil
}
