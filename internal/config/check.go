package config

import (
	"fmt"
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
func (l *loader) bad(english, chinese string, at ...string) {
	l.problems.add(l.place(at...), keyName(at)+": "+english, chinese)
}

// oneOf reports a value that is none of the possible ones.
func (l *loader) oneOf(value string, possible []string, at ...string) {
	if !slices.Contains(possible, value) {
		all := strings.Join(possible, ", ")
		l.bad(fmt.Sprintf("%q is none of: %s", value, all), fmt.Sprintf("只能是：%s", all), at...)
	}
}

// within reports a value that is not between the two bounds, both allowed.
func within[T int | float64 | time.Duration](l *loader, value, low, high T, at ...string) {
	if value < low || value > high {
		l.bad(fmt.Sprintf("%v is not within %v and %v", value, low, high), fmt.Sprintf("应在 %v 到 %v 之间", low, high), at...)
	}
}

func (l *loader) checkAuth(a Auth) {
	if !a.Enabled || a.Token != "" || a.TokenFile != "" || !l.whole("auth") {
		return
	}
	if unset := strings.Join(l.unset["auth"+keySeparator+"token"], ", "); unset != "" {
		l.bad(fmt.Sprintf("auth is on, but there is no token: the environment variable %s is not set", unset),
			fmt.Sprintf("已开启认证，但没有 token：没有设置环境变量 %s", unset), "auth", "token")
		return
	}
	l.bad("auth is on, but there is no token: set auth.token or auth.token_file", "已开启认证，但没有 token：请设置 auth.token 或 auth.token_file", "auth", "enabled")
}

func (l *loader) checkServer(s Server) {
	if len(s.Listen) == 0 {
		l.bad("at least one address is needed", "至少要有一个地址", "server", "listen")
	}
	l.addresses(s.Listen, "server", "listen")
	if s.PublicURL != "" {
		u, err := url.Parse(s.PublicURL)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) {
			l.bad(fmt.Sprintf("%q is no full address such as https://speaker.example.org", s.PublicURL), "应是完整的地址，例如 https://speaker.example.org", "server", "public_url")
		}
	}
	if _, err := time.LoadLocation(s.Timezone); err != nil || s.Timezone == "" || s.Timezone == "Local" {
		l.bad(fmt.Sprintf("%q is no known time zone; write a name such as Asia/Shanghai", s.Timezone), "未知的时区，例如 Asia/Shanghai", "server", "timezone")
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
			l.bad(fmt.Sprintf("%q is no address; write :8000 or 127.0.0.1:8000", address), "地址应写成 :8000 或 127.0.0.1:8000", at...)
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
		l.bad(fmt.Sprintf("%v must not be above voice.vad.start (%v)", v.VAD.End, v.VAD.Start), "不能大于 voice.vad.start", "voice", "vad", "end")
	}
	within(l, e.PreRoll, 0, 2*time.Second, "voice", "endpointing", "pre_roll")
	within(l, e.MinSpeech, 0, 2*time.Second, "voice", "endpointing", "min_speech")
	within(l, e.Trigger, 60*ms, 5*time.Second, "voice", "endpointing", "trigger")
	within(l, e.Commit, 100*ms, 5*time.Second, "voice", "endpointing", "commit")
	within(l, e.MaxSpeech, time.Second, time.Minute, "voice", "endpointing", "max_speech")
	if e.Trigger > e.Commit && l.whole("voice", "endpointing") {
		l.bad(fmt.Sprintf("%v must not be above voice.endpointing.commit (%v)", e.Trigger, e.Commit), "不能大于 voice.endpointing.commit", "voice", "endpointing", "trigger")
	}
	within(l, e.Trials, 0, 5, "voice", "endpointing", "trials")
	within(l, v.BargeIn, 100*ms, 3*time.Second, "voice", "barge_in")
	within(l, v.SlowNotice, 0, 30*time.Second, "voice", "slow_notice")
	within(l, v.Pacing.Lead, 180*ms, 360*ms, "voice", "pacing", "lead")
}

func (l *loader) checkAgent(a Agent) {
	if strings.TrimSpace(a.Name) == "" {
		l.bad("a name is needed", "需要一个名字", "agent", "name")
	}
	if a.Prompt == "" || strings.ContainsAny(a.Prompt, `./\`) {
		l.bad(fmt.Sprintf("%q is no name of a prompt; write NAME for data/prompts/NAME.zh.md", a.Prompt), "应是提示词的名字：NAME 对应 data/prompts/NAME.zh.md", "agent", "prompt")
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
			l.bad("the token is empty", "令牌是空的", append(at, "token")...)
		}
		if t.Name == "" || names[t.Name] {
			l.bad("a token needs a name of its own", "每个令牌都要有自己的名字", append(at, "name")...)
		}
		names[t.Name] = true
	}
}

// patterns reports patterns of names that path.Match cannot read.
func (l *loader) patterns(list []string, at ...string) {
	for _, p := range list {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			l.bad(fmt.Sprintf("%q is no pattern; write a name, or self.lamp.*", p), "不是有效的模式，例如 self.lamp.*", at...)
		}
	}
}
