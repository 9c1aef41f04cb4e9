package devicetest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"
)

// Property is one argument of a tool. Devices know no nesting and no descriptions.
type Property struct {
	Name    string `json:"-"`
	Type    string `json:"type"`              // boolean, integer or string
	Default any    `json:"default,omitempty"` // nil: the argument is required
	Min     *int   `json:"minimum,omitempty"` // of integers; nil: no limit
	Max     *int   `json:"maximum,omitempty"`
}

// Tool is one MCP tool that the device offers.
type Tool struct {
	Name        string
	Description string
	Properties  []Property
	UserOnly    bool // listed only for people, never for a model
	// Call runs in the main task: the device is frozen until it returns. ctx ends with the device.
	// The text of an error is sent as the firmware would, without escaping.
	Call func(ctx context.Context, c Call) (Result, error)
}

// Call holds the arguments of one call and what a camera needs.
type Call struct {
	Arguments map[string]any // bool, int or string, as the schema says
	Vision    Vision         // from initialize; its URL is empty if there was none
	DeviceID  string
	ClientID  string

	client  *http.Client
	violate func(at time.Time, rule Rule, format string, args ...any)
}

// Vision is the address to which a camera sends its pictures.
type Vision struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// Result is the outcome of a tool: a text, or a picture in the firmware's own shape.
type Result struct {
	Text string
	JPEG []byte // if set, an image result
}

func (r Result) encode() (string, error) {
	type content struct {
		Type  string `json:"type"`
		Text  string `json:"text,omitempty"`
		Image string `json:"image,omitempty"` // JSON in a string (5.4)
	}
	out := content{Type: "text", Text: r.Text}
	if r.JPEG != nil {
		inner := fmt.Sprintf(`{"type":"image","mimeType":"image/jpeg","data":"%s"}`, base64.StdEncoding.EncodeToString(r.JPEG))
		out = content{Type: "image", Image: inner}
	}
	raw, err := json.Marshal(out)
	return fmt.Sprintf(`{"content":[%s],"isError":false}`, raw), err
}

type annotations struct {
	Audience []string `json:"audience"`
}

// toolDescription is a tool as devices write it (5.3).
type toolDescription struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	InputSchema struct {
		Type       string              `json:"type"`
		Properties map[string]Property `json:"properties"`
		Required   []string            `json:"required,omitempty"`
	} `json:"inputSchema"`
	Annotations *annotations `json:"annotations,omitempty"`
}

func (t Tool) describe() toolDescription {
	d := toolDescription{Name: t.Name, Description: t.Description}
	d.InputSchema.Type, d.InputSchema.Properties = "object", make(map[string]Property)
	for _, p := range t.Properties {
		d.InputSchema.Properties[p.Name] = p
		if p.Default == nil {
			d.InputSchema.Required = append(d.InputSchema.Required, p.Name)
		}
	}
	if t.UserOnly {
		d.Annotations = &annotations{Audience: []string{"user"}}
	}
	return d
}

// arguments checks and converts what was given, without any coercion (5.4).
func (t Tool) arguments(given map[string]json.RawMessage) (map[string]any, error) {
	args := make(map[string]any, len(t.Properties))
	for _, p := range t.Properties {
		v, ok := p.read(given[p.Name])
		if !ok {
			if p.Default == nil {
				return nil, refusef("Missing valid argument: %s", p.Name)
			}
			v = p.Default
		}
		if n, isInt := v.(int); isInt {
			if p.Min != nil && n < *p.Min {
				return nil, refusef("Value is below minimum allowed: %d", *p.Min)
			}
			if p.Max != nil && n > *p.Max {
				return nil, refusef("Value exceeds maximum allowed: %d", *p.Max)
			}
		}
		args[p.Name] = v
	}
	return args, nil
}

// read takes a value of exactly the property's JSON type.
func (p Property) read(raw json.RawMessage) (any, bool) {
	var v any
	err := json.Unmarshal(raw, &v)
	switch n := v.(type) {
	case bool:
		return n, err == nil && p.Type == "boolean"
	case float64:
		return int(max(math.MinInt32, min(n, math.MaxInt32))), err == nil && p.Type == "integer" // fractions are cut off
	case string:
		return n, err == nil && p.Type == "string"
	default:
		return nil, false
	}
}

// refusalError is an error text as the firmware words it.
type refusalError string

func (r refusalError) Error() string { return string(r) }

func refusef(format string, args ...any) error { return refusalError(fmt.Sprintf(format, args...)) }
