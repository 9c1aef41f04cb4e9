package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// TestRedialAndReplace loses its connection in three ways; the device that dials
// again is let in at once and goes on where it was.
func TestRedialAndReplace(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s, cloud := startEcho(t)
	o := devicetest.Options{NoMCP: true, DeviceID: "24:6F:28:CC:02:01", ClientID: "5c0a3a52-6a0e-4a57-8a3e-0a1f6f0c0201"}
	first := s.dial(ctx, t, o)
	ask(ctx, t, first, "the number is one")
	first.CloseTCP() // hangs up as firmware does
	second := s.dial(ctx, t, o)
	ask(ctx, t, second, "the number is two")
	o.DeviceID = strings.ToLower(o.DeviceID)
	_, token := s.provision(ctx, t, o)
	half := dialRaw(t, s, o.DeviceID, "Client-Id: "+o.ClientID, "Authorization: Bearer "+token) // takes its place, and is gone in the middle of a reply
	half.hello(hello242)
	half.text(typed("the number is three, now a story"))
	half.await(`"tts"`, `"start"`)
	third := s.dial(ctx, t, o)
	if r := ask(ctx, t, third, "what are the numbers"); r.Text() != "I heard what are the numbers." || r.Cut {
		t.Errorf("answer %q, cut %t", r.Text(), r.Cut)
	}
	if last := lastRequest(t, cloud); !holdsAll(last, []string{"number is one", "number is two", "number is three", "what are the numbers"}) {
		t.Errorf("history was lost: %s", last)
	}
	select {
	case <-second.Done():
	case <-ctx.Done():
		t.Fatal("the replaced connection is still open")
	}
	if code, _ := half.awaitClose(ctx); code != 1000 {
		t.Errorf("the half-open connection was closed with %d", code)
	}
	s.awaitLog(ctx, t, "device_id="+o.DeviceID, "replaced by a new connection")
}

// TestPingIsAnsweredInAReply pings while a story streams.
func TestPingIsAnsweredInAReply(t *testing.T) {
	t.Parallel()
	s := echoServer.use(t)
	r := dialRaw(t, s, "24:6f:28:cc:03:01")
	r.hello(hello242)
	r.text(typed("a story please"))
	r.await("sentence_start")
	for i := range 5 {
		payload := fmt.Sprintf("ping %d", i)
		r.frame(finBit|opPing, []byte(payload))
		for frames := 0; ; {
			op, got, err := r.read()
			if err != nil || strings.Contains(string(got), `"stop"`) {
				t.Fatalf("ping %d was not answered while the story went on: %v", i, err)
			}
			if op == opPong {
				if string(got) != payload {
					t.Errorf("ping %q was answered with %q", payload, got)
				}
				break
			}
			if frames++; frames > 40 {
				t.Fatalf("%d messages came before the answer to a ping", frames)
			}
		}
	}
}

// TestDevicesHearTheirOwnAnswers lets several devices ask at the same time.
func TestDevicesHearTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := echoServer.use(t)
	sessions := map[string]bool{}
	var wg sync.WaitGroup
	for i := range 3 {
		d := s.dial(ctx, t, devicetest.Options{DeviceID: fmt.Sprintf("24:6f:28:cc:04:%02x", i), NoMCP: true})
		sessions[d.SessionID()] = true
		wg.Go(func() {
			for k := range 3 {
				text := fmt.Sprintf("thing %d of %d", k, i)
				if err := d.Detect(text); err != nil {
					t.Error(err)
					return
				}
				r, err := d.WaitReply(ctx)
				if err != nil || r.Heard != text || r.Text() != "I heard "+text+"." {
					t.Errorf("asked %q: heard %q, answered %q, %v", text, r.Heard, r.Text(), err)
					return
				}
			}
		})
	}
	wg.Wait()
	if len(sessions) != 3 {
		t.Errorf("session ids are not unique: %v", sessions)
	}
}

// TestToolFailuresReachTheModel gives a tool's failure in the shapes that
// clients use. The model hears the reason each time.
func TestToolFailuresReachTheModel(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	s := start(t, setup{speaks: true, env: cloudEnv(cloud)})
	const listed = `{"tools":[{"name":"self.lamp.get_state","description":"the lamp","inputSchema":{"type":"object","properties":{},"required":[]}}]}`
	for i, answer := range []string{
		`"result":{"content":[{"type":"text","text":"the bulb is gone"}],"isError":true}`,
		`"error":{"code":-32603,"message":"the bulb is gone"}`,
		`"error":{"message":"the bulb is gone"}`,
	} {
		cloud.Reply(openaitest.Chat, openaitest.Calls(openaitest.Call{ID: "c1", Name: "self_lamp_get_state", Arguments: "{}"}), openaitest.Text("I see."))
		r := dialRaw(t, s, fmt.Sprintf("24:6f:28:cc:05:%02x", i))
		r.hello(strings.Replace(hello242, `"features":{}`, `"features":{"mcp":true}`, 1))
		r.answerMCP("initialize", `"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"desktop","version":"1"}}`)
		r.answerMCP("tools/list", `"result":`+listed)
		r.text(`{"type":"listen","state":"start","mode":"manual"}`)
		s.awaitLog(ctx, t, fmt.Sprintf("device_id=24:6f:28:cc:05:%02x", i), "tools")
		r.text(typed("please look at it"))
		r.answerMCP("tools/call", answer)
		r.await(`"stop"`)
		if last := lastRequest(t, cloud); !strings.Contains(last, "the bulb is gone") {
			t.Errorf("%s: the model was told %s", answer, last)
		}
		r.conn.Close()
	}
}

// answerMCP waits for a request of the server and answers it; member is the
// result or the error.
func (r *raw) answerMCP(method, member string) {
	r.t.Helper()
	var m struct {
		Payload struct {
			ID int `json:"id"`
		} `json:"payload"`
	}
	request := r.await(`"mcp"`, `"`+method+`"`)
	if err := json.Unmarshal([]byte(request), &m); err != nil || m.Payload.ID <= 0 {
		r.t.Fatalf("%s: %v", request, err)
	}
	r.text(fmt.Sprintf(`{"session_id":"","type":"mcp","payload":{"jsonrpc":"2.0","id":%d,%s}}`, m.Payload.ID, member))
}
