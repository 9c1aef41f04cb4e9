package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"xiaozhi/internal/devicetest"
)

// livingRoom runs the server in-process with one device that has a lamp, and gives
// the server's address. settings are lines of config.yaml.
func livingRoom(t *testing.T, settings string) string {
	t.Helper()
	const id = "24:6f:28:aa:10:02"
	base, _ := serving(t, `
asr: [openai]
tools: {deny: ["forget_*"]}
devices: {"`+id+`": {name: 客厅}}
`+settings)
	o := devicetest.Options{DeviceID: id, Language: "zh-CN", Sound: devicetest.Sound{FrameMs: 60}, Tools: []devicetest.Tool{{
		Name: "self.lamp.turn_on", Description: "Turns the lamp on.",
		Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
			return devicetest.Result{Text: "lit"}, nil
		},
	}, {
		Name: "self.reboot", Description: "Restarts it.", UserOnly: true,
		Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
			return devicetest.Result{Text: "true"}, nil
		},
	}}}
	found, err := devicetest.Provision(t.Context(), base+"/xiaozhi/ota/", o)
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.Token, o.Protocol = found.URL, found.Token, found.Protocol
	d, err := devicetest.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	for lamp := false; !lamp; {
		_, out, _ := runTools(t, base)
		lamp = strings.Contains(out, "self.lamp.turn_on")
	}
	return base
}

// TestToolsOfDevice: what a person sees of a real device: each tool once,
// with its source, its kind and a reason for it, and a line about it.
func TestToolsOfDevice(t *testing.T) {
	code, out, why := runTools(t, livingRoom(t, ""))
	if code != 0 {
		t.Fatal(code, why)
	}
	blocks := strings.Split(strings.TrimSpace(out), "\n\n")
	if !regexp.MustCompile(`^24:6f:28:aa:10:02: \d+ tools / 共 \d+ 个工具$`).MatchString(blocks[0]) {
		t.Errorf("begins with %q", blocks[0])
	}
	seen := make(map[string]bool)
	for _, block := range blocks[1:] {
		lines := strings.Split(block, "\n")
		name, _, _ := strings.Cut(lines[0], " ")
		if strings.HasSuffix(lines[1], "for people, not for the model / 给人用，模型不能调用") != (name == "self.reboot") {
			t.Errorf("for whom is it?\n%s", block)
		}
		if seen[name] || len(lines) < 2 || !regexp.MustCompile(`^  (local|device), (control|query): \S.+$`).MatchString(lines[1]) {
			t.Errorf("not clear:\n%s", block)
		}
		seen[name] = true
		if strings.HasPrefix(lines[1], "  local") && (len(lines) != 3 || !strings.ContainsFunc(lines[2], func(r rune) bool { return unicode.Is(unicode.Han, r) })) {
			t.Errorf("nothing is said about it:\n%s", block)
		}
	}
	for _, name := range []string{"get_current_time", "calculate", "set_reminder", "change_role", "self.lamp.turn_on", "self.reboot"} {
		if !seen[name] {
			t.Errorf("%s is not listed", name)
		}
	}
	if seen["forget_conversation"] {
		t.Error("a denied tool is listed")
	}
}

// TestToolsCallOnDevice: one tool is run, and its answer is what the
// model would get.
func TestToolsCallOnDevice(t *testing.T) {
	server := livingRoom(t, "")
	for _, c := range []struct {
		tool, arguments string
		code            int
		want            string
	}{
		{"calculate", `{"expression":"一百二十乘以三"}`, 0, "一百二十乘以三 = 360\n(req_llm, "},
		{"self.lamp.turn_on", `{}`, 0, "lit\n(req_llm, "},
		{"self_lamp_turn_on", `{}`, 0, "lit\n"},
		{"self.reboot", `{}`, 0, "true\n"},
		{"self_reboot", `{}`, 1, "404 Not Found"},
		{"get_lunar_calendar", `{"lunar_date":"2026-8-15"}`, 0, "2026年9月25日"},
		{"calculate", `{"expression":"1/0"}`, 1, "calculate: 不能除以零"},
		{"calculate", `{}`, 1, "参数不对: "},
		{"calculate", `[]`, 1, "calculate: "},
		{"forget_conversation", `{}`, 1, `404 Not Found: 没有这个工具 / there is no tool named "forget_conversation"`},
		{"nonsense", `{}`, 1, "404 Not Found"},
		{"exit", `{}`, 0, "says / 会说: 再见。\n(response, "},
	} {
		code, out, why := runTools(t, server, "call", "24:6F:28:AA:10:02", c.tool, c.arguments)
		if code != c.code || !strings.Contains(out+why, c.want) || (code == 0) != (why == "") || (code != 0) != (out == "") {
			t.Errorf("%s %s: exit %d, %q, %q, want %q", c.tool, c.arguments, code, out, why, c.want)
		}
	}
	if code, _, why := runTools(t, server, "call", "11:22:33:44:55:66", "exit"); code != 1 || !strings.Contains(why, `设备没有连接 / no device "11:22:33:44:55:66" is connected`) {
		t.Errorf("another device: %d %s", code, why)
	}
}

// TestToolsToken: the token of the environment lets in, a wrong
// or read-only one says what is wrong, and none of them is shown.
func TestToolsToken(t *testing.T) {
	t.Setenv("XIAOZHI_MCP_TOKEN", "s3cret-of-the-laptop")
	server := livingRoom(t, "mcp: {tokens: [{name: a, token: s3cret-of-the-laptop}, {name: b, token: l00k-but-touch-not, read_only: true}]}")
	for _, c := range []struct {
		token string
		args  []string
		code  int
		want  string
	}{
		{"s3cret-of-the-laptop", nil, 0, " 个工具"},
		{"s3cret-of-the-laptop", []string{"call", "-", "calculate", `{"expression":"1+1"}`}, 0, "1+1 = 2"},
		{"l00k-but-touch-not", nil, 0, " 个工具"},
		{"l00k-but-touch-not", []string{"call", "-", "calculate", `{"expression":"1+1"}`}, 1, "这个令牌是只读的"},
		{"s3cret-of-the-laptop", []string{"call", "-", "self.reboot"}, 1, "403 Forbidden: \"self.reboot\" 是给人用的工具"},
		{"wr0ng", nil, 1, "one of mcp.tokens, or what admin-token"},
		{"", nil, 0, " 个工具"}, // the admin token, of ./data
	} {
		t.Setenv("XIAOZHI_MCP_TOKEN", c.token)
		code, out, why := runTools(t, server, c.args...)
		if code != c.code || !strings.Contains(out+why, c.want) || c.token != "" && strings.Contains(out+why, c.token) {
			t.Errorf("%s %q: exit %d, %.200q, %q, want %s", c.token, c.args, code, out, why, c.want)
		}
	}
}
