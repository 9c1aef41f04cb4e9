package record

import (
	"context"
	"errors"
	"io"

	"xiaozhi/mcp"
	"xiaozhi/providers"
)

// Fault is an error, with what others ask of errors.
type Fault struct {
	Text     string         `json:"text"`
	Provider string         `json:"provider,omitempty"` // of a providers.Error
	Op       string         `json:"op,omitempty"`
	Kind     providers.Kind `json:"kind,omitempty"`
	Is       string         `json:"is,omitempty"`   // the name of a known error that it is
	Gone     bool           `json:"gone,omitempty"` // the caller's context had ended
}

// known are the errors that somebody asks for by errors.Is.
func known() map[string]error {
	return map[string]error{
		"canceled": context.Canceled, "deadline": context.DeadlineExceeded, "eof": io.EOF,
		"no_tool": mcp.ErrNoTool, "utterance_full": providers.ErrUtteranceFull, "utterance_closed": providers.ErrUtteranceClosed,
	}
}

// faultOf describes an error that came under a context; nil for none.
func faultOf(ctx context.Context, err error) *Fault {
	f := plainFault(err)
	if f != nil {
		f.Gone = ctx.Err() != nil
	}
	return f
}

// plainFault describes an error; nil for none.
func plainFault(err error) *Fault {
	if err == nil {
		return nil
	}
	f := &Fault{Text: err.Error()}
	if p, ok := errors.AsType[*providers.Error](err); ok {
		f.Provider, f.Op, f.Kind, f.Text = p.Provider, p.Op, p.Kind, p.Err.Error()
	}
	for name, target := range known() {
		if errors.Is(err, target) {
			f.Is = name
		}
	}
	return f
}

// Err is an error that answers as the recorded one did.
func (f *Fault) Err() error {
	if f == nil {
		return nil
	}
	var err error = &recorded{text: f.Text, is: known()[f.Is]}
	if f.Provider != "" || f.Op != "" {
		return &providers.Error{Provider: f.Provider, Op: f.Op, Kind: f.Kind, Err: err}
	}
	return err
}

// recorded is an error out of a recording.
type recorded struct {
	text string
	is   error
}

// Error is the text of the recorded error.
func (e *recorded) Error() string { return e.text }

// Unwrap is the known error that it was; nil for none.
func (e *recorded) Unwrap() error { return e.is }
