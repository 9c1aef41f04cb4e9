package router

import (
	"strings"
	"time"

	"xiaozhi/mcp"
)

// Times that a call may take, from its sending, where no setting says otherwise.
const (
	callTimeout = 15 * time.Second
	slowTimeout = 60 * time.Second // of pictures of cameras and screens, and of what is meant for people (docs/protocol.md 5.4)
	jobTimeout  = 30 * time.Minute
)

// jobHolds is how long a job keeps its device to itself, from its sending: one that is over by then is a call like
// all others, and any other one runs beside them.
const jobHolds = 2 * time.Second

// Times are time limits of calls, by patterns as [mcp.Fits] reads them.
type Times map[string]time.Duration

// Of returns the limit of a tool, and the pattern that sets it: one without wildcards before the others, a longer one
// before a shorter. names are what the tool is called beside its own name. "": no pattern fits.
func (t Times) Of(tool mcp.Tool, names ...string) (limit time.Duration, pattern string) {
	for p, d := range t {
		if _, fits := mcp.FitsTool([]string{p}, tool, names...); fits && (pattern == "" || closer(p, pattern)) {
			limit, pattern = d, p
		}
	}
	return limit, pattern
}

// closer reports whether a pattern says more of a name than another one.
func closer(a, b string) bool {
	exact := func(p string) bool { return !strings.ContainsAny(p, `*?[`) }
	switch {
	case exact(a) != exact(b):
		return exact(a)
	case len(a) != len(b):
		return len(a) > len(b)
	}
	return a < b
}

// limitOf returns how long a call of an offer may take: what a setting says, else what its source says or, of a job,
// half an hour if that is longer, else the usual.
func (t Times) limitOf(o Offer) time.Duration {
	if d, pattern := t.Of(o.Tool, o.LLMName, mcp.FunctionName(o.Tool.Name)); pattern != "" {
		return d
	}
	name := o.Tool.Name
	switch {
	case o.Job:
		return max(o.Tool.Timeout, jobTimeout)
	case o.Tool.Timeout > 0:
		return o.Tool.Timeout
	case o.Tool.OfDevice() && (o.Tool.UserOnly() || strings.HasPrefix(name, "self.camera.") || name == "self.screen.snapshot" || name == "self.screen.preview_image"):
		return slowTimeout
	}
	return callTimeout
}
