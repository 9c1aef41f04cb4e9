package config

import (
	"cmp"
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/hours"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/timezone"
)

// checker holds settings that are right in kind to their limits and to one another.
type checker struct {
	*findings
	prompts []string          // that there are; nil: nobody knows
	env     map[string]string // of the program; nil: nobody knows
	types   types
}

func (ch checker) check(c *Config) {
	ch.checkServer(c.Server)
	ch.checkAuth(c.Auth)
	ch.checkVoice(c.Voice)
	ch.checkAgent(c.Agent)
	ch.oneOf(c.Log.Level, []string{"debug", "info", "warn", "error"}, "log", "level")
	ch.oneOf(c.Log.Format, []string{"text", "json"}, "log", "format")
	ch.checkTools(c)
	checkMemory(ch, c.Memory)
	ch.checkTokens(c.MCP)
	ch.checkReachable(c)
	ch.checkChains(c)
	ch.checkAgents(c)
	checkSpeakers(ch, c)
	ch.checkRecording(c)
	ch.checkCommands(c)
	checkNear(ch, c)
}

// bad reports what is wrong with the value at a path.
func (ch checker) bad(at []string, id string, args ...any) {
	ch.addAt(at, ch.place(at...), keyName(at)+": ", id, args...)
}

func key(names ...string) []string { return names }

// oneOf reports a value that is none of the possible ones.
func (ch checker) oneOf(value string, possible []string, at ...string) {
	if !slices.Contains(possible, value) {
		all := strings.Join(possible, ", ")
		ch.bad(at, "config/none-of", value, all)
	}
}

// language reports what is no tag of a language, with the one that was probably meant.
func (ch checker) language(tag string, at ...string) {
	if _, err := text.ParseLang(tag); err != nil {
		ch.bad(at, "config/language", tag, text.NearestLang(tag))
	}
}

// within reports a value that is not between the two bounds, both allowed.
func within[T int | float64 | time.Duration](ch checker, value, low, high T, at ...string) {
	if value < low || value > high {
		ch.bad(at, "config/not-within", value, low, high)
	}
}

func (ch checker) checkAuth(a Auth) {
	ch.oneOf(a.Pairing, []string{"auto", "open", "ask", "closed"}, "auth", "pairing")
	if !a.Enabled || a.Token == "" && a.TokenFile != "" || !ch.whole("auth") {
		return // what is wrong with a file was reported where it was read
	}
	if a.Token != "" {
		at := "token"
		if a.TokenFile != "" {
			at = "token_file"
		}
		ch.token(string(a.Token), "config/auth-no-token", "auth", at)
		return
	}
	if unset := strings.Join(ch.missing("auth", "token"), ", "); unset != "" {
		ch.bad(key("auth", "token"), "config/auth-unset", unset)
		return
	}
	ch.bad(key("auth", "enabled"), "config/auth-no-token")
}

func (ch checker) checkStore(s Store) {
	ch.oneOf(s.Driver, []string{"auto", "none"}, "store", "driver")
	within(ch, s.Backup, 0, 366, "store", "backup")
	within(ch, s.KeepDays, 0, 36500, "store", "keep_days")
	switch {
	case isSealed(s.URL):
		ch.bad(key("store", "url"), "config/store-sealed")
	case s.URL != "" && !strings.HasPrefix(string(s.URL), "postgres://") && !strings.HasPrefix(string(s.URL), "postgresql://"):
		ch.bad(key("store", "url"), "config/store-url")
	}
}

func (ch checker) checkConsole(c Console) {
	ch.addresses(c.Listen, "console", "listen")
	if (c.Owner == "") != (c.PasswordFile == "") {
		ch.bad(key("console", "owner"), "config/console-owner")
	}
}

// maxZone limits what is repeated of a name of a zone, in bytes.
const maxZone = 64

// zone reports a time zone that there is not.
func (ch checker) zone(name string, at ...string) {
	if id, args := noZone(name); id != "" {
		ch.bad(at, id, args...)
	}
}

// noZone says by a message why a name is that of no time zone; "": it is one, or empty.
func noZone(name string) (id string, args []any) {
	if _, err := timezone.Load(name); err == nil {
		return "", nil
	}
	if near := timezone.Near(name); near != "" {
		return "config/timezone-near", []any{text.Cut(name, maxZone), near}
	}
	return "config/timezone", []any{text.Cut(name, maxZone)}
}

// ZoneWrong says in a language why a name is that of no time zone; "": it is one, or empty.
func ZoneWrong(lang text.Lang, name string) string {
	id, args := noZone(name)
	if id == "" {
		return ""
	}
	return message.In(lang, id, args...)
}

func (ch checker) checkServer(s Server) {
	if len(s.Listen) == 0 {
		ch.bad(key("server", "listen"), "config/no-address")
	}
	ch.addresses(s.Listen, "server", "listen")
	checkTLS(ch, s)
	if s.PublicURL != "" {
		u, err := url.Parse(s.PublicURL)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) {
			ch.bad(key("server", "public_url"), "config/public-url", s.PublicURL)
		}
	}
	ch.zone(s.Timezone, "server", "timezone")
	if s.Language != "auto" {
		ch.language(s.Language, "server", "language")
	}
	for _, origin := range s.Origins {
		u, err := url.Parse(origin)
		if origin != "null" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || strings.Contains(u.Host, "*")) {
			ch.bad(key("server", "origins"), "config/origin", origin)
		}
	}
	within(ch, s.MaxDevices, 1, 100000, "server", "max_devices")
	within(ch, s.MaxLateness, 0, 10*time.Second, "server", "max_lateness")
}

func checkTLS(ch checker, s Server) {
	given := s.TLS.Cert != "" || s.TLS.Key != ""
	switch {
	case (s.TLS.Cert == "") != (s.TLS.Key == ""):
		ch.bad(key("server", "tls"), "config/tls-pair")
	case given && s.TLS.Listen == "":
		ch.bad(key("server", "tls", "listen"), "config/tls-unheard")
	case slices.Contains(s.Listen, s.TLS.Listen):
		ch.bad(key("server", "tls", "listen"), "config/tls-twice", s.TLS.Listen)
	case s.TLS.Listen != "":
		ch.addresses([]string{s.TLS.Listen}, "server", "tls", "listen")
	}
}

// addresses reports what is no address to listen on.
func (ch checker) addresses(list []string, at ...string) {
	for _, address := range list {
		_, port, err := net.SplitHostPort(address)
		n, perr := strconv.Atoi(port)
		if err != nil || perr != nil || n < 0 || n > 65535 {
			ch.bad(at, "config/listen", address)
		}
	}
}

func (ch checker) checkVoice(v Voice) {
	const ms = time.Millisecond
	e := v.Endpointing
	// A device hangs up by itself after 120 s without a word from the server.
	within(ch, v.IdleClose, 5*time.Second, 110*time.Second-ms, "voice", "idle_close")
	within(ch, v.VAD.Start, 0.05, 0.95, "voice", "vad", "start")
	within(ch, v.VAD.End, 0.01, 0.95, "voice", "vad", "end")
	if v.VAD.End > v.VAD.Start && ch.whole("voice", "vad") {
		ch.bad(key("voice", "vad", "end"), "config/vad-end", v.VAD.End, v.VAD.Start)
	}
	within(ch, e.PreRoll, 0, 2*time.Second, "voice", "endpointing", "pre_roll")
	within(ch, e.MinSpeech, 0, 2*time.Second, "voice", "endpointing", "min_speech")
	within(ch, e.Trigger, 60*ms, 5*time.Second, "voice", "endpointing", "trigger")
	within(ch, e.Commit, 100*ms, 5*time.Second, "voice", "endpointing", "commit")
	within(ch, e.MaxSpeech, time.Second, time.Minute, "voice", "endpointing", "max_speech")
	if e.Trigger > e.Commit && ch.whole("voice", "endpointing") {
		ch.bad(key("voice", "endpointing", "trigger"), "config/trigger", e.Trigger, e.Commit)
	}
	within(ch, e.Trials, 0, 5, "voice", "endpointing", "trials")
	within(ch, v.BargeIn, 100*ms, 3*time.Second, "voice", "barge_in")
	within(ch, v.SlowNotice, 0, 30*time.Second, "voice", "slow_notice")
	within(ch, v.Pacing.Lead, 180*ms, 360*ms, "voice", "pacing", "lead")
	within(ch, v.Opus.Bitrate, 8000, 64000, "voice", "opus", "bitrate")
	within(ch, v.Opus.Complexity, 0, 10, "voice", "opus", "complexity")
}

func (ch checker) checkAgent(a Agent) {
	if strings.TrimSpace(a.Name) == "" {
		ch.bad(key("agent", "name"), "config/agent-name")
	}
	if a.Prompt == "" || strings.ContainsAny(a.Prompt, `./\`) {
		ch.bad(key("agent", "prompt"), "config/prompt", a.Prompt)
	}
	within(ch, a.MaxSteps, 1, 20, "agent", "max_steps")
	within(ch, a.HistoryTokens, 500, 1000000, "agent", "history_tokens")
}

func (ch checker) checkTools(c *Config) {
	within(ch, c.Reminders.PerDevice, 1, 1000, "reminders", "per_device")
	within(ch, c.Reminders.KeepOpen, time.Minute, 24*time.Hour, "reminders", "keep_open")
	checkHours(ch, c.Quiet.Hours, "quiet", "hours")
	ch.checkStore(c.Store)
	ch.checkConsole(c.Console)
	for _, pattern := range slices.Sorted(maps.Keys(c.Tools.Kinds)) {
		ch.oneOf(string(c.Tools.Kinds[pattern]), []string{"control", "query"}, "tools", "kinds", pattern)
		ch.patterns([]string{pattern}, "tools", "kinds", pattern)
	}
	for _, pattern := range slices.Sorted(maps.Keys(c.Tools.Timeouts)) {
		within(ch, c.Tools.Timeouts[pattern], time.Second, time.Hour, "tools", "timeouts", pattern)
		ch.patterns([]string{pattern}, "tools", "timeouts", pattern)
	}
	ch.patterns(c.Tools.Deny, "tools", "deny")
	ch.patterns(c.Tools.Jobs, "tools", "jobs")
	ch.patterns(c.Tools.Confirm, "tools", "confirm")
	ch.patterns(slices.Sorted(maps.Keys(c.Tools.ConfirmBy)), "tools", "confirm_by")
	within(ch, c.Tools.MaxPerTurn, 1, 100, "tools", "max_per_turn")
	within(ch, c.Tools.MaxPerDay, 1, 1000000, "tools", "max_per_day")
	ch.checkMCP(c.Tools, c.MCP)
	ch.checkWorld(c.Tools)
	ch.oneOf(c.Devices.Unknown, []string{"local_only", "refuse", "all"}, "devices", "unknown")
	for _, id := range slices.Sorted(maps.Keys(c.Devices.ByID)) {
		d := c.Devices.ByID[id]
		if d.Language != "" {
			ch.language(d.Language, "devices", id, "language")
		}
		checkVoiceThere(ch, c, d.Voice, c.Agents[cmp.Or(d.Agent, c.Agent.Prompt)].Realtime, "devices", id, "voice")
		if d.Zone != "" {
			ch.zone(d.Zone, "devices", id, "zone")
		}
		checkHours(ch, d.Quiet.Hours, "devices", id, "quiet", "hours")
		for _, group := range d.Groups {
			if strings.TrimSpace(group) != group || group == "" || strings.ContainsAny(group, ":,/") {
				ch.bad(key("devices", id, "groups"), "config/group", group)
			}
		}
		ch.patterns(d.Tools.Allow, "devices", id, "tools", "allow")
		ch.patterns(d.Tools.Deny, "devices", id, "tools", "deny")
	}
}

func checkMemory(ch checker, m Memory) {
	ch.oneOf(m.Engine, []string{OwnMemory, Mem0, Memobase}, "memory", "engine")
	if m.BaseURL != "" {
		ch.address(m.BaseURL, []string{"http", "https"}, "memory", "base_url")
	}
	if m.Proxy != "" && m.Proxy != "none" {
		ch.address(m.Proxy, []string{"http", "https", "socks5", "socks5h"}, "memory", "proxy")
	}
	switch {
	case !ch.whole("memory") || m.APIKey == "" && m.APIKeyFile != "": // what is wrong with a file was reported where it was read
	case m.Engine == OwnMemory && (m.BaseURL != "" || m.APIKey != ""):
		ch.warn(key("memory", "engine"), "config/memory-own")
	case m.Engine != OwnMemory && m.BaseURL == "" && m.APIKey == "":
		ch.bad(key("memory", "api_key"), "config/memory-key", m.Engine)
	}
}

// checkHours reports what is no span of the day.
func checkHours(ch checker, spans string, at ...string) {
	if _, err := hours.Parse(spans); err != nil {
		ch.bad(at, "config/hours", text.Cut(spans, maxZone))
	}
}

func (ch checker) checkTokens(m MCP) {
	ch.addresses(m.Listen, "mcp", "listen")
	within(ch, m.Port, 0, 65535, "mcp", "port")
	ch.patterns(m.PassOn, "mcp", "pass_on")
	names := map[string]bool{}
	for i, t := range m.Tokens {
		at := []string{"mcp", "tokens", strconv.Itoa(i)}
		ch.patterns(t.Streams, append(at, "streams")...)
		within(ch, t.Rate, 0, 100000, append(at, "rate")...)
		ch.token(string(t.Token), "config/mcp-token-empty", append(at, "token")...)
		if t.Name == "" || names[t.Name] {
			ch.bad(append(at, "name"), "config/mcp-token-name")
		}
		names[t.Name] = true
	}
}

// MinToken is how many characters a token needs at least, so that nobody guesses it.
const MinToken = 16

// token reports a token that is empty, by the message none, or too short. One that is sealed is not known yet.
func (ch checker) token(token, none string, at ...string) {
	switch {
	case strings.HasPrefix(token, sealedPrefix):
	case token == "":
		ch.bad(at, none)
	case len(token) < MinToken:
		ch.bad(at, "config/token-short", MinToken)
	}
}

// checkReachable reports a server that is meant to be reached from elsewhere, but whose
// gateway has no tokens to tell its callers by.
func (ch checker) checkReachable(c *Config) {
	if !c.MCP.Enabled || len(c.MCP.Tokens) > 0 || !ch.whole("mcp") {
		return
	}
	if c.Server.PublicURL != "" {
		ch.bad(key("server", "public_url"), "config/public-no-token", MinToken)
	}
	if c.Server.TrustProxy {
		ch.bad(key("server", "trust_proxy"), "config/public-no-token", MinToken)
	}
}

// patterns reports patterns of names that path.Match cannot read.
func (ch checker) patterns(list []string, at ...string) {
	for _, p := range list {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			ch.bad(at, "config/pattern", p)
		}
	}
}
