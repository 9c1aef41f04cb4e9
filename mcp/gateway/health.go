package gateway

import (
	"net/http"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
)

// healthReport is the answer to GET /api/mcp/health.
type healthReport struct {
	Success   bool     `json:"success"`
	Status    string   `json:"status"`
	Tools     int      `json:"toolsCount"`
	Resources int      `json:"resourcesCount"`
	Prompts   int      `json:"promptsCount"`
	Streams   []string `json:"streams"`
	Protocol  string   `json:"protocolVersion"`
	Supported []string `json:"supportedProtocolVersions"`
	Version   string   `json:"version"`
	Server    string   `json:"serverVersion"`
	Uptime    float64  `json:"uptime"` // seconds
}

// health answers GET /api/mcp/health. It is open to all; a caller that is not let in
// sees no names and no numbers.
func (g *Gateway) health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		problem(w, r, http.StatusMethodNotAllowed, codeMethod, catalog.CallerOf(r).Say("gateway/http-method"))
		return
	}
	out := healthReport{
		Success: true, Status: "healthy", Streams: []string{}, Protocol: catalog.Version2024, Supported: sdk.SupportedProtocolVersions(),
		Version: "1.0.0", Server: g.version, Uptime: time.Since(g.began).Round(time.Millisecond).Seconds(),
	}
	if g.disabled {
		out.Success, out.Status = false, "disabled"
		reply(w, http.StatusServiceUnavailable, out)
		return
	}
	if c, denied := g.guard.admit(r); denied == nil {
		v, _ := g.views.Of(c, "")
		out.Tools, out.Resources, out.Prompts = len(v.Tools()), len(v.Resources()), len(v.Prompts())
		out.Streams = g.views.Streams(c)
		g.countSleeping(c, &out)
	}
	reply(w, http.StatusOK, out)
}

// countSleeping adds what devices offer while no client has asked for it. Health itself
// does not ask: the server would keep it all for a client that only watches.
func (g *Gateway) countSleeping(c catalog.Caller, out *healthReport) {
	for stream, p := range g.follower.Asleep(c.Sees) {
		if !slices.Contains(out.Streams, stream) {
			tools, resources := p.Len()
			out.Tools, out.Resources, out.Streams = out.Tools+tools, out.Resources+resources, append(out.Streams, stream)
		}
	}
	slices.Sort(out.Streams)
}
