package record

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"xiaozhi/mcp"
	"xiaozhi/providers"
)

// PCM is sound as base64 of 16-bit samples, little endian.
type PCM []int16

// MarshalText encodes the samples.
func (p PCM) MarshalText() ([]byte, error) {
	raw, err := binary.Append(nil, binary.LittleEndian, []int16(p))
	if err != nil {
		return nil, fmt.Errorf("encode sound: %w", err)
	}
	return base64.StdEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText decodes the samples.
func (p *PCM) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("decode sound: %w", err)
	}
	if len(raw)%2 != 0 {
		return fmt.Errorf("decode sound: %d bytes are no 16-bit samples", len(raw))
	}
	*p = make(PCM, len(raw)/2)
	for i := range *p {
		(*p)[i] = int16(binary.LittleEndian.Uint16(raw[2*i:]))
	}
	return nil
}

// maxImage bounds how large a picture in a recording may claim to be, in bytes.
const maxImage = 64 << 20

// Value describes what a tool returned. One member is set; none: nothing was returned.
type Value struct {
	Text   *string         `json:"text,omitempty"`
	JSON   json.RawMessage `json:"json,omitempty"`   // any other value
	Image  *Image          `json:"image,omitempty"`  // an mcp.Image
	List   []*Value        `json:"list,omitempty"`   // blocks with pictures among them
	Action *Outcome        `json:"action,omitempty"` // an mcp.ActionResponse
}

// Image is a picture, of which only type and size are kept.
type Image struct {
	MIMEType string `json:"mime_type"`
	Bytes    int    `json:"bytes"`
}

// Outcome is an mcp.ActionResponse.
type Outcome struct {
	Action   mcp.Action `json:"action"`
	Result   *Value     `json:"result,omitempty"`
	Response *Value     `json:"response,omitempty"`
	Handler  string     `json:"handler,omitempty"` // the result names this handler, and is its arguments
}

// valueOf describes what a tool returned.
func valueOf(v any) *Value {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return &Value{Text: &v}
	case mcp.Image:
		return &Value{Image: &Image{v.MIMEType, len(v.Data)}}
	case mcp.ActionResponse:
		return &Value{Action: outcomeOf(v)}
	case *mcp.ActionResponse:
		if v == nil {
			return nil
		}
		return &Value{Action: outcomeOf(*v)}
	case []any:
		if slices.ContainsFunc(v, isImage) {
			out := &Value{List: []*Value{}}
			for _, block := range v {
				out.List = append(out.List, valueOf(block))
			}
			return out
		}
	}
	data, err := json.Marshal(v)
	if err != nil {
		text := fmt.Sprintf("[%T]", v)
		return &Value{Text: &text}
	}
	return &Value{JSON: data}
}

func isImage(v any) bool {
	_, ok := v.(mcp.Image)
	return ok
}

func outcomeOf(r mcp.ActionResponse) *Outcome {
	o := &Outcome{Action: r.Action, Response: valueOf(r.Response)}
	switch call := r.Result.(type) {
	case mcp.ActionResponseCall:
		o.Handler, o.Result = call.FuncName, valueOf(call.Args)
	case *mcp.ActionResponseCall:
		if call != nil {
			o.Handler, o.Result = call.FuncName, valueOf(call.Args)
		}
	default:
		o.Result = valueOf(r.Result)
	}
	return o
}

// Any is the value again. Pictures are black: zeros of their size.
func (v *Value) Any() any {
	switch {
	case v == nil:
		return nil
	case v.Text != nil:
		return *v.Text
	case v.Image != nil:
		return mcp.Image{MIMEType: v.Image.MIMEType, Data: make([]byte, max(0, min(v.Image.Bytes, maxImage)))}
	case v.List != nil:
		out := make([]any, len(v.List))
		for i, block := range v.List {
			out[i] = block.Any()
		}
		return out
	case v.Action != nil:
		r := mcp.ActionResponse{Action: v.Action.Action, Result: v.Action.Result.Any(), Response: v.Action.Response.Any()}
		if v.Action.Handler != "" {
			r.Result = mcp.ActionResponseCall{FuncName: v.Action.Handler, Args: r.Result}
		}
		return r
	}
	var plain any
	if json.Unmarshal(v.JSON, &plain) != nil {
		return nil
	}
	return plain
}

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
		"language": providers.ErrLanguage,
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
		if errors.Is(err, target) && (name != "language" || providers.LacksLanguage(err)) {
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
