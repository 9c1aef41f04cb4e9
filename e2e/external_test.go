package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/testall"
)

// everythingVersion is the public test server that we try ourselves against.
const everythingVersion = "@modelcontextprotocol/server-everything@2026.8.31"

// everything is the program's main file, installed once into an ignored folder.
// The test is skipped where that cannot be done.
func everything(t *testing.T) string {
	t.Helper()
	testall.Only(t)
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: the real server-everything is not tried", program)
		}
	}
	folder, err := filepath.Abs("../.cache/everything")
	if err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(folder, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	if _, err := os.Stat(main); err == nil {
		return main
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", everythingVersion)
	if out, err := npm.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install %s, so it is not tried: %v\n%.500s", everythingVersion, err, out)
	}
	return main
}

// freePort returns a port that is free at the moment.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// node runs server-everything over HTTP until the test ends.
func node(t *testing.T, main, transport string) (port string) {
	t.Helper()
	port = freePort(t)
	cmd := exec.Command("node", main, transport)
	cmd.Env = append(os.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return port
}

// logged waits for a line of the server's log.
func (s *server) logged(ctx context.Context, t *testing.T, line *regexp.Regexp) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !line.MatchString(s.log.String()) {
		select {
		case <-ctx.Done():
			t.Fatalf("no line %s in the log", line)
		case <-tick.C:
		}
	}
}

func toolsOf(name string) *regexp.Regexp {
	return regexp.MustCompile(`mcp server tools listed" server=` + name + ` `)
}

// TestEverythingServer: the public test server over its three transports, the
// last of them by a file that is written while we run; then kill -9 in the
// middle of a call.
func TestEverythingServer(t *testing.T) {
	t.Parallel()
	main := everything(t)
	ctx := limit(t)
	sse, web := node(t, main, "sse"), node(t, main, "streamableHttp")
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat,
		openaitest.Calls(
			openaitest.Call{ID: "c1", Name: "echo", Arguments: `{"message":"one"}`},
			openaitest.Call{ID: "c2", Name: "echo_2", Arguments: `{"message":"two"}`},
			openaitest.Call{ID: "c3", Name: "echo_3", Arguments: `{"message":"three"}`},
			openaitest.Call{ID: "c4", Name: "get-sum", Arguments: `{"a":"20","b":22}`}),
		openaitest.Text("All of them answered."),
		openaitest.Calls(openaitest.Call{ID: "c5", Name: "trigger-long-running-operation", Arguments: `{"duration":60,"steps":60}`}),
		openaitest.Text("It did not work."),
		openaitest.Calls(openaitest.Call{ID: "c6", Name: "echo", Arguments: `{"message":"again"}`}),
		openaitest.Text("It is back."))
	s := start(t, setup{env: append(cloudEnv(cloud), "E2E_PRIVATE=not-for-programs"), config: fmt.Sprintf(`
tools:
  kinds: {"*": query}
  external:
    mcpServers:
      a.pipe: {command: node, args: [%q, stdio], env: {SHOWN: yes-please}}
      events: {type: sse, url: "http://127.0.0.1:%s/sse"}
`, main, sse)})
	s.logged(ctx, t, toolsOf("a.pipe"))
	s.logged(ctx, t, toolsOf("events"))
	file := fmt.Sprintf(`{"mcpServers":{"web":{"type":"streamable-http","url":"http://127.0.0.1:%s/mcp"}}}`, web)
	if err := os.WriteFile(filepath.Join(s.dir, "data", "mcp_servers.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	s.logged(ctx, t, toolsOf("web"))
	d := s.dial(ctx, t, devicetest.Options{})
	ask(ctx, t, d, "please ask all of them")
	requests := cloud.Requests(openaitest.Chat)
	if len(requests) != 2 {
		t.Fatalf("%d model calls, want 2", len(requests))
	}
	if answers := string(requests[1].Body); !strings.Contains(answers, "Echo: one") || !strings.Contains(answers, "Echo: two") ||
		!strings.Contains(answers, "Echo: three") || !strings.Contains(answers, "is 42") {
		t.Errorf("the answers: %s", answers)
	}
	killedInMidCall(ctx, t, s, cloud, d)
	if strings.Contains(s.log.String(), "not-for-programs") {
		t.Error("a secret is in the log")
	}
}

// killedInMidCall kills the program while it works: the model hears of it long
// before the call would end, and the program is there again for the next turn.
func killedInMidCall(ctx context.Context, t *testing.T, s *server, cloud *openaitest.Server, d *devicetest.Device) {
	t.Helper()
	pid := childOf(t, s.cmd.Process.Pid, "stdio")
	if environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err != nil ||
		strings.Contains(string(environ), "E2E_PRIVATE") || strings.Contains(string(environ), "OPENAI_API_KEY") || !strings.Contains(string(environ), "SHOWN=yes-please") {
		t.Errorf("the program's environment: %q, %v", environ, err)
	}
	before := bytesRead(t, pid)
	if err := d.Detect("please take a long time"); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for bytesRead(t, pid) == before { // until the call has reached it
		select {
		case <-ctx.Done():
			t.Fatal("the program is not called")
		case <-tick.C:
		}
	}
	began := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	failed, err := cloud.Await(ctx, openaitest.Chat, 4)
	if err != nil {
		t.Fatal(err)
	}
	// The call would take 60 s.
	if took := time.Since(began); took > 30*time.Second || !strings.Contains(string(failed.Body), "tool source closed") {
		t.Errorf("the model heard after %v: %s", took, failed.Body)
	}
	reply(ctx, t, d)
	s.logged(ctx, t, regexp.MustCompile(`(?s)mcp server is away" server=a.pipe .*mcp server tools listed" server=a.pipe `))
	ask(ctx, t, d, "please try it again")
	requests := cloud.Requests(openaitest.Chat)
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "Echo: again") {
		t.Errorf("after the return: %s", last)
	}
	next := childOf(t, s.cmd.Process.Pid, "stdio")
	s.stop(t)
	if syscall.Kill(next, 0) == nil {
		t.Error("the program outlives the server")
	}
}

// bytesRead returns the number of bytes that a process has read so far.
func bytesRead(t *testing.T, pid int) string {
	t.Helper()
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(io), "\n")
	return line
}

// childOf is the process below parent whose command line ends with word.
func childOf(t *testing.T, parent int, word string) int {
	t.Helper()
	pid := findChild(t, parent, word)
	if pid == 0 {
		t.Fatalf("no child %q of %d", word, parent)
	}
	return pid
}

// findChild is childOf where there may be none, which is 0.
func findChild(t *testing.T, parent int, word string) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Skip("no /proc on this system")
	}
	for _, stat := range stats {
		data, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		if f := strings.Fields(rest); len(f) < 2 || f[1] != strconv.Itoa(parent) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
		if strings.HasSuffix(strings.Trim(string(line), "\x00"), word) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			return pid
		}
	}
	return 0
}

// rpc is a JSON-RPC message as a simple tool server reads it.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"params"`
}

// gardener is a tool server such as people write: it dials in and answers.
func gardener(conn *websocket.Conn, calls chan<- map[string]any) {
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			return
		}
		var m rpc
		if json.Unmarshal(message, &m) != nil || m.ID == nil {
			continue
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"garden","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"garden.water","description":"Waters the garden","inputSchema":{"type":"object","properties":{"minutes":{"type":"integer"}},"required":["minutes"]}}]}`
		case "tools/call":
			calls <- m.Params.Arguments
			result = `{"content":[{"type":"text","text":"the roses are wet"}],"isError":false}`
		}
		if conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)) != nil {
			return
		}
	}
}

// TestToolServerDialsIn: with the right token its tool is usable in the next
// step, and gone when it leaves.
func TestToolServerDialsIn(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat,
		openaitest.Calls(openaitest.Call{ID: "c1", Name: "garden_water", Arguments: `{"minutes":"5"}`}),
		openaitest.Text("The roses are wet."),
		openaitest.Text("Nothing to do."))
	s := start(t, setup{
		env:    append(cloudEnv(cloud), "GARDEN_TOKEN=t0ken-of-the-garden"),
		config: "tools: {endpoint: {enabled: true, tokens: [{name: garden, token: '${GARDEN_TOKEN}', trust: true}]}}\n",
	})
	d := s.dial(ctx, t, devicetest.Options{})
	address := strings.Replace(s.ws, "/xiaozhi/v1/", "/mcp/endpoint", 1)
	for _, wrong := range []string{"", "/", "/?token=", "?token=t0ken"} {
		_, resp, err := websocket.DefaultDialer.DialContext(ctx, address+wrong, nil)
		if err == nil || resp == nil || resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for i, path := range []string{"?token=t0ken-of-the-garden", "/?token=t0ken-of-the-garden"} {
		conn, _, err := websocket.DefaultDialer.DialContext(ctx, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		calls, done := make(chan map[string]any, 1), make(chan struct{})
		go func() {
			defer close(done)
			gardener(conn, calls)
		}()
		s.logged(ctx, t, regexp.MustCompile(fmt.Sprintf(`(?s)(mcp server tools listed" server=garden .*){%d}`, i+1)))
		if i == 0 {
			if r := ask(ctx, t, d, "please water the garden"); r.Text() != "The roses are wet." {
				t.Errorf("answer %q", r.Text())
			}
			select {
			case arguments := <-calls:
				if arguments["minutes"] != 5.0 {
					t.Errorf("arguments %v", arguments)
				}
			case <-ctx.Done():
				t.Error("the tool was not called")
			}
		}
		conn.Close()
		<-done
		s.logged(ctx, t, regexp.MustCompile(fmt.Sprintf(`(?s)(mcp tool server left" server=garden .*){%d}`, i+1)))
	}
	ask(ctx, t, d, "what about the garden")
	requests := cloud.Requests(openaitest.Chat)
	if !strings.Contains(string(requests[0].Body), `"garden_water"`) || !strings.Contains(string(requests[1].Body), "the roses are wet") {
		t.Error("the tool was not offered, or its result did not come")
	}
	if last := requests[len(requests)-1].JSON(); strings.Contains(fmt.Sprint(last["tools"]), "garden_water") {
		t.Error("the tool of a server that left is still offered")
	}
	if strings.Contains(s.log.String(), "t0ken") {
		t.Error("the log shows a token")
	}
}

// TestToolsAreOffered offers our tools at the endpoint of another program.
func TestToolsAreOffered(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	sockets := make(chan *websocket.Conn, 1)
	market := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("token") != "m4rket" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		if conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil); err == nil {
			sockets <- conn
		}
	}))
	defer market.Close()
	s := start(t, setup{
		env:    []string{"MARKET_TOKEN=m4rket"},
		config: "tools: {offer: [{url: 'ws" + strings.TrimPrefix(market.URL, "http") + "/mcp/?token=${MARKET_TOKEN}', deny: [calculate]}]}\n",
	})
	var conn *websocket.Conn
	select {
	case conn = <-sockets:
	case <-ctx.Done():
		t.Fatal("nobody dials")
	}
	defer conn.Close()
	for _, step := range []struct{ say, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"market","version":"1"}}}`, `"name":"xiaozhi"`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`, `"name":"time.get_current_time"`},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"time.get_current_time","arguments":{}}}`, `20`},
		{`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"util.calculate","arguments":{"expression":"1+1"}}}`, `tool not found`},
	} {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(step.say)); err != nil {
			t.Fatal(err)
		}
		_, got, err := conn.ReadMessage()
		if err != nil || !strings.Contains(string(got), step.want) {
			t.Errorf("%s: %s, %v", step.say, got, err)
		}
	}
	if strings.Contains(s.log.String(), "m4rket") {
		t.Error("the log shows a token")
	}
}
