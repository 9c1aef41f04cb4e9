package library

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
)

// Names of the two tools of a server: without its name those of several would differ by a number only.
func readName(server string) string   { return "read_" + server + "_resource" }
func promptName(server string) string { return "get_" + server + "_prompt" }

const (
	shownItems = 20      // that the description of a tool lists; the others are listed by a call
	maxAbout   = 120     // bytes of what is said of one
	maxListed  = 8 << 10 // bytes of a list that a call returns
)

// Tools are the tools by which a model reaches what a server offers: none, one or two. They only read.
func (l *Library) Tools(server string) (tools []mcp.Tool) {
	if l == nil {
		return nil
	}
	yes := true
	add := func(name, description, schema string) {
		tools = append(tools, mcp.Tool{
			Name: name, Description: description, Schema: json.RawMessage(schema), Kind: mcp.Query, Annotations: mcp.Annotations{ReadOnly: &yes},
		})
	}
	if len(l.Resources)+len(l.Templates) > 0 {
		add(readName(server), "Reads a resource (a document, a state) of "+server+" by its URI. Without uri: lists all of them. There are:\n"+listed(l.resources(), shownItems),
			`{"type":"object","properties":{"uri":{"type":"string","description":"as it is listed; in a template each {variable} is replaced by its value"}}}`)
	}
	if len(l.Prompts) > 0 {
		add(promptName(server), "Gets a prompt of "+server+": a text that the server has ready for a task. Use it as far as it helps with what the user asks. Without name: lists all of them. There are:\n"+listed(l.prompts(), shownItems),
			`{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object","additionalProperties":{"type":"string"},"description":"of the prompt"}}}`)
	}
	return tools
}

func (l *Library) resources() (lines []string) {
	for _, r := range l.Resources {
		lines = append(lines, line(r.URI, cmp.Or(r.Title, r.Name), r.Description))
	}
	for _, t := range l.Templates {
		lines = append(lines, line(t.URITemplate, cmp.Or(t.Title, t.Name), t.Description))
	}
	return lines
}

func (l *Library) prompts() (lines []string) {
	for _, p := range l.Prompts {
		name := p.Name
		var arguments []string
		for _, a := range p.Arguments {
			if a == nil {
				continue
			}
			if a.Required {
				arguments = append(arguments, a.Name)
			} else {
				arguments = append(arguments, "["+a.Name+"]")
			}
		}
		if len(arguments) > 0 {
			name += " (" + strings.Join(arguments, ", ") + ")"
		}
		lines = append(lines, line(name, p.Title, p.Description))
	}
	return lines
}

func line(name, title, about string) string {
	if title == name {
		title = ""
	}
	about = strings.Join(strings.Fields(strings.TrimSpace(title+" "+about)), " ")
	if about == "" {
		return text.Line(name)
	}
	return text.Line(name) + ": " + text.Cut(about, maxAbout)
}

// listed joins lines, the first ones of them where there are more.
func listed(lines []string, most int) string {
	left := len(lines) - most
	if left > 0 {
		lines = lines[:most]
	}
	all := strings.Join(lines, "\n")
	if left > 0 {
		all += fmt.Sprintf("\n… and %d more", left)
	}
	return all
}

// Has reports whether a tool reads resources, and whether it gets prompts.
func Has(server string, t mcp.Tool) (resources, prompts bool) {
	return t.Name == readName(server), t.Name == promptName(server)
}

// Call runs one of [Library.Tools] and returns text, a picture, or a []any of both. Mistakes in the arguments are a
// [*mcp.ToolError]; other errors are those of the session.
func (l *Library) Call(ctx context.Context, s Session, server, tool string, arguments map[string]any) (any, error) {
	if tool == readName(server) {
		uri, _ := arguments["uri"].(string)
		if uri == "" {
			return text.Cut(listed(l.resources(), maxItems*2), maxListed), nil
		}
		r, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			return nil, err
		}
		return Contents(r.Contents), nil
	}
	name, _ := arguments["name"].(string)
	if name == "" {
		return text.Cut(listed(l.prompts(), maxItems), maxListed), nil
	}
	given, err := texts(arguments["arguments"])
	if err != nil {
		return nil, err
	}
	p, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: given})
	if err != nil {
		return nil, err
	}
	return Messages(p), nil
}

// errArguments says what the arguments of a prompt are.
var errArguments = errors.New("the arguments of a prompt are an object of texts")

func texts(given any) (map[string]string, error) {
	if given == nil {
		return nil, nil
	}
	all, ok := given.(map[string]any)
	if !ok {
		return nil, &mcp.ToolError{Message: errArguments.Error()}
	}
	out := make(map[string]string, len(all))
	for name, value := range all {
		switch v := value.(type) {
		case string:
			out[name] = v
		case bool, float64, json.Number, int, int64:
			out[name] = fmt.Sprint(v)
		default:
			return nil, &mcp.ToolError{Message: errArguments.Error()}
		}
	}
	return out, nil
}

// Contents are the contents of a resource as a tool returns them: text, one picture, or a []any of both.
func Contents(all []*sdk.ResourceContents) any {
	var blocks []any
	var words []string
	pictures := false
	for _, c := range all {
		block := Content(c)
		if block == nil {
			continue
		}
		blocks = append(blocks, block)
		if said, is := block.(string); is {
			words = append(words, said)
		} else {
			pictures = true
		}
	}
	switch {
	case !pictures:
		return strings.Join(words, "\n")
	case len(blocks) == 1:
		return blocks[0]
	}
	return blocks
}

// Content is one content of a resource: text or a picture; nil for what says nothing. Other bytes are named only.
func Content(c *sdk.ResourceContents) any {
	switch {
	case c == nil:
		return nil
	case c.Text != "":
		return c.Text
	case strings.HasPrefix(c.MIMEType, "image/"):
		return mcp.Image{MIMEType: c.MIMEType, Data: c.Blob}
	case len(c.Blob) == 0:
		return nil
	}
	return fmt.Sprintf("[%s %s, %d bytes]", c.URI, c.MIMEType, len(c.Blob))
}

// Messages are the messages of a prompt as text; what no text says is left out.
func Messages(p *sdk.GetPromptResult) string {
	var out []string
	for _, m := range p.Messages {
		if m == nil {
			continue
		}
		var said string
		switch c := m.Content.(type) {
		case *sdk.TextContent:
			said = c.Text
		case *sdk.EmbeddedResource:
			said, _ = Content(c.Resource).(string)
		case *sdk.ResourceLink:
			said = strings.TrimSpace(c.Name + " " + c.URI)
		}
		if said == "" {
			continue
		}
		if m.Role == "assistant" {
			said = "assistant: " + said
		}
		out = append(out, said)
	}
	return strings.Join(out, "\n\n")
}
