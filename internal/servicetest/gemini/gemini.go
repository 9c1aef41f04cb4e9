// Package gemini is a fake of Gemini's streamGenerateContent, as events and as an array:
// from Gemini 3 on, signatures of thoughts must come back with the calls that they are of.
package gemini

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// Mode names a way of answering.
type Mode int

// The modes.
const (
	Usual   Mode = iota
	Blocked      // the question is blocked: there is no candidate
	Safety       // the answer ends after its first piece for safety
	Torn         // the model made a call that is none
	Busy         // HTTP 503
)

// fake is the server.
type fake struct {
	*servicetest.Server

	mode Mode
}

// New starts the server.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	return NewMode(t, Usual)
}

// NewMode starts a server that answers in another way.
func NewMode(t testing.TB, mode Mode) *servicetest.Server {
	t.Helper()
	f := &fake{mode: mode}
	knows := slices.DeleteFunc(servicetest.ThinkFaults(), func(f servicetest.Fault) bool { return f == servicetest.NoMoney })
	f.Server = servicetest.New(t, f.serve, knows...)
	return f.Server
}

type object = map[string]any

// request holds the members of a client's request.
type request struct {
	Contents   []content      `json:"contents"`
	System     *content       `json:"systemInstruction"`
	Tools      []declarations `json:"tools"`
	ToolConfig struct {
		Calling struct {
			Mode string `json:"mode"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	Generation struct {
		Thinking struct {
			Level    string `json:"thinkingLevel"`
			Budget   *int   `json:"thinkingBudget"`
			Thoughts bool   `json:"includeThoughts"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
	Safety json.RawMessage `json:"safetySettings"`
	Cached string          `json:"cachedContent"`
}

type declarations struct {
	Functions []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Plain       json.RawMessage `json:"parametersJsonSchema"`
		Subset      json.RawMessage `json:"parameters"`
	} `json:"functionDeclarations"`
}

type content struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Text      *string          `json:"text"`
	Thought   bool             `json:"thought"`
	Signature string           `json:"thoughtSignature"`
	Inline    *json.RawMessage `json:"inlineData"`
	File      *json.RawMessage `json:"fileData"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

var functionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

var path = regexp.MustCompile(`^/v1(?:beta|alpha)?/models/([^/:]+):streamGenerateContent$`)

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	body, fault := f.Take(w, r), f.Fault()
	sse := r.URL.Query().Get("alt") == "sse"
	refuse := func(status int, name, words string, details ...object) {
		b := servicetest.JSON(object{"error": object{"code": status, "message": words, "status": name, "details": details}}).Data
		if !sse {
			b = []byte("[" + string(b) + "]")
		}
		f.Refuse(w, status, string(b))
	}
	key := r.Header.Get("X-Goog-Api-Key")
	if key == "" {
		key = r.URL.Query().Get("key")
	}
	found := path.FindStringSubmatch(r.URL.Path)
	var q request
	switch {
	case fault == servicetest.WrongKey || key != servicetest.Key:
		refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"})
	case found == nil || r.Method != http.MethodPost:
		refuse(http.StatusNotFound, "NOT_FOUND", "Requested entity was not found.")
	case fault == servicetest.WrongModel:
		refuse(http.StatusNotFound, "NOT_FOUND", "models/"+found[1]+" is not found for API version v1beta, or is not supported for generateContent.")
	case fault == servicetest.RateLimited:
		refuse(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"})
	case f.mode == Busy:
		refuse(http.StatusServiceUnavailable, "UNAVAILABLE", "The model is overloaded. Please try again later.")
	default:
		if why := q.read(body, newer(found[1])); why != "" {
			refuse(http.StatusBadRequest, "INVALID_ARGUMENT", why)
			return
		}
		f.answer(w, r, &q, newer(found[1]), sse)
	}
}

// unsigned stands for the signature of a call that another model has made.
const unsigned = "skip_thought_signature_validator"

// newer says whether a model wants its signatures back.
func newer(model string) bool { return strings.HasPrefix(model, "gemini-3") }

// read takes a request. It returns what is wrong with it, or "".
func (q *request) read(body []byte, signed bool) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return "Invalid JSON payload received. " + err.Error()
	}
	for name := range members {
		if !slices.Contains(strings.Fields("contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent model labels"), name) {
			return `Invalid JSON payload received. Unknown name "` + name + `": Cannot find field.`
		}
	}
	if err := json.Unmarshal(body, q); err != nil {
		return "Invalid value at " + err.Error()
	}
	if t := q.Generation.Thinking; t.Level != "" && t.Budget != nil {
		return "You can only set only one of thinking budget and thinking level."
	}
	if len(q.Contents) == 0 {
		return "* GenerateContentRequest.contents: contents is not specified"
	}
	for _, group := range q.Tools {
		for i, f := range group.Functions {
			subset := string(f.Subset)
			if !functionName.MatchString(f.Name) {
				return fmt.Sprintf("* GenerateContentRequest.tools[0].function_declarations[%d].name: Invalid function name. Must start with a letter or an underscore.", i)
			}
			if f.Name == "" || subset != "" && len(f.Plain) > 0 || strings.Contains(subset, `"additionalProperties"`) || strings.Contains(subset, `"$schema"`) || strings.Contains(subset, `"oneOf"`) {
				return fmt.Sprintf("Invalid JSON payload received. Unknown name at 'tools[0].function_declarations[%d].parameters': Cannot find field.", i)
			}
		}
	}
	var open []string // names of calls that want their results
	for i, c := range q.Contents {
		if c.Role != "user" && c.Role != "model" || len(c.Parts) == 0 {
			return fmt.Sprintf("Please use a valid role: user, model; or contents[%d].parts is empty", i)
		}
		var calls, results []string
		for _, p := range c.Parts {
			switch {
			case p.Call != nil:
				if signed && len(calls) == 0 && p.Signature != sign(p.Call.Name) && p.Signature != unsigned {
					return "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly."
				}
				calls = append(calls, p.Call.Name)
			case p.Response != nil && !strings.HasPrefix(string(p.Response.Response), "{"):
				return "Invalid value at 'contents.parts.function_response.response'"
			case p.Response != nil:
				results = append(results, p.Response.Name)
			case p.Inline == nil && p.File == nil && (p.Text == nil || *p.Text == ""):
				return fmt.Sprintf("Unable to submit request because it must have a text parameter: contents[%d].parts must have one initialized field", i)
			}
		}
		if !slices.Equal(open, results) {
			return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
		}
		open = calls
	}
	if len(open) > 0 {
		return "Please ensure that function call turn comes before a function response turn."
	}
	return ""
}

// sign is the signature of a call.
func sign(name string) string { return fmt.Sprintf("c2ln%08x", crc32.ChecksumIEEE([]byte(name))) }

// newest returns what the user said last, or the result of tools.
func (q *request) newest() (words string, told bool) {
	for _, p := range q.Contents[len(q.Contents)-1].Parts {
		switch {
		case p.Response != nil:
			told = true
			var r struct{ Output, Error json.RawMessage }
			_ = json.Unmarshal(p.Response.Response, &r) // another shape has neither
			words += strings.Trim(string(r.Output)+string(r.Error), `"`)
		case p.Text != nil && !told:
			words = *p.Text
		}
	}
	return words, told
}

// piece is a message of the answer; without parts its candidate has no content.
func piece(reason string, parts ...object) object {
	c := object{"index": 0}
	if len(parts) > 0 {
		c["content"] = object{"role": "model", "parts": parts}
	}
	o := object{"candidates": []object{c}, "modelVersion": "gemini", "responseId": "r1", "usageMetadata": object{"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25}}
	if reason != "" {
		c["finishReason"] = reason
	}
	return o
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request, q *request, signed, sse bool) {
	words, told := q.newest()
	var list []object
	if q.Generation.Thinking.Thoughts {
		list = append(list, piece("", object{"text": "The user speaks.", "thought": true}))
	}
	var tools []servicetest.Tool
	for _, group := range q.Tools {
		for _, d := range group.Functions {
			tools = append(tools, servicetest.Tool{Name: d.Name, Schema: append(d.Plain, d.Subset...)})
		}
	}
	tools = servicetest.Asked(words, tools)
	switch {
	case f.mode == Blocked:
		list = []object{{"promptFeedback": object{"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": object{"promptTokenCount": 20}}}
	case f.mode == Torn:
		list = append(list, piece("MALFORMED_FUNCTION_CALL"))
	case len(tools) > 0 && !told && !strings.Contains(q.ToolConfig.Calling.Mode, "NONE"):
		var parts []object
		for i, t := range tools {
			p := object{"functionCall": object{"name": t.Name, "args": json.RawMessage(servicetest.Arguments(t.Schema))}}
			if signed && i == 0 {
				p["thoughtSignature"] = sign(t.Name)
			}
			parts = append(parts, p)
		}
		list = append(list, piece("", parts...), piece("STOP"))
	default:
		thirds := servicetest.Thirds(servicetest.Answer(words))
		list = append(list, piece("", object{"text": thirds[0]}), piece("", object{"text": thirds[1]}), piece("", object{"text": thirds[2], "thoughtSignature": "c2lnZW5k"}), piece("STOP"))
		if f.mode == Safety {
			list = []object{list[0], piece("SAFETY")}
		}
	}
	if f.Fault() == servicetest.Odd {
		list[0]["strange"] = object{"x": 1}
	}
	e := servicetest.Events{Pause: time.Millisecond, Broken: []byte("data: {\"candidates\": [{\n\n"), Filler: servicetest.Event("", string(servicetest.JSON(piece("", object{"text": servicetest.More})).Data))}
	for _, o := range list {
		e.List = append(e.List, servicetest.Event("", string(servicetest.JSON(o).Data)))
	}
	if !sse {
		e = array(list)
	}
	f.Stream(w, r, f.Fault(), e)
}

// array is an answer as one array.
func array(list []object) servicetest.Events {
	e := servicetest.Events{Type: "application/json; charset=UTF-8", Pause: time.Millisecond, Broken: []byte(`[{"candidates": [{`)}
	for i, o := range list {
		before := ",\r\n"
		if i == 0 {
			before = "["
		}
		e.List = append(e.List, append([]byte(before), servicetest.JSON(o).Data...))
	}
	e.Filler = append([]byte(","), servicetest.JSON(piece("", object{"text": servicetest.More})).Data...)
	e.Last = [][]byte{[]byte("]\n")}
	return e
}
