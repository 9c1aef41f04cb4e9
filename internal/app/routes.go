package app

import (
	"fmt"
	"net/http"
	"slices"

	"xiaozhi/connection/pairing"
	"xiaozhi/connection/request"
	"xiaozhi/internal/access"
	"xiaozhi/internal/text/message"
)

// routes are everything that has an address. Devices follow no redirects, so their paths, and those of the gateway, are
// matched before a mux could clean them; here they only say who they are for.
func (a *App) routes() (http.Handler, error) {
	mux, err := a.web.guard.Mux(a.allRoutes())
	if err != nil {
		return nil, err
	}
	return a.beforeMux(a.web.front(mux)), nil
}

// allRoutes lists all paths.
func (a *App) allRoutes() []access.Route {
	agents := a.crew.api(a.web.guard, a.stored)
	return slices.Concat(a.declared(), a.web.guard.Routes(), ownDevices(a, agents.DeviceOwner), agents.Routes())
}

// declared lists all paths but those of accounts and agents, with who they are for.
func (a *App) declared() []access.Route {
	nothing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, message.Both("app/nothing-here"), http.StatusNotFound)
	})
	routes := []access.Route{
		{Pattern: "/", For: access.Anyone, Handler: nothing},
		{Pattern: "GET /healthz", For: access.Anyone, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })},
		{Pattern: "GET /readyz", For: access.Anyone, Handler: http.HandlerFunc(a.readyz)},
	}
	add := func(who access.Audience, h http.Handler, paths ...string) {
		if who == access.Bearers {
			h = a.web.told(h)
		}
		for _, path := range paths {
			routes = append(routes, access.Route{Pattern: path, For: who, Handler: h})
		}
	}
	add(access.Devices, a.web.front(nothing), request.TalkPath, request.OTAPath, request.VisionPath)
	add(access.Bearers, a.gateway, "/api/mcp", "/api/mcp/", "/mcp/ws")
	add(access.Bearers, a.gateway.DeviceAPI(a.outside), "/api/devices", "/api/devices/")
	known := a.gateway.ForOwner(pairing.New(pairing.Options{
		Book: a.book, Connected: a.devices.Talks, Agent: a.crew.agentOf, Forget: a.forget, Keeping: keepingIn(a.stored), Audit: auditOf(a.accounts), Who: callerName, Log: a.log,
	}))
	add(access.Bearers, known, pairing.Path, pairing.Path+"/")
	add(access.Bearers, a.gateway.ForOwner(condition{a.cfg, a.cast, a.crew, a.report.left}), StatesPath)
	if a.endpoint != nil {
		add(access.Bearers, a.endpoint, "/mcp/endpoint", "/mcp/endpoint/{$}")
	}
	return routes
}

// readyz tells whether devices can be served.
func (a *App) readyz(w http.ResponseWriter, _ *http.Request) {
	if !a.ready.Load() {
		http.Error(w, message.Both("app/loading"), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, a.readiness())
}
