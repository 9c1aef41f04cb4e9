package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// TestAttackToolLists: a device that offers descriptions, schemas and lists of any size has them cut or left out, and
// what is within the limits stays.
func TestAttackToolLists(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := plainServer.use(t)
	tool := func(name string, description, schema int) string {
		return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object","title":%q}}`, name, strings.Repeat("d", description), strings.Repeat("s", schema))
	}
	tools := []string{tool("self.wordy", 20<<10, 0), tool("self.deep", 1, 65<<10), tool("self.plain", 10, 60<<10)}
	for n := range 60 {
		tools = append(tools, tool(fmt.Sprint("self.more", n), 4000, 0))
	}
	r, id := dialRaw(t, s, "24:6f:28:ab:30:01", "Client-Id: own"), 0
	session := r.hello(strings.Replace(hello242, `"features":{}`, `"features":{"mcp":true}`, 1))
	answer := func(method, result string) {
		var m struct{ Payload struct{ ID int } }
		if err := json.Unmarshal([]byte(r.await(`"method":"`+method+`"`)), &m); err != nil {
			t.Fatal(err)
		}
		id = m.Payload.ID
		r.text(fmt.Sprintf(`{"type":"mcp","payload":{"jsonrpc":"2.0","id":%d,"result":%s}}`, id, result))
	}
	answer("initialize", `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"board","version":"1"}}`)
	answer("tools/list", `{"tools":[`+strings.Join(tools, ",")+`],"nextCursor":""}`)
	s.awaitLog(ctx, t, "device tools listed", "session_id="+session)
	var list struct {
		Tools []struct {
			Name, Source, Description string
			InputSchema               json.RawMessage `json:"inputSchema"`
		}
	}
	a := s.knock(ctx, t, http.MethodGet, "/api/devices/24:6f:28:ab:30:01/tools", "", "Authorization: Bearer "+s.adminToken(t))
	if err := json.Unmarshal([]byte(a.body), &list); err != nil {
		t.Fatal(err, a.body)
	}
	size, names := 0, map[string]int{}
	for _, tool := range list.Tools {
		if tool.Source != "device" {
			continue
		}
		names[tool.Name] = len(tool.Description)
		size += len(tool.Name) + len(tool.Description) + len(tool.InputSchema)
	}
	if size > 128<<10 || size < 120<<10 {
		t.Errorf("%d bytes of %d tools are kept", size, len(names))
	}
	if n := names["self.wordy"]; n > 4<<10 || n < 4000 {
		t.Errorf("a description of %d bytes", n)
	}
	if names["self.deep"] != 0 || names["self.plain"] == 0 || names["self.more0"] == 0 || names["self.more59"] != 0 {
		t.Errorf("kept: %v", names)
	}
	r.text(typed("what time is it"))
	r.await(`"type":"stt"`, "what time is it")
}

// TestAttackArguments: what was said, which the arguments of calls hold, is neither in the log of any level nor in what
// is told of calls, by whomever they are made, unless mcp.transcripts is on.
func TestAttackArguments(t *testing.T) {
	t.Parallel()
	for _, shown := range []bool{false, true} {
		t.Run(fmt.Sprint(shown), func(t *testing.T) {
			t.Parallel()
			ctx := limit(t)
			cloud := startCloud(t)
			cloud.Reply(openaitest.Chat,
				openaitest.Calls(call("c1", "self_diary_write", `{"text":"the quokka"}`)), openaitest.Text("It is written."),
				openaitest.Calls(call("c2", "self_diary_write", `{"text":17,"bilby":"numbat"}`)), openaitest.Text("It is not written."))
			s := start(t, setup{env: cloudEnv(cloud), config: fmt.Sprintf("log: {level: debug}\nmcp: {transcripts: %t}\n", shown)})
			s.waitReady(ctx, t)
			diary := devicetest.Tool{
				Name: "self.diary.write", Description: "writes into a diary", Properties: []devicetest.Property{{Name: "text", Type: "string"}},
				Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
					return devicetest.Result{Text: "done"}, nil
				},
			}
			const id = "24:6f:28:ab:31:01"
			d := s.dial(ctx, t, devicetest.Options{DeviceID: id, ClientID: "own", Tools: []devicetest.Tool{diary}})
			s.waitForTools(ctx, t, d)
			ask(ctx, t, d, "please note it")
			ask(ctx, t, d, "please note the other one too")
			owner := []string{"Authorization: Bearer " + s.adminToken(t), "Content-Type: application/json"}
			if a := s.knock(ctx, t, http.MethodPost, "/api/devices/"+id+"/tools/call", `{"name":"self.diary.write","arguments":{"text":"the wombat"}}`, owner...); a.status != http.StatusOK {
				t.Errorf("%d %s", a.status, a.body)
			}
			s.knock(ctx, t, http.MethodPost, "/api/mcp/jsonrpc/device-246f28ab3101", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"self.diary.write","arguments":{"text":"the dingo"}}}`, owner...)
			calls := s.knock(ctx, t, http.MethodGet, "/api/devices/"+id+"/calls", "", owner...).body
			if n := strings.Count(calls, `"tool":"self.diary.write"`); n < 3 {
				t.Errorf("%d calls are told of: %s", n, calls)
			}
			for _, word := range []string{"quokka", "wombat", "dingo"} {
				if got := strings.Contains(calls, word); got != shown {
					t.Errorf("%s is told: %t", word, got)
				}
				if got := strings.Contains(s.log.String(), word); got != shown {
					t.Errorf("%s is in the log: %t", word, got)
				}
			}
			if !shown && strings.Contains(s.log.String()+calls, "numbat") {
				t.Error("an argument that there is not is in the log")
			}
		})
	}
}

// TestAttackLeftPrograms: a program that was started for its tools ends with the server, also when that is killed and the
// program reads nothing.
func TestAttackLeftPrograms(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not tell programs that their parent has died")
	}
	ctx := limit(t)
	s := start(t, setup{config: "tools: {external: {mcpServers: {deaf: {command: sleep, args: [\"3141\"]}}}}\n"})
	pid := 0
	for pid == 0 {
		if pid = findChild(t, s.cmd.Process.Pid, "3141"); ctx.Err() != nil {
			t.Fatal("the program is not started")
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Cleanup(func() {
		if runs(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.over
	for began := time.Now(); runs(pid); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			t.Fatal("the program runs on")
		}
	}
}

// runs reports whether a process is there and has not ended.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && strings.Contains(string(stat), "(sleep)") && !strings.HasPrefix(rest, "Z")
}

// TestAttackOpenFiles: files of the data folder that others may write, or secrets that they may read, are not used: the
// start stops with the command that closes them, or the file is left out.
func TestAttackOpenFiles(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	s, err := launch(setup{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	s.stop(t)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("prompts/default.en.md", "Be rude.")
	for name, mode := range map[string]os.FileMode{
		"xiaozhi.db": 0o666, "prompts/default.en.md": 0o666, "prompts": 0o777, "tools": 0o777, "admin-token": 0o644,
	} {
		path := filepath.Join(data, name)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if s, err := launch(setup{}, dir); err == nil {
			s.stop(t)
			t.Errorf("%s: it starts", name)
		} else if !strings.Contains(err.Error(), filepath.Join("data", name)) || !strings.Contains(err.Error(), "chmod") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Chmod(path, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	planted := filepath.Join(dir, "planted")
	write("tools/planted.yaml", "tools: []\n")
	write("mcp_servers.json", fmt.Sprintf(`{"mcpServers":{"planted":{"command":"touch","args":[%q]}}}`, planted))
	for _, name := range []string{"tools/planted.yaml", "mcp_servers.json"} {
		if err := os.Chmod(filepath.Join(data, name), 0o666); err != nil { //nolint:gosec // that is the attack
			t.Fatal(err)
		}
	}
	if s, err = launch(setup{}, dir); err != nil {
		t.Fatal(err)
	}
	defer s.stop(t)
	s.awaitLog(ctx, t, "level=WARN", "planted.yaml", "chmod")
	s.awaitLog(ctx, t, "level=WARN", "mcp_servers.json", "chmod")
	if _, err := os.Stat(planted); err == nil {
		t.Error("a program that others have planted was started")
	}
}

// TestAttackUnsafeStarts: a start that is allowed and dangerous says so, once on the screen, and on the page of the log.
func TestAttackUnsafeStarts(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: "server: {public_url: \"https://speak.example.org\"}\nmcp: {tokens: [{name: a, token: t0ken-of-the-laptop}]}\n"})
	wants := []string{"! server.public_url has a public name, but server.trust_proxy is off"}
	if os.Geteuid() == 0 {
		wants = append(wants, "! The server runs as root")
	}
	for _, want := range wants {
		for !strings.Contains(s.banner.String(), want) {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("%q is not said on the screen:\n%s", want, s.banner.String())
			}
		}
	}
	owner := s.own(ctx, t)
	page := s.http(ctx, t, "GET /console/log/server?level=warn", "", s.with(owner))
	for _, want := range wants {
		want = strings.TrimPrefix(want, "! ")
		if screen := s.banner.String() + s.log.String(); strings.Count(screen, want) != 1 || strings.Count(page.body, want) != 1 {
			t.Errorf("%q is said %d times on the screen, and %d times on the page", want, strings.Count(screen, want), strings.Count(page.body, want))
		}
	}
}
