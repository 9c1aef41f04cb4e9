package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// TestSeed000 replays the light dialect's own examples against the program: a
// peer that knows nothing but them registers, has its tool called, answers, and
// is told what is said.
func TestSeed000(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../connection/websocket/testdata/light/frames.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seed := map[string]string{}
	for _, f := range txtar.Parse(file).Files {
		seed[f.Name] = string(f.Data)
	}
	oneLine := func(name string) string {
		var b bytes.Buffer
		if err := json.Compact(&b, []byte(seed[name])); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const anID, said = "tool-call-12345-abcdef", "北京今天天气晴朗，气温25摄氏度，有微风。"
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat,
		openaitest.Calls(openaitest.Call{ID: "c1", Name: "amplify_volume", Arguments: `{"level": 80}`}),
		openaitest.Text(said))
	s := start(t, setup{env: cloudEnv(cloud)})
	r := dialTCP(t, s)
	if status := r.upgrade("/xiaozhi/v1/"); status != http.StatusSwitchingProtocols {
		t.Fatalf("a peer without Device-Id was answered %d", status)
	}
	r.text(seed["register"])
	if got := r.await(""); got != oneLine("confirmation") {
		t.Fatalf("confirmed by %s", got)
	}
	r.text(typed("把音量调到八十吧，麻烦你了"))
	got := r.await("mcp/tool/execute")
	var m struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(got), &m); err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(oneLine("execute"), anID, m.ID, 1); got != want {
		t.Errorf("called by %s\nwant %s", got, want)
	}
	r.text(strings.Replace(seed["result"], anID, m.ID, 1))
	if got := r.await(`"final"`); !strings.Contains(got, "好的") {
		t.Errorf("a control was confirmed by %s", got)
	}
	r.text(typed("今天北京的天气怎么样呢"))
	// The first sentence goes out in two pieces, so that its sound begins sooner.
	chunk := oneLine("message")
	for _, want := range []string{
		strings.Replace(chunk, said, "北京今天天气晴朗，", 1), strings.Replace(chunk, said, "气温25摄氏度，有微风。", 1),
		strings.Replace(chunk, "chunk", "final", 1),
	} {
		if got := r.await(""); got != want {
			t.Errorf("said %s\nwant %s", got, want)
		}
	}
}

// TestLightPeer talks with a robot of the light dialect: controls and queries
// with results of every shape, a failure, a cut, another list of tools.
func TestLightPeer(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Handle(openaitest.Chat, robotBrain)
	s := start(t, setup{env: cloudEnv(cloud)})
	for _, o := range []devicetest.LightOptions{
		{URL: s.ws, Address: "24-6F-28-DD-00-01"},
		{URL: s.ws, Address: "24-6F-28-DD-00-02", DeviceID: "24:6f:28:dd:00:02", Enveloped: true},
	} {
		l, err := devicetest.DialLight(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		robot(ctx, t, l, cloud)
		for _, v := range l.Violations() {
			t.Errorf("%s: %s", o.Address, v)
		}
		l.Close()
		s.awaitLog(ctx, t, "device left", strings.ToLower(strings.ReplaceAll(o.Address, "-", ":")))
	}
}

// robotBrain calls what it is asked to, and tells what came of it.
func robotBrain(r *openaitest.Request) openaitest.Reply {
	var body struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(r.Body, &body); err != nil || len(body.Messages) == 0 {
		return openaitest.Text("no request")
	}
	last := body.Messages[len(body.Messages)-1]
	if last.Role == "tool" {
		return openaitest.Text("It says " + last.Content + ".")
	}
	if _, rest, ok := strings.Cut(last.Content, "please use "); ok {
		name, arguments, _ := strings.Cut(rest, " ")
		return openaitest.Calls(openaitest.Call{ID: "call-" + name, Name: name, Arguments: arguments})
	}
	return echo(r)
}

// robot is the conversation of TestLightPeer.
func robot(ctx context.Context, t *testing.T, l *devicetest.Light, cloud *openaitest.Server) {
	t.Helper()
	answer := func(member string) func(context.Context, json.RawMessage) string {
		return func(context.Context, json.RawMessage) string { return member }
	}
	say := func(text string) devicetest.LightReply {
		t.Helper()
		if err := l.Type(text); err != nil {
			t.Fatal(err)
		}
		reply, err := l.WaitReply(ctx)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return reply
	}
	schema := json.RawMessage(`{"type":"object","properties":{"angle":{"type":"number"}}}`)
	tool := func(name, kind, member string) devicetest.LightTool {
		return devicetest.LightTool{Name: name, MainType: "remote", SubType: kind, Parameters: schema, Call: answer(member)}
	}
	message, err := l.Register(ctx, "r-1",
		tool("turn_head", "control", `"result":true`), tool("battery", "query", `"result":80`),
		tool("look", "query", `"result":{"seen":["cat",null,1.50]}`), tool("jump", "query", `"error":{"code":-32042,"message":"the floor is wet"}`),
		devicetest.LightTool{Name: "exit", MainType: "local", SubType: "query", Parameters: schema},
		devicetest.LightTool{Name: "fly_to_moon", MainType: "local", SubType: "query", Parameters: schema},
	)
	if want := `Tools were successfully registered. Rejected: tools[5] "fly_to_moon" is no tool of this server.`; err != nil || message != want {
		t.Errorf("registered: %q, %v", message, err)
	}
	if reply := say(`please use turn_head {"angle":"30"}`); reply.Final == "" || strings.Contains(reply.Final, "It says") {
		t.Errorf("a control: %+v", reply)
	}
	for use, want := range map[string]string{
		"battery": "It says 80.",
		"look":    `It says {"seen":["cat",null,1.50]}.`,
	} {
		if reply := say("please use " + use + " {}"); reply.Final != want || strings.Join(reply.Chunks, "") != want {
			t.Errorf("%s: %+v", use, reply)
		}
	}
	if reply := say("please use jump {}"); !strings.Contains(reply.Final, "the floor is wet") {
		t.Errorf("a failure: %+v", reply)
	}
	if reply := say("hello there robot"); reply.Final != "I heard hello there robot." {
		t.Errorf("a plain answer: %+v", reply)
	}
	if err := l.Type("a story please"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Wait(ctx, func(e devicetest.Event) bool { return e.State == "chunk" && strings.Contains(e.Text, "number 3 ") }); err != nil {
		t.Fatal(err)
	}
	if reply := say("tell me about cats"); strings.Contains(reply.Final, "number 39") || len(reply.Chunks) < 4 {
		t.Errorf("the story that was cut: %+v", reply)
	}
	if reply, err := l.WaitReply(ctx); err != nil || reply.Final != "I heard tell me about cats." {
		t.Errorf("the answer after the cut: %+v, %v", reply, err)
	}
	if message, err = l.Register(ctx, "r-2", tool("dance", "query", `"result":"done"`)); err != nil || message != "Tools were successfully registered." {
		t.Errorf("registered again: %q, %v", message, err)
	}
	if reply := say("please use dance {}"); reply.Final != "It says done." {
		t.Errorf("a new tool: %+v", reply)
	}
	if last := lastRequest(t, cloud); !strings.Contains(last, `"dance"`) || strings.Contains(last, `"name":"battery","description"`) {
		t.Errorf("the model is offered %s", last)
	}
}
