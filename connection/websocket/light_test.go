package websocket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/tools/txtar"

	"xiaozhi/connection"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/light"
)

// withLight gives every device the light dialect.
func withLight(o *setup) {
	log := o.Log
	o.NewLight = func(s wire.Session, link connection.Link) connection.Light {
		return light.New(light.Options{Send: link.Send, DeviceID: identity.AddressOf(s.DeviceID), Log: log})
	}
}

// exampleFrames are the frames of the light dialect: as printed, by name.
func exampleFrames(t *testing.T) map[string]string {
	t.Helper()
	file, err := txtar.ParseFile("testdata/light/frames.txtar")
	if err != nil {
		t.Fatal(err)
	}
	frames := make(map[string]string)
	for _, f := range file.Files {
		frames[f.Name] = string(f.Data)
	}
	return frames
}

// oneLine is a JSON text without its white space.
func oneLine(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// newest is the last text message that a device got.
func (p *peer) newest() string {
	p.t.Helper()
	synctest.Wait()
	texts := p.texts()
	if len(texts) == 0 {
		p.t.Fatal("nothing came")
	}
	return texts[len(texts)-1]
}

// expect fails the test unless want is all that has come since n messages.
func (p *peer) expect(n int, want ...string) {
	p.t.Helper()
	synctest.Wait()
	got := p.texts()[n:]
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		p.t.Errorf("got  %q\nwant %q", got, want)
	}
}

// lightOf is the light source among a conversation's.
func lightOf(t *testing.T, talk *fakeTalk) *light.Source {
	t.Helper()
	for _, s := range talk.sources {
		if light, ok := s.(*light.Source); ok {
			return light
		}
	}
	t.Fatal("the conversation has no light source")
	return nil
}

// callLight calls a tool; the outcome comes later.
func callLight(t *testing.T, light *light.Source, tool string, arguments map[string]any) <-chan string {
	t.Helper()
	outcome := make(chan string, 1)
	go func() {
		result, err := light.CallTool(context.WithoutCancel(t.Context()), tool, arguments)
		if err != nil {
			outcome <- "error: " + err.Error()
			return
		}
		outcome <- mcp.ResultText(mcp.ActionResponse{Result: result})
	}()
	synctest.Wait()
	return outcome
}

// callID is the id of the newest call that a device got.
func callID(t *testing.T, frame string) string {
	t.Helper()
	var m struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(frame), &m); err != nil || m.ID == "" {
		t.Fatalf("no call: %s", frame)
	}
	return m.ID
}

// TestLightDialect replays the seed's transcript, byte for byte: a peer without
// Device-Id and hello registers, is called, answers, and is told what is said.
func TestLightDialect(t *testing.T) {
	const anID = "tool-call-12345-abcdef"
	seed := exampleFrames(t)
	bubble(t, withLight, func(t *testing.T, r *rig) {
		p := r.dialWith(nil)
		p.send(seed["register"])
		p.expect(0, oneLine(t, seed["confirmation"]))
		talk := r.talk(0)
		if talk.session.DeviceID != "aa:bb:cc:dd:ee:ff" || talk.session.Language != "zh" {
			t.Errorf("session %+v", talk.session)
		}
		light := lightOf(t, talk)

		outcome := callLight(t, light, "amplify_volume", map[string]any{"level": 80})
		got := p.newest()
		id := callID(t, got)
		if want := strings.Replace(oneLine(t, seed["execute"]), anID, id, 1); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		p.send(strings.Replace(seed["result"], anID, id, 1))
		if got := <-outcome; got != `{"status":"success","message":"音量已成功设置为 80"}` {
			t.Errorf("result %s", got)
		}
		outcome = callLight(t, light, "amplify_volume", map[string]any{"level": 180})
		p.send(strings.Replace(seed["error"], anID, callID(t, p.newest()), 1))
		if got := <-outcome; got != "error: 执行失败：音量级别超出范围（0-100）。" {
			t.Errorf("error %s", got)
		}

		n := len(p.texts())
		const said = "北京今天天气晴朗，气温25摄氏度，有微风。"
		talk.out.Send(wire.Message{Kind: wire.MessageSTT, Turn: 1, Text: "天气"})
		talk.out.Send(wire.Message{Kind: wire.MessageThought, Turn: 1, Text: "想"})
		talk.out.Send(wire.Message{Kind: wire.MessageTTSStart, Turn: 1})
		talk.out.Send(wire.Message{Kind: wire.MessageChunk, Turn: 1, Text: said})
		talk.out.Send(wire.Message{Kind: wire.MessageSentenceStart, Turn: 1, Text: said})
		if _, ok := talk.out.Audio(1, []byte{1, 2, 3}); !ok {
			t.Error("sound for nobody is refused, so that the turn cannot end")
		}
		talk.out.Send(wire.Message{Kind: wire.MessageTTSStop, Turn: 1, Cut: true, Closing: []byte{1}})
		talk.out.Send(wire.Message{Kind: wire.MessageFinal, Turn: 1, Text: said})
		talk.out.Send(wire.Message{Kind: wire.MessageKeepAlive})
		chunk := oneLine(t, seed["message"])
		p.expect(n,
			strings.NewReplacer("chunk", "thought", said, "想").Replace(chunk), chunk, strings.Replace(chunk, "chunk", "final", 1))
		if n := len(p.of(websocket.BinaryMessage)); n != 0 {
			t.Errorf("%d frames of sound came", n)
		}

		time.Sleep(time.Minute) // no hello is missed
		p.send(`{"type":"listen","state":"detect","text":"现在几点"}`)
		p.sendBinary([]byte{1, 2, 3}) // nobody asked for it
		p.alive(talk)
		if events := talk.all(); events[0] != (wire.Detect{Text: "现在几点"}) || len(events) != 2 {
			t.Errorf("events %v", events)
		}
	})
}

// TestLightInTheEnvelope: frames that come in the envelope are answered in it.
func TestLightInTheEnvelope(t *testing.T) {
	seed := exampleFrames(t)
	bubble(t, withLight, func(t *testing.T, r *rig) {
		p := r.dial("AA:BB:CC:DD:EE:FF")
		p.send(`{"session_id":"","type":"mcp","payload":` + seed["register"] + `}`)
		talk := r.talk(0)
		wrap := func(frame string) string {
			return fmt.Sprintf(`{"session_id":%q,"type":"mcp","payload":%s}`, talk.session.SessionID, frame)
		}
		p.expect(0, wrap(oneLine(t, seed["confirmation"])))
		outcome := callLight(t, lightOf(t, talk), "amplify_volume", map[string]any{"level": 80})
		var m struct{ Payload json.RawMessage }
		if err := json.Unmarshal([]byte(p.newest()), &m); err != nil {
			t.Fatal(err)
		}
		id := callID(t, string(m.Payload))
		p.send(`{"jsonrpc":"2.0","id":"` + id + `","result":true}`) // bare: an answer sets no framing
		if got := <-outcome; got != "true" {
			t.Errorf("result %s", got)
		}
		n := len(p.texts())
		talk.out.Send(wire.Message{Kind: wire.MessageChunk, Text: "北京今天天气晴朗，气温25摄氏度，有微风。"})
		p.expect(n, wrap(oneLine(t, seed["message"])))
		p.send(seed["register"]) // it changes its mind
		p.expect(n+1, oneLine(t, seed["confirmation"]))
		p.send(`{"type":"mcp","payload":` + fmt.Sprintf("%q", oneLine(t, seed["register"])) + `}`) // a string that holds it
		p.expect(n+2, wrap(oneLine(t, seed["confirmation"])))
	})
}

// TestRegisterAroundHello: a device that says hello may register before it and
// after it, with the same answers, and has sound and messages of both dialects.
func TestRegisterAroundHello(t *testing.T) {
	seed := exampleFrames(t)
	const hello = `{"type":"hello","version":1,"transport":"websocket","features":{"mcp":true}}`
	for _, first := range []string{"registration", "hello"} {
		t.Run(first+" first", func(t *testing.T) {
			var tools *fakeTools
			change := func(o *setup) {
				withLight(o)
				o.NewTools = func(_ wire.Session, link connection.Link) connection.Tools {
					tools = &fakeTools{link: link}
					return tools
				}
			}
			bubble(t, change, func(t *testing.T, r *rig) {
				p := r.dial("aa:bb:cc:dd:ee:ff")
				if first == "hello" {
					p.send(hello)
					p.send(seed["register"])
				} else {
					p.send(seed["register"])
					p.expect(0, oneLine(t, seed["confirmation"]))
					if tools.started != 0 {
						t.Error("the standard dialect begins before the hello")
					}
					p.send(hello)
				}
				talk := r.talk(0)
				if len(r.talks) != 1 || len(talk.sources) != 2 || tools.started != 1 {
					t.Fatalf("%d conversations, sources %v, started %d times", len(r.talks), talk.sources, tools.started)
				}
				if texts := strings.Join(p.texts(), "\n"); strings.Count(texts, `"type":"hello"`) != 1 ||
					strings.Count(texts, oneLine(t, seed["confirmation"])) != 1 || strings.Count(texts, `"initialize"`) != 1 {
					t.Errorf("got %s", texts)
				}
				p.send(hello)
				n := len(p.texts())
				talk.out.Send(wire.Message{Kind: wire.MessageTTSStart, Turn: 1})
				talk.out.Send(wire.Message{Kind: wire.MessageChunk, Turn: 1, Text: "a"})
				talk.out.Audio(1, []byte{7})
				talk.out.Send(wire.Message{Kind: wire.MessageTTSStop, Turn: 1})
				talk.out.Send(wire.Message{Kind: wire.MessageFinal, Turn: 1, Text: "a"})
				id := talk.session.SessionID
				p.expect(n, `{"session_id":"`+id+`","type":"tts","state":"start"}`,
					`{"jsonrpc":"2.0","method":"mcp/ai/message","params":{"type":"chunk","content":"a"}}`,
					`{"session_id":"`+id+`","type":"tts","state":"stop"}`,
					`{"jsonrpc":"2.0","method":"mcp/ai/message","params":{"type":"final","content":"a"}}`)
				if sound := p.of(websocket.BinaryMessage); len(sound) != 1 || sound[0].data[0] != 7 {
					t.Errorf("sound %v", sound)
				}
				p.sendBinary([]byte{1, 2, 3})
				p.leave()
				synctest.Wait()
				if tools.stopped != 1 || lightOf(t, talk).IsReady() {
					t.Error("tools go on without the device")
				}
				if events := talk.all(); len(events) != 1 {
					t.Errorf("events %v", events)
				}
			})
		})
	}
}

// TestHelloInAReply: of a reply that began before the hello, nothing but its
// JSON-RPC frames reaches the device; the next one does.
func TestHelloInAReply(t *testing.T) {
	seed := exampleFrames(t)
	bubble(t, withLight, func(t *testing.T, r *rig) {
		p := r.dial("aa:bb:cc:dd:ee:ff")
		p.send(seed["register"])
		talk := r.talk(0)
		talk.out.Send(wire.Message{Kind: wire.MessageTTSStart, Turn: 1})
		talk.out.Audio(1, []byte{1})
		p.send(`{"type":"hello"}`)
		synctest.Wait()
		n := len(p.texts())
		talk.out.Audio(1, []byte{1})
		talk.out.Send(wire.Message{Kind: wire.MessageTTSStop, Turn: 1})
		p.expect(n)
		talk.out.Send(wire.Message{Kind: wire.MessageTTSStart, Turn: 2})
		talk.out.Audio(2, []byte{2})
		p.expect(n, `{"session_id":"`+talk.session.SessionID+`","type":"tts","state":"start"}`)
		if sound := p.of(websocket.BinaryMessage); len(sound) != 1 || sound[0].data[0] != 2 {
			t.Errorf("sound %v", sound)
		}
	})
}

// TestTwoDialects: on one socket, every answer finds the side that asked.
func TestTwoDialects(t *testing.T) {
	seed := exampleFrames(t)
	var tools *fakeTools
	change := func(o *setup) {
		withLight(o)
		o.NewTools = func(_ wire.Session, link connection.Link) connection.Tools {
			tools = &fakeTools{link: link}
			return tools
		}
	}
	bubble(t, change, func(t *testing.T, r *rig) {
		p := r.dial("aa:bb:cc:dd:ee:ff")
		p.send(`{"type":"hello","features":{"mcp":true}}`)
		p.send(seed["register"])
		talk := r.talk(0)
		outcome := callLight(t, lightOf(t, talk), "amplify_volume", map[string]any{"level": 1})
		id := callID(t, p.newest())
		standard := []string{
			`{"id":1,"result":{}}`, `{"id":"1","result":{}}`, `{"id":"foreign","result":{}}`,
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		}
		for _, payload := range standard {
			p.send(`{"type":"mcp","payload":` + payload + `}`)
		}
		bare := []string{`{"jsonrpc":"2.0","id":"2","result":{}}`, `{"jsonrpc":"2.0","method":"ping","id":9}`}
		for _, payload := range bare {
			p.send(payload)
		}
		p.send(`{"type":"mcp","payload":{"id":"` + id + `","result":"light"}}`)
		if got := <-outcome; got != "light" {
			t.Errorf("the light call: %s", got)
		}
		if got := strings.Join(tools.got, "\n"); got != strings.Join(append(standard, bare...), "\n") {
			t.Errorf("the standard dialect got %s", got)
		}
		n := len(p.texts())
		for range 2 { // the first answers the bare ping; there was no second
			if err := tools.link.Send([]byte(`{"jsonrpc":"2.0","id":9,"result":{}}`)); err != nil {
				t.Error(err)
			}
		}
		session := talk.session.SessionID
		p.expect(n, `{"jsonrpc":"2.0","id":9,"result":{}}`, `{"session_id":"`+session+`","type":"mcp","payload":{"jsonrpc":"2.0","id":9,"result":{}}}`)
		for i := range 2 * 16 { // requests that nobody answers are forgotten
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"ping","id":%d}`, 100+i))
		}
		synctest.Wait()
		n = len(p.texts())
		for _, id := range []int{100, 131} {
			_ = tools.link.Send(fmt.Appendf(nil, `{"id":%d}`, id))
		}
		p.expect(n, `{"session_id":"`+session+`","type":"mcp","payload":{"id":100}}`, `{"id":131}`)
	})
}

// TestOnlyLight: a registered device without the standard dialect is answered
// what it asks, and a stranger's frames harm nothing.
func TestOnlyLight(t *testing.T) {
	seed := exampleFrames(t)
	bubble(t, withLight, func(t *testing.T, r *rig) {
		plain := r.greet("d1")
		talk := r.talk(0)
		talk.out.Send(wire.Message{Kind: wire.MessageChunk, Text: "a"})
		plain.send(`{"jsonrpc":"2.0","method":"ping","id":1}`)
		plain.expect(1) // it has not registered
		p := r.dial("aa:bb:cc:dd:ee:ff")
		p.send(seed["register"])
		p.send(`{"jsonrpc":"2.0","method":"mcp/dance","id":"x"}`)
		p.send(`{"jsonrpc":"2.0","id":"nobody","result":1}`)
		p.send(`{"jsonrpc":"2.0"}`)
		p.expect(0, oneLine(t, seed["confirmation"]), `{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method not found"}}`)
		outcome := callLight(t, lightOf(t, r.talk(1)), "amplify_volume", nil)
		p.leave()
		if got := <-outcome; got != "error: call amplify_volume: tool source closed" {
			t.Errorf("a call when the device leaves: %s", got)
		}
	})
}

// TestRefusedRegistrations do not stand for a hello.
func TestRefusedRegistrations(t *testing.T) {
	for name, test := range map[string]struct {
		header http.Header
		frame  string
		answer string
	}{
		"foreign address": {
			http.Header{"Device-Id": {"aa:bb:cc:dd:ee:00"}},
			"",
			`{"jsonrpc":"2.0","id":"client-reg-001","error":{"code":-32602,"message":"mac_addr \"AA-BB-CC-DD-EE-FF\" is not the Device-Id of this connection"}}`,
		},
		"nobody": {
			nil, `{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"tools":[]},"id":"r"}`,
			`{"jsonrpc":"2.0","id":"r","error":{"code":-32602,"message":"mac_addr is missing or no address, and the connection has no Device-Id"}}`,
		},
		"nobody, without id": {nil, `{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":" ","tools":[]}}`, ""},
		"not printable":      {nil, `{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":"a\u0000b","tools":[]},"id":7}`, ""},
		"no tools": {
			nil, `{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":"m1"},"id":"r"}`,
			`{"jsonrpc":"2.0","id":"r","error":{"code":-32602,"message":"params.tools is missing or no array"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, withLight, func(t *testing.T, r *rig) {
				p := r.dialWith(test.header)
				frame := test.frame
				if frame == "" {
					frame = exampleFrames(t)["register"]
				}
				p.send(frame)
				synctest.Wait()
				if got := strings.Join(p.texts(), ""); got != test.answer {
					t.Errorf("got  %s\nwant %s", got, test.answer)
				}
				p.send(`{"type":"listen","state":"detect","text":"hello"}`)
				began := time.Now()
				<-p.done
				if took := time.Since(began); took < 10*time.Second-time.Second || took > 10*time.Second+time.Second || len(r.talks) != 0 {
					t.Errorf("closed after %v, %d conversations", took, len(r.talks))
				}
			})
		})
	}
}

// TestNamelessDevices: a device without Device-Id is who its registration says.
func TestNamelessDevices(t *testing.T) {
	seed := exampleFrames(t)
	bubble(t, withLight, func(t *testing.T, r *rig) {
		closed := func(p *peer, reason string) {
			t.Helper()
			<-p.done
			if ends := p.of(websocket.CloseMessage); len(ends) != 1 || string(ends[0].data) != reason {
				t.Errorf("closed by %v, want %q", ends, reason)
			}
		}
		known := r.greet("aa:bb:cc:dd:ee:ff")
		first, second := r.dialWith(nil), r.dialWith(nil)
		synctest.Wait()
		if n := r.registry.Connected(); n != 3 {
			t.Errorf("%d connected", n)
		}
		first.send(seed["register"])
		closed(known, "replaced by a new connection of the same device")
		second.send(seed["register"])
		closed(first, "replaced by a new connection of the same device")
		second.send(seed["register"]) // again, by the same
		second.expect(0, oneLine(t, seed["confirmation"]), oneLine(t, seed["confirmation"]))
		if n := r.registry.Connected(); n != 1 || len(r.talks) != 3 {
			t.Errorf("%d connected, %d conversations", n, len(r.talks))
		}
		third := r.greet("AA:BB:CC:DD:EE:FF")
		closed(second, "replaced by a new connection of the same device")
		third.leave()
		stranger := r.dialWith(nil)
		stranger.send(`{"type":"hello"}`)
		closed(stranger, "no Device-Id, and no mcp/registerTools that names the device")
		synctest.Wait()
		if n := r.registry.Connected(); n != 0 {
			t.Errorf("%d are left", n)
		}
		if len(r.log.lines("device left", "named=aa:bb:cc:dd:ee:ff")) != 2 {
			t.Errorf("log: %s", r.log)
		}
	})
}

func TestNoLightDialect(t *testing.T) {
	for name, change := range map[string]func(*setup){
		"none":        nil,
		"none for it": func(o *setup) { o.NewLight = func(wire.Session, connection.Link) connection.Light { return nil } },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, change, func(t *testing.T, r *rig) {
				p := r.greet("aa:bb:cc:dd:ee:ff")
				p.send(exampleFrames(t)["register"])
				p.expect(1)
				r.talk(0).out.Send(wire.Message{Kind: wire.MessageFinal, Text: "a"})
				p.expect(1)
				p.alive(r.talk(0))
			})
		})
	}
}

// brokenLight cannot start.
type brokenLight struct{ *light.Source }

func (brokenLight) Start(context.Context) error { return errors.New("broken") }

func TestLightCannotStart(t *testing.T) {
	bubble(t, func(o *setup) {
		o.NewLight = func(_ wire.Session, link connection.Link) connection.Light {
			return brokenLight{light.New(light.Options{Send: link.Send})}
		}
	}, func(t *testing.T, r *rig) {
		p := r.dial("d1")
		p.send(`{"type":"hello"}`)
		<-p.done
		if ends := p.of(websocket.CloseMessage); len(ends) != 1 || ends[0].code != websocket.CloseInternalServerErr {
			t.Errorf("ended by %v", ends)
		}
	})
}

// TestStrictLightPeer lets the strict peer of the dialect find nothing, bare
// and in the envelope.
func TestStrictLightPeer(t *testing.T) {
	for _, enveloped := range []bool{false, true} {
		bubble(t, withLight, func(t *testing.T, r *rig) {
			nc, err := r.ln.dial()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l, err := devicetest.DialLight(ctx, devicetest.LightOptions{URL: "ws://server/xiaozhi/v1/", NetConn: nc, Enveloped: enveloped})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if message, err := l.Register(ctx, "r-1", devicetest.LightTool{
				Name: "看", SubType: "query", Parameters: json.RawMessage(`{"type":"object","properties":{"<where>":{"type":"string"}}}`),
				Call: func(_ context.Context, input json.RawMessage) string { return `"result":` + string(input) },
			}); err != nil || message != "Tools were successfully registered." {
				t.Errorf("registered: %q, %v", message, err)
			}
			if err := l.Type("hello"); err != nil {
				t.Fatal(err)
			}
			talk := r.talk(0)
			if got := <-callLight(t, lightOf(t, talk), "看", map[string]any{"<where>": "a&b \"\u2028"}); got != "{\"<where>\":\"a&b \\\"\\u2028\"}" {
				t.Errorf("result %s", got)
			}
			for _, m := range []wire.Message{
				{Kind: wire.MessageSTT, Turn: 1, Text: "hello"},
				{Kind: wire.MessageTTSStart, Turn: 1},
				{Kind: wire.MessageChunk, Turn: 1, Text: "<one> & \"two\"\n"},
				{Kind: wire.MessageTTSStop, Turn: 1},
				{Kind: wire.MessageFinal, Turn: 1, Text: "<one> & \"two\"\n"},
			} {
				talk.out.Send(m)
			}
			reply, err := l.WaitReply(ctx)
			if err != nil || reply.Final != "<one> & \"two\"\n" || len(reply.Chunks) != 1 {
				t.Errorf("reply %+v, %v", reply, err)
			}
			for _, v := range l.Violations() {
				t.Errorf("violation: %v", v)
			}
		})
	}
}
