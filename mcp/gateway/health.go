package gateway

import (
	"net/http"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
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

// health is open to everybody; who may not see more sees no names and no numbers.
func (g *Gateway) health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		g.problem(w, r, http.StatusMethodNotAllowed, codeMethod, say(languageOf(r), "不支持这个方法", "this method is not served"))
		return
	}
	out := healthReport{
		Success: true, Status: "healthy", Streams: []string{}, Protocol: version2024, Supported: sdk.SupportedProtocolVersions(),
		Version: "1.0.0", Server: g.options.Version, Uptime: time.Since(g.began).Round(time.Millisecond).Seconds(),
	}
	if g.options.Disabled {
		out.Success, out.Status = false, "disabled"
		reply(w, http.StatusServiceUnavailable, out)
		return
	}
	if c, denied := g.guard.admit(r); denied == nil {
		v, _ := g.views.of(c, "")
		out.Tools, out.Resources, out.Prompts = len(v.tools()), len(v.resources()), len(v.prompts())
		out.Streams = slices.DeleteFunc(slices.Clone(g.views.current().streams), func(stream string) bool { return !c.sees(stream) })
		g.countSleeping(c, &out)
	}
	reply(w, http.StatusOK, out)
}

// countSleeping adds what devices offer while nobody has asked for it. Health
// itself does not ask: whoever only watches the server would have it keep it all.
func (g *Gateway) countSleeping(c caller, out *healthReport) {
	g.mu.Lock()
	awake := g.awake
	g.mu.Unlock()
	if awake {
		return
	}
	for _, id := range g.deviceIDs() {
		if stream := StreamOf(id); c.sees(stream) && !slices.Contains(out.Streams, stream) {
			if p := g.devicePart(id); p != nil {
				out.Tools, out.Resources, out.Streams = out.Tools+len(p.tools), out.Resources+len(p.resources), append(out.Streams, stream)
			}
		}
	}
	slices.Sort(out.Streams)
}
