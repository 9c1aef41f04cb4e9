package external

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/mcp/schema"
)

const (
	maxPages       = 32               // of one tools/list
	maxTools       = 256              // of one server
	maxToolName    = 256              // bytes
	maxDescription = 4 << 10          // bytes; the rest is cut
	pageLimit      = 15 * time.Second // of one page
)

// list reads all pages of the server's tools.
func (s *session) list(ctx context.Context) ([]*sdk.Tool, bool, error) {
	var all []*sdk.Tool
	var cursor string
	seen := make(map[string]struct{})
	for pages := 1; ; pages++ {
		limited, cancel := context.WithTimeout(ctx, pageLimit)
		page, err := s.ListTools(limited, &sdk.ListToolsParams{Cursor: cursor})
		cancel()
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == jsonrpc.CodeMethodNotFound {
			return nil, false, nil // a server without tools
		}
		if err != nil {
			return nil, false, fmt.Errorf("tools/list page %d: %w", pages, err)
		}
		all = append(all, page.Tools...)
		cursor = page.NextCursor
		if cursor == "" {
			return all, false, nil
		}
		if _, again := seen[cursor]; again || pages == maxPages || len(all) > maxTools {
			return all, true, nil
		}
		seen[cursor] = struct{}{}
	}
}

// enlist makes our tools of those that a server lists. It says which it left out, and why.
// entry is as in [mcp.Tool].
func enlist(name, entry string, c Config, listed []*sdk.Tool) (tools []mcp.Tool, omitted []string) {
	for _, t := range listed {
		switch {
		case t.Name == "" || len(t.Name) > maxToolName:
			omitted = append(omitted, "a tool without a usable name")
		case has(tools, t.Name):
			omitted = append(omitted, t.Name+" (listed twice)")
		case !c.offers(mcp.Tool{Name: t.Name, Source: mcp.SourceExternal + name, Entry: entry}):
		case len(tools) == maxTools:
			omitted = append(omitted, t.Name+" (too many)")
		default:
			tools = append(tools, c.placed(name, entry, adopt(c, t)))
		}
	}
	return tools, omitted
}

// offers reports whether the lists of a config let a tool pass: Deny wins.
func (c Config) offers(tool mcp.Tool) bool {
	fits := func(patterns []string) bool {
		_, ok := mcp.FitsTool(patterns, tool, mcp.FunctionName(tool.Name))
		return ok
	}
	return !fits(c.Deny) && (len(c.Allow) == 0 || fits(c.Allow))
}

// placed says of a tool of a server where it is from, and what its entry says of all of them.
func (c Config) placed(name, entry string, t mcp.Tool) mcp.Tool {
	t.Description = text.Cut(t.Description, maxDescription)
	t.Origin, t.Trusted, t.Timeout, t.Source, t.Entry = mcp.Remote, c.Trust, c.Timeout, mcp.SourceExternal+name, entry
	t.Stream = strings.ReplaceAll(name, ".", "-") // streams are named without dots
	return t
}

// adopt makes our tool of a listed one.
func adopt(c Config, t *sdk.Tool) mcp.Tool {
	out := mcp.Tool{Name: t.Name, Description: cmp.Or(t.Description, t.Title), Schema: sanitise(t.InputSchema)}
	if kind, _, ok := mcp.OverrideOf(t.Name, c.Kinds); ok {
		out.Kind = kind
	}
	if a := t.Annotations; a != nil { // the SDK does not tell false from absent
		yes := true
		if a.ReadOnlyHint {
			out.Annotations.ReadOnly = &yes
		}
		if a.IdempotentHint {
			out.Annotations.Idempotent = &yes
		}
		out.Annotations.Destructive = a.DestructiveHint
	}
	return out
}

// sanitise gives a schema that every model and SDK takes: an object of type object.
func sanitise(given any) json.RawMessage {
	data, err := rawjson.Marshal(given)
	var fields map[string]json.RawMessage
	if err != nil || len(data) > schema.MaxSize || json.Unmarshal(data, &fields) != nil || fields == nil {
		return json.RawMessage(schema.Empty)
	}
	switch string(fields["type"]) {
	case `"object"`:
		return data
	case "":
		fields["type"] = json.RawMessage(`"object"`)
		if data, err = rawjson.Marshal(fields); err == nil {
			return data
		}
	}
	return json.RawMessage(schema.Empty)
}
