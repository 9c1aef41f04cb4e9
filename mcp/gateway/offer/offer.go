// Package offer fills the catalog of the gateway: with the core tools, the devices
// and what is known of them, this server's own tools, those of other servers that
// are passed on, declarative tools, prompts and resources. A [Follower] keeps the
// parts of it that change in step with what they come from.
package offer

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/external/library"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/prompts"
)

// Options say what is offered beside the core tools, and what those tell of this server.
type Options struct {
	Devices Devices           // nil: none
	Acts    Acts              // what can be done to a device's conversation from outside
	Local   mcp.Source        // this server's own tools; nil: not offered
	Shared  func() []mcp.Tool // tools of other servers that are passed on, their Stream set; nil: none
	// CallShared runs one of them, as it was listed.
	CallShared func(ctx context.Context, t mcp.Tool, arguments map[string]any) (any, error)

	// Shares lists the resources and prompts of other servers that are passed on; nil: none.
	Shares func() []library.Share

	// States returns the states of a device's things; nil: not offered.
	States func(id string) (map[string]map[string]any, bool)
	// Transcript returns what was said with a device in this session, the oldest
	// first; nil: not offered.
	Transcript func(id string) ([]Line, bool)

	Prompts   *prompts.Set          // nil: none
	Assistant func() string         // the assistant's name, for prompts
	Config    func() []byte         // the settings without secrets, as JSON; nil: not offered
	LogTail   func() string         // the last lines of the log; nil: not offered
	Files     *Files                // declarative tools; nil: none
	Zone      func() *time.Location // of the times that are told
	Log       *slog.Logger

	Version string // of this server
	Began   time.Time
	Tools   func() int // how many tools are offered
}

// Fill adds what does not change while the server runs: the core tools, this
// server's own ones, its resources and its prompts.
func Fill(r *catalog.Registry, o Options) {
	core := &catalog.Part{}
	core.AddStreams("system", "time", "util")
	var known definitions
	if err := json.Unmarshal(toolsJSON, &known); err != nil { // it is built in: a test holds that it is right
		o.Log.Error("no core tools", "err", err)
	}
	for _, t := range append(o.coreTools(), o.actTools()...) {
		t, err := known.tool(t)
		if err == nil {
			err = core.AddTool(t)
		}
		if err != nil { // as above
			o.Log.Error("core tool left out", "tool", t.Name, "err", err)
		}
	}
	o.addServer(core)
	if o.Devices != nil {
		o.addDevices(core)
	}
	if o.Prompts != nil {
		o.addPrompts(core)
	}
	r.Set(catalog.PartCore, core)
	if o.Local != nil {
		r.Set(catalog.PartLocal, o.localPart(known.DeviceID))
	}
}

// Renew offers this server's own tools as they are now, if they are others.
func Renew(r *catalog.Registry, o Options) {
	var known definitions
	if o.Local == nil || json.Unmarshal(toolsJSON, &known) != nil { // of which Fill has told
		return
	}
	r.SetChanged(map[string]*catalog.Part{catalog.PartLocal: o.localPart(known.DeviceID)})
}
