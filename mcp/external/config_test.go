package external

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/secret"
)

// TestSpellings takes what people paste from desktop clients.
func TestSpellings(t *testing.T) {
	for text, want := range map[string]Config{
		`{"command":"npx","args":["-y","x",1],"env":{"A":"b","N":1,"B":true}}`: {Transport: Stdio, Command: "npx", Args: []string{"-y", "x", "1"}, Env: map[string]string{"A": "b", "N": "1", "B": "true"}},
		`{"type":"stdio","command":"npx","cwd":"/srv"}`:                        {Transport: Stdio, Command: "npx", Dir: "/srv"},
		`{"url":"http://h/mcp"}`:                                               {Transport: HTTP, Guessed: true, URL: "http://h/mcp"},
		`{"url":"https://h/x/sse?key=1"}`:                                      {Transport: SSE, URL: "https://h/x/sse?key=1"},
		`{"url":"https://h/sse/","headers":{"A":"b"}}`:                         {Transport: SSE, URL: "https://h/sse/", Headers: map[string]string{"A": "b"}},
		`{"url":"wss://h/mcp"}`:                                                {Transport: WebSocket, URL: "wss://h/mcp"},
		`{"type":"sse","url":"http://h/mcp"}`:                                  {Transport: SSE, URL: "http://h/mcp"},
		`{"type":"http","url":"http://h/sse"}`:                                 {Transport: HTTP, URL: "http://h/sse"},
		`{"type":"streamable-http","url":"http://h"}`:                          {Transport: HTTP, URL: "http://h"},
		`{"transport":"streamableHttp","url":"http://h"}`:                      {Transport: HTTP, URL: "http://h"},
		`{"transport":"streamable_http","url":"http://h"}`:                     {Transport: HTTP, URL: "http://h"},
		`{"type":"ws","url":"ws://h"}`:                                         {Transport: WebSocket, URL: "ws://h"},
		`{"type":"WebSocket","url":"ws://h"}`:                                  {Transport: WebSocket, URL: "ws://h"},
		`{"httpUrl":"http://h/sse"}`:                                           {Transport: HTTP, URL: "http://h/sse"},
		`{"baseUrl":"http://h/sse"}`:                                           {Transport: SSE, URL: "http://h/sse"},
		`{"serverUrl":"http://h"}`:                                             {Transport: HTTP, Guessed: true, URL: "http://h"},
		`{"command":"x","timeout":90,"alwaysAllow":["a"]}`:                     {Transport: Stdio, Command: "x", Timeout: 90 * time.Second},
		`{"command":"x","timeout":60000}`:                                      {Transport: Stdio, Command: "x", Timeout: time.Minute},
		`{"command":"x","timeout":"1m30s","protocol":"legacy"}`:                {Transport: Stdio, Command: "x", Timeout: 90 * time.Second, Legacy: true},
		`{"command":"x","elicitation":"decline"}`:                              {Transport: Stdio, Command: "x"},
		`{"command":"x","elicitation":"defaults"}`:                             {Transport: Stdio, Command: "x", Defaults: true},
		`{"command":"x","allow":["a*"],"deny":["ab"],"kinds":{"a.b":"control"},"enabled":true}`: {
			Transport: Stdio, Command: "x", Allow: []string{"a*"}, Deny: []string{"ab"}, Kinds: map[string]mcp.Kind{"a.b": mcp.Control},
		},
	} {
		configs, problems, err := parseServers(t.Context(), []byte(`{"mcpServers":{"my.server":`+text+`}}`), secret.Sources{})
		if err != nil || problems["my.server"] != nil {
			t.Errorf("%s: %v, %v", text, err, problems)
			continue
		}
		if got := configs["my.server"]; fmt.Sprintf("%+v", plainConfig(got)) != fmt.Sprintf("%+v", plainConfig(want)) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", text, got, want)
		}
	}
}

// plainConfig is c without the method that hides it from logs.
func plainConfig(c Config) any {
	type plain Config
	return plain(c)
}

func TestSwitchedOff(t *testing.T) {
	for _, text := range []string{`{"command":"x","disabled":true}`, `{"enabled":false}`, `{"command":"x","isActive":false}`} {
		configs, problems, err := parseServers(t.Context(), []byte(`{"mcpServers":{"a":`+text+`}}`), secret.Sources{})
		if err != nil || len(configs)+len(problems) > 0 {
			t.Errorf("%s: %v, %+v", text, err, configs)
		}
	}
}

// TestBadEntries are left out, each with its reason; the others are taken.
func TestBadEntries(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                             "neither a command nor a url",
		`null`:                                           "neither a command nor a url",
		`[]`:                                             "found array",
		`{"command":"a","url":"http://h"}`:               "both a command and a url",
		`{"type":"carrier","command":"a"}`:               "is none of stdio",
		`{"type":"stdio","url":"http://h"}`:              "a program is needed",
		`{"type":"http","url":"ftp://h"}`:                "begins with http://",
		`{"type":"ws","url":"http://h"}`:                 "begins with ws://",
		`{"url":"http://"}`:                              "no full address",
		`{"url":"http://h\u0000k3y"}`:                    "no full address",
		`{"url":"file:///etc/passwd"}`:                   "no full address",
		`{"command":"a","args":"-y"}`:                    "args",
		`{"command":"a","args":[{}]}`:                    "want text",
		`{"command":"a","env":{"A=B":"c"}}`:              "no name of a variable",
		`{"url":"http://h","headers":{"A":"b\r\nC: d"}}`: "is no header",
		`{"command":"a","deny":["["]}`:                   "no pattern",
		`{"command":"a","kinds":{"x":"soon"}}`:           "neither control nor query",
		`{"command":"a","timeout":-1}`:                   "no time",
		`{"command":"a","timeout":"soon"}`:               "no time",
		`{"command":"a","timeout":99999999}`:             "no time",
		`{"command":"a","protocol":"new"}`:               "neither auto nor legacy",
		`{"command":"a","elicitation":"accept"}`:         "neither decline nor defaults",
		`{"command":"${NOT_SET}"}`:                       "NOT_SET is not set",
	} {
		configs, problems, err := parseServers(t.Context(), []byte(`{"mcpServers":{"bad":`+text+`,"good":{"command":"x"}}}`), secret.Sources{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if p := problems["bad"]; p == nil || !strings.Contains(p.Error(), want) || strings.Contains(p.Error(), "k3y") {
			t.Errorf("%s: %v, want %q", text, p, want)
		}
		if _, ok := configs["good"]; !ok || len(configs) != 1 {
			t.Errorf("%s: %+v", text, configs)
		}
	}
}

// TestBrokenFile names the place.
func TestBrokenFile(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\",}\n  }\n}": "line 3, column 26",
		"{\"mcpServers\": {":             "line 1, column 16",
		"{\"mcpServers\": []}":           "line 1, column 16",
		"[]":                             "line 1, column 1",
		"{}":                             "no \"mcpServers\"",
		"{\"mcpServers\": {}}\n{}":       "line 2, column",
		"mcpServers:\n  a: {command: x}": "line 1, column 1",
	} {
		_, _, err := parseServers(t.Context(), []byte(text), secret.Sources{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"", " \n", "\ufeff{\"mcpServers\":{}}", `{"mcpServers":{},"inputs":[]}`} {
		if configs, _, err := parseServers(t.Context(), []byte(text), secret.Sources{}); err != nil || len(configs) > 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
	var many strings.Builder
	for i := range maxServers + 1 {
		fmt.Fprintf(&many, `,"s%d":{"command":"x"}`, i)
	}
	if _, _, err := parseServers(t.Context(), []byte(`{"mcpServers":{`+many.String()[1:]+`}}`), secret.Sources{}); err == nil {
		t.Error("no limit of servers")
	}
}

func TestVariables(t *testing.T) {
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"KEY": "k1", "HOST": "h", "EMPTY": ""}[name]
		return v, ok
	}
	configs, problems, err := parseServers(t.Context(), []byte(`{"mcpServers":{
		"a":{"command":"${HOST}/run","args":["--key=${KEY}","${EMPTY}","${NONE:-d}"],"env":{"K":"${env:KEY}"}},
		"b":{"url":"http://${HOST}/mcp?k=${KEY}","headers":{"Authorization":"Bearer ${KEY}"}},
		"c":{"command":"x","env":{"A":"${ONE}","B":"${TWO}${ONE}"}}}}`), secret.Sources{Variable: lookup})
	if err != nil {
		t.Fatal(err)
	}
	a, b := configs["a"], configs["b"]
	if a.Command != "h/run" || !slices.Equal(a.Args, []string{"--key=k1", "", "d"}) || a.Env["K"] != "k1" {
		t.Errorf("a: %+v", plainConfig(a))
	}
	if b.URL != "http://h/mcp?k=k1" || b.Headers["Authorization"] != "Bearer k1" {
		t.Errorf("b: %+v", plainConfig(b))
	}
	if p := problems["c"]; p == nil || !strings.Contains(p.Error(), "ONE, TWO is not set") {
		t.Errorf("c: %v", p)
	}
}

// TestSecretsStayOut shows what is logged of a server.
func TestSecretsStayOut(t *testing.T) {
	c := Config{
		Transport: HTTP, URL: "https://user:pa55word@h/mcp?key=qu%65rykey&x=1", Headers: map[string]string{"Authorization": "Bearer headerkey", "X": "1"},
		Env: map[string]string{"TOKEN": "envtoken", "ON": "true"},
	}
	var log record
	log.logger().Info("x", "config", c)
	m := newMask(c)
	shown := log.String() + m.text("Get \""+c.URL+"\": refused; querykey qu%65rykey headerkey Bearer headerkey envtoken pa55word true 1")
	for _, secret := range []string{"pa55word", "querykey", "rykey", "headerkey", "envtoken"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%s is shown: %s", secret, shown)
		}
	}
	if !strings.Contains(shown, "https://h/mcp") || !strings.Contains(shown, "true 1") {
		t.Errorf("too much is hidden: %s", shown)
	}
	if PublicURL("http://a b\x7f") != "(unreadable)" {
		t.Error("an unreadable address is shown")
	}
}

func TestEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "OPENAI_API_KEY=sk", "XIAOZHI_AUTH__TOKEN=t", "https_proxy=p", "TZ=UTC", "BROKEN"},
		map[string]string{"TZ": "Asia/Shanghai", "A": "b"})
	want := []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "https_proxy=p", "A=b", "TZ=Asia/Shanghai"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzServers(f *testing.F) {
	for _, text := range []string{
		`{"mcpServers":{"a":{"command":"npx","args":["-y"],"env":{"A":"${B}"}}}}`, `{"mcpServers":{"a":{"url":"http://h/sse","headers":{"A":"b"},"timeout":5}}}`,
		`{"mcpServers":{"a":null,"":{}}}`, `{"mcpServers":[`, "{\n\"x\"", `{"mcpServers":{"a":{"kinds":{"[":"control"}}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		configs, _, err := parseServers(t.Context(), data, secret.Sources{Variable: func(name string) (string, bool) { return name, len(name) > 1 }})
		if err != nil && len(configs) > 0 {
			t.Fatal("a broken file has servers")
		}
		for name, c := range configs {
			if c.check() != nil || c.Timeout < 0 || c.Timeout > maxTimeout || len(c.ways()) == 0 || strings.TrimSpace(name) == "" {
				t.Fatalf("%q: %+v passed", name, plainConfig(c))
			}
			newMask(c).text(string(data))
		}
	})
}

// The patterns of an entry are those of the settings: raw or the model's names, without case, and by its own source.
func TestEntryPatterns(t *testing.T) {
	for _, c := range []struct {
		allow, deny []string
		want        bool
	}{
		{nil, nil, true}, {nil, []string{"DOOR_*"}, false}, {nil, []string{"external:lamp/door*"}, false}, {nil, []string{"External:Lamp-2/*"}, false},
		{nil, []string{"external:other/*"}, true}, {nil, []string{"device/*"}, true}, {[]string{"external:lamp/*"}, nil, true}, {[]string{"external:other/*"}, nil, false},
		{[]string{"*"}, []string{"*open"}, false},
	} {
		listed := []*sdk.Tool{{Name: "Door/Open", InputSchema: map[string]any{"type": "object"}}}
		tools, _ := enlist("lamp-2", "lamp", Config{Allow: c.allow, Deny: c.deny}, listed)
		if got := len(tools) == 1; got != c.want || got && (tools[0].Entry != "lamp" || tools[0].Source != "external:lamp-2") {
			t.Errorf("allow %q, deny %q: %+v", c.allow, c.deny, tools)
		}
	}
}
