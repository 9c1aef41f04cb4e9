package device

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// RepairResponse reads a peer's answer to a request of ours and puts right what
// the SDK could not take (an id that came back as text, an error without form,
// a code that the SDK uses for itself, a result of another shape). method names
// the request with an id, "" when there is none. It returns nil for an answer
// to no request, and an error for what cannot be understood. Whoever calls it has
// looked at the size and the Depth of payload.
func RepairResponse(payload []byte, method func(id int64) string) (r *jsonrpc.Response, fixes []string, err error) {
	m, err := parseMessage(payload)
	if err != nil {
		return nil, nil, err
	}
	if m.method != "" {
		return nil, nil, fmt.Errorf("request %.40q is malformed", m.method)
	}
	name := method(m.id)
	if name == "" {
		return nil, nil, nil
	}
	r = &jsonrpc.Response{}
	if r.ID, err = jsonrpc.MakeID(float64(m.id)); err != nil {
		return nil, nil, err
	}
	if m.err == nil {
		r.Result, fixes = repairResult(name, m.result)
	} else {
		r.Error = m.err
	}
	return r, append(m.fixes, fixes...), nil
}

// repairResult leaves alone what the SDK can decode.
func repairResult(method string, raw json.RawMessage) (result json.RawMessage, fixes []string) {
	switch method {
	case methodInitialize:
		var r sdk.InitializeResult
		if json.Unmarshal(raw, &r) != nil || r.ProtocolVersion != newestVersion && !slices.Contains(knownVersions[:], r.ProtocolVersion) {
			result, _, fixes = repairInitialize(raw)
			return result, fixes
		}
	case methodListTools:
		if json.Unmarshal(raw, &sdk.ListToolsResult{}) != nil {
			return repairListResult(raw)
		}
	case methodCallTool:
		if json.Unmarshal(raw, &sdk.CallToolResult{}) != nil {
			return repairCall(raw)
		}
	}
	return raw, nil
}

// newestVersion is one that only other servers speak, and the SDK too.
const newestVersion = "2026-07-28"

// listResult is a page in the shape that the SDK always decodes.
type listResult struct {
	Tools []listedTool `json:"tools"`
	Next  string       `json:"nextCursor,omitempty"`
}

type listedTool struct {
	Name        string           `json:"name"`
	Description string           `json:"description,omitempty"`
	InputSchema json.RawMessage  `json:"inputSchema"`
	Annotations *mcp.Annotations `json:"annotations,omitempty"`
}

// repairListResult keeps the tools of a page that can be used.
func repairListResult(raw json.RawMessage) (json.RawMessage, []string) {
	p, fixes, err := repairList(raw)
	if err != nil {
		return raw, append(fixes, err.Error()) // the SDK says what is wrong with it
	}
	out := listResult{Tools: []listedTool{}, Next: p.next}
	for _, t := range p.tools {
		out.Tools = append(out.Tools, listedTool{t.Name, t.Description, t.Schema, &t.Annotations})
	}
	result, err := json.Marshal(out)
	if err != nil {
		return raw, append(fixes, "tools")
	}
	return result, fixes
}
