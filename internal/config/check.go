package config

import (
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// check looks at the values that are right in kind but may be wrong in size.
func (l *loader) check(c *Config) {
	l.checkServer(c.Server)
	l.checkAuth(c.Auth)
	l.checkVoice(c.Voice)
	l.checkAgent(c.Agent)
	l.oneOf(c.Log.Level, []string{"debug", "info", "warn", "error"}, "log", "level")
	l.oneOf(c.Log.Format, []string{"text", "json"}, "log", "format")
	l.checkTools(c)
	l.checkTokens(c.MCP)
	l.checkChains(c)
}

// bad reports what is wrong with the value at a path.
func (l *loader) bad(at []string, id string, args ...any) {
	l.problems.add(l.place(at...), keyName(at)+": ", id, args...)
}

// key is the path of a setting.
func key(names ...string) []string { return names }

// oneOf reports a value that is none of the possible ones.
func (l *loader) oneOf(value string, possible []string, at ...string) {
	if !slices.Contains(possible, value) {
		all := strings.Join(possible, ", ")
		l.bad(at, "config/none-of", value, all)
	}
}

// within reports a value that is not between the two bounds, both allowed.
func within[T int | float64 | time.Duration](l *loader, value, low, high T, at ...string) {
	if value < low || value > high {
		l.bad(at, "config/not-within", value, low, high)
	}
}

func (l *loader) checkAuth(a Auth) {
	if !a.Enabled || a.Token != "" || a.TokenFile != "" || !l.whole("auth") {
		return
	}
	if unset := strings.Join(l.unset["auth"+keySeparator+"token"], ", "); unset != "" {
		l.bad(key("auth", "token"), "config/auth-unset", unset)
		return
	}
	l.bad(key("auth", "enabled"), "config/auth-no-token")
}

func (l *loader) checkServer(s Server) {
	if len(s.Listen) == 0 {
		l.bad(key("server", "listen"), "config/no-address")
	}
	l.addresses(s.Listen, "server", "listen")
	if s.PublicURL != "" {
		u, err := url.Parse(s.PublicURL)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) {
			l.bad(key("server", "public_url"), "config/public-url", s.PublicURL)
		}
	}
	if _, err := time.LoadLocation(s.Timezone); err != nil || s.Timezone == "" || s.Timezone == "Local" {
		l.bad(key("server", "timezone"), "config/timezone", s.Timezone)
	}
	l.oneOf(s.Language, []string{"zh", "en", "auto"}, "server", "language")
	within(l, s.MaxDevices, 1, 100000, "server", "max_devices")
	within(l, s.MaxLateness, 0, 10*time.Second, "server", "max_lateness")
}

// addresses reports what is no address to listen on.
func (l *loader) addresses(list []string, at ...string) {
	for _, address := range list {
		_, port, err := net.SplitHostPort(address)
		n, perr := strconv.Atoi(port)
		if err != nil || perr != nil || n < 0 || n > 65535 {
			l.bad(at, "config/listen", address)
		}
	}
}

func (l *loader) checkVoice(v Voice) {
	const ms = time.Millisecond
	e := v.Endpointing
	// A device hangs up by itself after 120 s without a word from the server.
	within(l, v.IdleClose, 5*time.Second, 110*time.Second-ms, "voice", "idle_close")
	within(l, v.VAD.Start, 0.05, 0.95, "voice", "vad", "start")
	within(l, v.VAD.End, 0.01, 0.95, "voice", "vad", "end")
	if v.VAD.End > v.VAD.Start && l.whole("voice", "vad") {
		l.bad(key("voice", "vad", "end"), "config/vad-end", v.VAD.End, v.VAD.Start)
	}
	within(l, e.PreRoll, 0, 2*time.Second, "voice", "endpointing", "pre_roll")
	within(l, e.MinSpeech, 0, 2*time.Second, "voice", "endpointing", "min_speech")
	within(l, e.Trigger, 60*ms, 5*time.Second, "voice", "endpointing", "trigger")
	within(l, e.Commit, 100*ms, 5*time.Second, "voice", "endpointing", "commit")
	within(l, e.MaxSpeech, time.Second, time.Minute, "voice", "endpointing", "max_speech")
	if e.Trigger > e.Commit && l.whole("voice", "endpointing") {
		l.bad(key("voice", "endpointing", "trigger"), "config/trigger", e.Trigger, e.Commit)
	}
	within(l, e.Trials, 0, 5, "voice", "endpointing", "trials")
	within(l, v.BargeIn, 100*ms, 3*time.Second, "voice", "barge_in")
	within(l, v.SlowNotice, 0, 30*time.Second, "voice", "slow_notice")
	within(l, v.Pacing.Lead, 180*ms, 360*ms, "voice", "pacing", "lead")
}

func (l *loader) checkAgent(a Agent) {
	if strings.TrimSpace(a.Name) == "" {
		l.bad(key("agent", "name"), "config/agent-name")
	}
	if a.Prompt == "" || strings.ContainsAny(a.Prompt, `./\`) {
		l.bad(key("agent", "prompt"), "config/prompt", a.Prompt)
	}
	within(l, a.MaxSteps, 1, 20, "agent", "max_steps")
	within(l, a.HistoryTokens, 500, 1000000, "agent", "history_tokens")
}

func (l *loader) checkTools(c *Config) {
	for _, pattern := range slices.Sorted(maps.Keys(c.Tools.Kinds)) {
		l.oneOf(string(c.Tools.Kinds[pattern]), []string{"control", "query"}, "tools", "kinds", pattern)
		l.patterns([]string{pattern}, "tools", "kinds", pattern)
	}
	l.patterns(c.Tools.Deny, "tools", "deny")
	l.patterns(c.Tools.Jobs, "tools", "jobs")
	l.patterns(c.Tools.Confirm, "tools", "confirm")
	within(l, c.Tools.MaxPerTurn, 1, 100, "tools", "max_per_turn")
	within(l, c.Tools.MaxPerDay, 1, 1000000, "tools", "max_per_day")
	l.checkPages(c.Tools)
	l.checkMCP(c.Tools)
	for _, id := range slices.Sorted(maps.Keys(c.Devices)) {
		d := c.Devices[id]
		if d.Language != "" {
			l.oneOf(d.Language, []string{"zh", "en"}, "devices", id, "language")
		}
		l.patterns(d.Tools.Allow, "devices", id, "tools", "allow")
		l.patterns(d.Tools.Deny, "devices", id, "tools", "deny")
	}
}

// checkTokens refuses tokens that would let everybody in.
func (l *loader) checkTokens(m MCP) {
	l.addresses(m.Listen, "mcp", "listen")
	within(l, m.Port, 0, 65535, "mcp", "port")
	l.patterns(m.PassOn, "mcp", "pass_on")
	names := map[string]bool{}
	for i, t := range m.Tokens {
		at := []string{"mcp", "tokens", strconv.Itoa(i)}
		l.patterns(t.Streams, append(at, "streams")...)
		within(l, t.Rate, 0, 100000, append(at, "rate")...)
		if t.Token == "" {
			l.bad(append(at, "token"), "config/mcp-token-empty")
		}
		if t.Name == "" || names[t.Name] {
			l.bad(append(at, "name"), "config/mcp-token-name")
		}
		names[t.Name] = true
	}
}

// patterns reports patterns of names that path.Match cannot read.
func (l *loader) patterns(list []string, at ...string) {
	for _, p := range list {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			l.bad(at, "config/pattern", p)
		}
	}
}
