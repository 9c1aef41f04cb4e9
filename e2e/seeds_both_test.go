package e2e

import (
	"fmt"
	"strings"
	"testing"

	"xiaozhi/internal/openaitest"
)

// TestBothDialects registers tools on a socket of the standard dialect, before
// the hello or after it, bare or in the envelope: each answer comes as its
// question did, and calls go to whom they belong.
func TestBothDialects(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s, _ := startObedient(t, "")
	const tool = `{"name":"nod","main_type":"remote","sub_type":"query","parameters":{"type":"object","properties":{}}}`
	execute := `{"jsonrpc":"2.0","method":"mcp/tool/execute","params":{"tool_name":"nod","tool_input":{}},"id":"` + exampleID + `"}`
	const confirmed = `{"jsonrpc":"2.0","id":"r","result":{"status":"registered","message":"Tools were successfully registered."}}`
	for i, c := range []struct {
		name             string
		early, enveloped bool
	}{
		{"bare, before the hello", true, false},
		{"in the envelope, before the hello", true, true},
		{"bare, after the hello", false, false},
		{"in the envelope, after the hello", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			device := fmt.Sprintf("24:6f:28:5e:ed:3%d", i)
			p := dialPeer(t, s, "Device-Id", device)
			register := strings.Replace(lightTools("r", tool), "aa:bb:cc:dd:ee:02", strings.ToUpper(strings.ReplaceAll(device, ":", "-")), 1)
			open, shut := "", ""
			if c.enveloped {
				register = envelope("", register)
			}
			if !c.early {
				p.hello(seedHello)
				p.settle()
				s.awaitLog(ctx, t, "device_id="+device, "device tools listed")
			}
			p.send(register)
			got, _ := p.until("successfully registered")
			if c.enveloped {
				session, _ := members(t, got)["session_id"].(string)
				open, shut = `{"session_id":"`+session+`","type":"mcp","payload":`, "}"
			}
			if want := open + confirmed + shut; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if c.early {
				p.hello(seedHello)
				p.settle()
				s.awaitLog(ctx, t, "device_id="+device, "device tools listed")
			}
			p.send(`{"session_id":"","type":"listen","state":"start","mode":"manual"}`)
			p.send(typed("use nod {} and self_battery_get_level {}"))
			var call, standard string
			for call == "" || standard == "" { // in either order
				switch text := p.next(); {
				case strings.Contains(text, "mcp/tool/execute"):
					call = text
					id := executeID(t, text, execute, open, shut)
					answer := `{"jsonrpc":"2.0","id":"` + id + `","result":"nodded"}`
					if c.enveloped {
						answer = envelope(p.session, answer)
					}
					p.send(answer)
				case strings.Contains(text, `"tools/call"`):
					standard = text
					p.exact(text, "tools/call", "jsonrpc", "id", "method", "params")
					p.answer("", int(members(t, text)["payload"].(map[string]any)["id"].(float64)), `"result":{"content":[{"type":"text","text":"87"}]}`)
				}
			}
			// Such a device has a speaker, and gets the messages of both dialects.
			_, before := p.until(`"tts"`, `"stop"`)
			all := strings.Join(before, "\n")
			if !holdsAll(all, []string{"sentence_start", "Result: 87.", open + aiMessage(t, "chunk", "Result: 87.") + shut}) {
				t.Errorf("the reply was %s", all)
			}
			if final, _ := p.until(`"final"`); final != open+aiMessage(t, "final", "Result: 87.")+shut {
				t.Errorf("final %s", final)
			}
		})
	}
}

// TestCutReplyHasOneFinal cuts a long reply: the final holds what was heard of it.
func TestCutReplyHasOneFinal(t *testing.T) {
	t.Parallel()
	s, cloud := startObedient(t, "")
	cloud.Handle(openaitest.Chat, echo)
	p := dialPeer(t, s, "Device-Id", "aa:bb:cc:dd:ee:02")
	p.hello(hello242)
	p.send(lightTools("r", ""))
	p.until("successfully registered")
	p.send(`{"session_id":"","type":"listen","state":"start","mode":"manual"}`)
	p.send(typed("a story please"))
	p.until("sentence number 1 ")
	p.send(`{"session_id":"","type":"abort"}`)
	final, before := p.until(`"final"`)
	if strings.Contains(final, "number 30") {
		t.Errorf("the final says more than was heard: %s", final)
	}
	if n := strings.Count(strings.Join(before, ""), `"state":"stop"`); n != 1 {
		t.Errorf("%d tts stops before the final of a reply that was cut", n)
	}
	p.send(typed("and now this"))
	_, before = p.until(`"final"`, "and now this")
	if n := strings.Count(strings.Join(before, ""), `"final"`); n != 0 {
		t.Errorf("%d finals more for the reply that was cut", n)
	}
}
