package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
)

// fakeDevice is a device with tools whose answers are scripted.
type fakeDevice struct {
	mcp.Source
	kind    string
	tools   []mcp.Tool
	answers map[string]any // by tool; an error fails the call
	calls   []string
}

// device makes one; each tool is NAME or NAME(ARGUMENT:TYPE[:MIN:MAX]).
func device(kind string, answers map[string]any, tools ...string) *fakeDevice {
	d := &fakeDevice{kind: kind, answers: answers}
	for _, text := range tools {
		name, rest, has := strings.Cut(strings.TrimSuffix(text, ")"), "(")
		schema := `{"type":"object","properties":{}}`
		if has {
			p := strings.Split(rest, ":")
			bounds := ""
			if len(p) == 4 {
				bounds = fmt.Sprintf(`,"minimum":%s,"maximum":%s`, p[2], p[3])
			}
			schema = fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q%s}},"required":[%q]}`, p[0], p[1], bounds, p[0])
		}
		d.tools = append(d.tools, mcp.Tool{Name: name, Schema: json.RawMessage(schema), Source: kind, Origin: mcp.Remote})
	}
	return d
}

func (d *fakeDevice) GetAvailableTools() []mcp.Tool { return slices.Clone(d.tools) }

func (d *fakeDevice) CallTool(_ context.Context, name string, arguments map[string]any) (any, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	d.calls = append(d.calls, name+string(text))
	if err, ok := d.answers[name].(error); ok {
		return nil, err
	}
	return d.answers[name], nil
}

// beside is the router of the device with our own tools.
func beside(t *testing.T, d *fakeDevice, o local.Options) *router.Router {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return time.Date(2026, 11, 21, 7, 4, 5, 0, time.UTC) }
	}
	own := local.New(o)
	if err := own.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	sources := []mcp.Source{own}
	if d != nil {
		sources = append(sources, d)
	}
	box := router.New(router.Options{}, sources...)
	t.Cleanup(func() { box.Close(); _ = own.Stop() })
	return box
}

// call makes a call as a model does, in a turn of that language.
func call(t *testing.T, box *router.Router, language, name, arguments string) mcp.ActionResponse {
	t.Helper()
	p, refused := box.Prepare(mcp.Call{ID: "c1", Name: name, Arguments: arguments})
	if refused != nil {
		return *refused
	}
	info := mcp.Info{Language: language, Zone: time.FixedZone("CST", 8*3600)}
	return box.Run(mcp.WithInfo(t.Context(), info), p)
}

// offered are the names of our own tools among the offers that are in list.
func offered(box *router.Router, list ...string) string {
	var names []string
	for _, o := range box.Offers() {
		if o.Tool.Source == "local" && slices.Contains(list, o.Tool.Name) {
			names = append(names, o.Tool.Name)
		}
	}
	return strings.Join(names, " ")
}
