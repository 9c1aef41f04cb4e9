package dashscope

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"xiaozhi/providers/transport"
)

// The events of a task.
const (
	taskStarted  = "task-started"
	taskResult   = "result-generated"
	taskFinished = "task-finished"
	taskFailed   = "task-failed"
)

// command is a message to the inference protocol.
type command struct {
	Header  commandHeader  `json:"header"`
	Payload commandPayload `json:"payload"`
}

type commandHeader struct {
	Action    string `json:"action"`
	TaskID    string `json:"task_id"`
	Streaming string `json:"streaming"`
}

type commandPayload struct {
	TaskGroup  string         `json:"task_group,omitempty"`
	Task       string         `json:"task,omitempty"`
	Function   string         `json:"function,omitempty"`
	Model      string         `json:"model,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
	Input      map[string]any `json:"input"`
}

// report is a message of the inference protocol.
type report struct {
	Header struct {
		Event        string         `json:"event"`
		TaskID       string         `json:"task_id"`
		ErrorCode    transport.Code `json:"error_code"`
		ErrorMessage string         `json:"error_message"`
	} `json:"header"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Payload struct {
		Output struct {
			Sentence *sentence `json:"sentence"`
			Type     string    `json:"type"`
		} `json:"output"`
	} `json:"payload"`
}

// sentence is a result of recognition.
type sentence struct {
	Text        string         `json:"text"`
	EndTime     *transport.Int `json:"end_time"`
	SentenceEnd *bool          `json:"sentence_end"`
	Heartbeat   bool           `json:"heartbeat"`
	ID          transport.Code `json:"sentence_id"` // not of all models
}

// ended says whether the sentence is finished. Some services say so only by its time.
func (s *sentence) ended() bool {
	if s.SentenceEnd != nil {
		return *s.SentenceEnd
	}
	return s.EndTime != nil
}

// task is a task of the inference protocol on a socket. Its methods are for one goroutine
// that sends and one that receives.
type task struct {
	socket *transport.Socket
	id     string
}

// newTask names a task. Every one has an id of its own.
func newTask(socket *transport.Socket) *task {
	return &task{socket: socket, id: strings.ReplaceAll(uuid.NewString(), "-", "")}
}

// run asks for the task and waits until it has started.
func (t *task) run(kind, function, model string, parameters map[string]any, within time.Duration) error {
	err := t.command("run-task", commandPayload{
		TaskGroup: "audio", Task: kind, Function: function, Model: model, Parameters: parameters, Input: map[string]any{},
	})
	for err == nil {
		var m message
		if m, err = t.receive(within); err == nil && m.report.Header.Event == taskStarted {
			return nil
		}
	}
	return err
}

// command sends a command about the task.
func (t *task) command(action string, p commandPayload) error {
	if p.Input == nil {
		p.Input = map[string]any{}
	}
	return t.socket.WriteJSON(command{Header: commandHeader{Action: action, TaskID: t.id, Streaming: "duplex"}, Payload: p})
}

// finish says that nothing more comes.
func (t *task) finish() error { return t.command("finish-task", commandPayload{}) }

// message is sound or a report.
type message struct {
	sound  []byte
	report report
}

// receive returns the next message of this task. Those of others are skipped; a failure is a [*transport.Refusal].
func (t *task) receive(within time.Duration) (message, error) {
	for {
		text, data, err := t.socket.Read(within)
		if err != nil {
			return message{}, err
		}
		if !text {
			return message{sound: data}, nil
		}
		var r report
		if err := transport.Decode(data, &r); err != nil {
			return message{}, err
		}
		if r.Header.Event == "" { // none that is known, or a refusal outside of a task
			if r.Code != "" {
				return message{}, refusal(r.Code, r.Message, t.id)
			}
			continue
		}
		if r.Header.TaskID != "" && !sameTask(r.Header.TaskID, t.id) {
			continue
		}
		if r.Header.Event == taskFailed {
			return message{}, refusal(string(r.Header.ErrorCode), r.Header.ErrorMessage, t.id)
		}
		return message{report: r}, nil
	}
}

// sameTask compares ids, which the service may write with dashes.
func sameTask(a, b string) bool { return strings.ReplaceAll(a, "-", "") == b }
