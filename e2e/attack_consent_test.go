package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// vault is a house with things that need a yes: a model that calls whatever it is told
// to, tool servers of others, and an HTTP service.
type vault struct {
	*workshop
	shelf *httptest.Server // of the tool servers, at /NAME, and of the service, at /lamp
	cloud *openaitest.Server
	said  atomic.Value // what is heard in any speech
}

// vaultConfig asks by raw names and by those of models, whatever the case, across
// slashes and by source.
const vaultConfig = `
asr: [ears]
providers: {ears: {type: openai, base_url: %[1]q, api_key: k, asr_model: ears-1}}
mcp: {pass_on: ["*"]}
tools:
  confirm: ["Self.Safe.*", SELF_GATE_OPEN, "files/*", "external:Shed/*", "file/HOME.*", "local/calculate", "local/set_timer", "IoT/self.lamp.*", "light/*"]
  kinds: {"*": query}
  external:
    mcpServers:
      nas: {url: "%[2]s/nas", trust: true}
      shed: {url: "%[2]s/shed", trust: true}
      attic: {url: "%[2]s/attic"}
      porch: {url: "%[2]s/porch", trust: true}
`

// openVault starts it, with more lines of its section tools. It ends with the test.
func openVault(ctx context.Context, t *testing.T, more string) (*server, *vault) {
	t.Helper()
	v := &vault{workshop: &workshop{ran: map[string]int{}}, cloud: startCloud(t)}
	v.said.Store("nothing")
	v.shelf = httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(v.shelf.Close)
	v.cloud.Handle(openaitest.Chat, obeys)
	v.cloud.Handle(openaitest.Transcribe, func(*openaitest.Request) openaitest.Reply {
		return openaitest.JSON(http.StatusOK, fmt.Sprintf(`{"text":%q}`, v.said.Load()))
	})
	s := start(t, setup{env: append(cloudEnv(v.cloud), "XIAOZHI_LLM=openai"), config: fmt.Sprintf(vaultConfig, v.cloud.URL(), v.shelf.URL) + more})
	for _, name := range []string{"nas", "shed", "attic", "porch"} {
		s.logged(ctx, t, toolsOf(name))
	}
	return s, v
}

// obeys is a model that calls the tool which the user names: "call NAME ARGUMENTS".
func obeys(r *openaitest.Request) openaitest.Reply {
	var body struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(r.Body, &body); err != nil || len(body.Messages) == 0 {
		return openaitest.Text("Nothing.")
	}
	last := body.Messages[len(body.Messages)-1]
	order, told := strings.CutPrefix(last.Content, "call ")
	if chinese, ok := strings.CutPrefix(last.Content, "请调用 "); ok {
		order, told = chinese, true
	}
	if name, arguments, ok := strings.Cut(order, " "); told && ok && last.Role == "user" {
		return openaitest.Calls(call("c"+fmt.Sprint(len(body.Messages)), name, arguments))
	}
	return openaitest.Text("It is done.")
}

// serve answers as tool servers that say nothing of what they destroy, and as a lamp.
func (v *vault) serve(w http.ResponseWriter, r *http.Request) {
	name := strings.Trim(r.URL.Path, "/")
	if name == "lamp" {
		v.note("home.lamp")
		fmt.Fprint(w, `{}`)
		return
	}
	var m rpc
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var result string
	w.Header().Set("Content-Type", "application/json")
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"` + name + `","version":"1"}}`
	case "tools/list":
		tool := map[string]string{"nas": "files/old/zap", "shed": "saw", "attic": "burn", "porch": "light"}[name]
		result = `{"tools":[{"name":"` + tool + `","description":"Works at the ` + name + `","inputSchema":{"type":"object","properties":{"level":{"type":"integer"}}}}]}`
	case "tools/call":
		v.note(fmt.Sprint(m.Params.Name, " ", m.Params.Arguments["level"]))
		result = `{"content":[{"type":"text","text":"worked"}],"isError":false}`
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// visitor is a device of the vault, whose tools note what they did.
func (v *vault) visitor(ctx context.Context, t *testing.T, s *server, id string, names ...string) *devicetest.Device {
	t.Helper()
	o := devicetest.Options{DeviceID: id, NoMCP: len(names) == 0}
	for _, name := range names {
		o.Tools = append(o.Tools, v.tool(name, 0, "true", nil))
	}
	d := s.dial(ctx, t, o)
	if len(names) > 0 {
		s.waitForTools(ctx, t, d)
	}
	return d
}

// ranAny returns what of these was done.
func (v *vault) ranAny(whats ...string) (done []string) {
	for what := range v.counts() {
		if slices.Contains(whats, what) {
			done = append(done, what)
		}
	}
	return done
}

// isQuestion reports whether a reply asks for a yes, isRefusal whether it takes a no.
func isQuestion(r *devicetest.Reply) bool {
	return strings.Contains(r.Text(), "Shall I really") || strings.Contains(r.Text(), "确定要")
}

func isRefusal(r *devicetest.Reply) bool {
	return strings.Contains(r.Text(), "I will not do it") || strings.Contains(r.Text(), "不做了")
}

// TestAttackModelWithoutYes: whatever the model calls by any of the patterns, and what
// a server of others does not explain, is asked about first and not run after a no; a
// trusted server's tool, and one that is not named, run at once.
func TestAttackModelWithoutYes(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s, v := openVault(ctx, t, "")
	t.Run("calls", func(t *testing.T) {
		for n, c := range []struct {
			what, tool, ran string
			asks            bool
		}{
			{"raw name, other case", "self_safe_open", "self.safe.open", true},
			{"model's name, other case", "self_gate_open", "self.gate.open", true},
			{"across a slash", "files_old_zap", "files/old/zap", true},
			{"by source", "saw", "saw", true},
			{"not explained", "burn", "burn", true},
			{"trusted", "light", "light", false},
			{"not named", "self_meter_get_reading", "self.meter.get_reading", false},
		} {
			t.Run(c.what, func(t *testing.T) {
				t.Parallel()
				ctx := limit(t)
				d := v.visitor(ctx, t, s, fmt.Sprintf("24:6f:28:ab:07:%02x", n), "self.safe.open", "self.gate.open", "self.meter.get_reading")
				r := ask(ctx, t, d, "call "+c.tool+` {"level":3}`)
				done := v.ranAny(c.ran + " 3")
				if isQuestion(r) != c.asks || (len(done) > 0) == c.asks {
					t.Fatalf("%q, run: %v", r.Text(), done)
				}
				if !c.asks {
					return
				}
				if r := ask(ctx, t, d, "no"); !isRefusal(r) {
					t.Errorf("after a no: %q", r.Text())
				}
				if done := v.ranAny(c.ran + " 3"); len(done) > 0 {
					t.Errorf("run after a no: %v", done)
				}
			})
		}
		v.asksOlder(t, s)
	})
}

// asksOlder has the model give an order to a device of older firmware, and to a peer of the light dialect.
func (v *vault) asksOlder(t *testing.T, s *server) {
	t.Helper()
	t.Run("older firmware", func(t *testing.T) {
		t.Parallel()
		ctx := limit(t)
		lamp := devicetest.Lamp()
		d := s.dial(ctx, t, devicetest.Options{DeviceID: "24:6f:28:ab:07:20", Profile: devicetest.OldIoT162, Things: []devicetest.Thing{lamp}, Quirks: devicetest.Quirks{StatesAtOnce: true}})
		if r := ask(ctx, t, d, "call self_lamp_turn_on {}"); !isQuestion(r) {
			t.Fatalf("%q", r.Text())
		}
		if r := ask(ctx, t, d, "please do not"); !isRefusal(r) || lamp.State()["power"] == true {
			t.Errorf("after a no: %q, lamp %v", r.Text(), lamp.State())
		}
	})
	t.Run("light dialect", func(t *testing.T) {
		t.Parallel()
		r := dialTCP(t, s)
		if status := r.upgrade("/xiaozhi/v1/"); status != http.StatusSwitchingProtocols {
			t.Fatal(status)
		}
		r.text(`{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":"24-6F-28-AB-07-21","tools":[{"name":"hoist","description":"Hoists","main_type":"remote","sub_type":"control","parameters":{"type":"object","properties":{}}}]},"id":"r"}`)
		r.await(`"registered"`)
		for _, words := range []string{"call hoist {}", "no"} {
			r.text(typed(words))
			got := r.await("jsonrpc")
			for !strings.Contains(got, `"final"`) {
				if strings.Contains(got, "mcp/tool/execute") {
					t.Fatalf("%s: %s", words, got)
				}
				got = r.await("jsonrpc")
			}
			if asked := strings.Contains(got, "Shall I really") || strings.Contains(got, "确定要"); asked == (words == "no") {
				t.Errorf("%s: %s", words, got)
			}
		}
	})
}

// TestAttackNegations: a negation in any words is a no, whatever the tool is called,
// also where its name is a yes or a no itself; a yes is one.
func TestAttackNegations(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s, v := openVault(ctx, t, "")
	t.Run("answers", func(t *testing.T) {
		for n, c := range []struct {
			order, tool, answer string
			yes                 bool
		}{
			{"call", "self.safe.cancel", "please do not", false},
			{"call", "self.safe.do_not_disturb", "yes please do not disturb", false},
			{"call", "self.safe.ok", "no ok", false},
			{"call", "self.safe.stop", "please don't stop", false},
			{"call", "self.safe.cancel", "不要", false},
			{"请调用", "self.safe.cancel", "算了", false},
			{"请调用", "self.safe.open", "请不要打开", false},
			{"请调用", "self.safe.stop", "好的还是别了", false},
			{"call", "self.safe.cancel", "yes please", true},
		} {
			t.Run(c.answer, func(t *testing.T) {
				t.Parallel()
				ctx := limit(t)
				d := v.visitor(ctx, t, s, fmt.Sprintf("24:6f:28:ab:08:%02x", n), c.tool)
				if r := ask(ctx, t, d, fmt.Sprintf(`%s %s {"level":%d}`, c.order, strings.ReplaceAll(c.tool, ".", "_"), n)); !isQuestion(r) {
					t.Fatalf("no question: %q", r.Text())
				}
				r, ran := ask(ctx, t, d, c.answer), v.ranAny(fmt.Sprint(c.tool, " ", n))
				if isRefusal(r) == c.yes || (len(ran) > 0) != c.yes {
					t.Errorf("%q, run: %v", r.Text(), ran)
				}
			})
		}
	})
}
