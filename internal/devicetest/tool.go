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
	Name     string
	Type     string // boolean, integer or string
	Default  any    // nil: the argument is required
	Min, Max *int   // of integers; nil: no limit
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

type resultContent struct {
	Type  string `json:"type"`
	Text  string `json:"text,omitempty"`
	Image string `json:"image,omitempty"` // JSON in a string (5.4)
}

type imageContent struct {
	Type     string `json:"type"`
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

func (r Result) encode() (string, error) {
	content := resultContent{Type: "text", Text: r.Text}
	if r.JPEG != nil {
		inner, err := json.Marshal(imageContent{Type: "image", MIMEType: "image/jpeg", Data: base64.StdEncoding.EncodeToString(r.JPEG)})
		if err != nil {
			return "", err
		}
		content = resultContent{Type: "image", Image: string(inner)}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`{"content":[%s],"isError":false}`, raw), nil
}

// schemas as devices write them (5.3).
type propertySchema struct {
	Type    string `json:"type"`
	Default any    `json:"default,omitempty"`
	Minimum *int   `json:"minimum,omitempty"`
	Maximum *int   `json:"maximum,omitempty"`
}

type inputSchema struct {
	Type       string                    `json:"type"`
	Properties map[string]propertySchema `json:"properties"`
	Required   []string                  `json:"required,omitempty"`
}

type annotations struct {
	Audience []string `json:"audience"`
}

type toolDescription struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	InputSchema inputSchema  `json:"inputSchema"`
	Annotations *annotations `json:"annotations,omitempty"`
}

func (t Tool) description() toolDescription {
	d := toolDescription{
		Name: t.Name, Description: t.Description,
		InputSchema: inputSchema{Type: "object", Properties: make(map[string]propertySchema)},
	}
	for _, p := range t.Properties {
		d.InputSchema.Properties[p.Name] = propertySchema{Type: p.Type, Default: p.Default, Minimum: p.Min, Maximum: p.Max}
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
	if len(raw) == 0 || string(raw) == "null" {
		return nil, false
	}
	switch p.Type {
	case "boolean":
		var b bool
		err := json.Unmarshal(raw, &b)
		return b, err == nil
	case "integer":
		var f float64
		err := json.Unmarshal(raw, &f)
		return int(max(math.MinInt32, min(f, math.MaxInt32))), err == nil // fractions are cut off
	default:
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	}
}

// refusalError is an error text as the firmware words it.
type refusalError string

func (r refusalError) Error() string { return string(r) }

func refusef(format string, args ...any) error { return refusalError(fmt.Sprintf(format, args...)) }
