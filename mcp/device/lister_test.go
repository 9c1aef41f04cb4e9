package device

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
)

func TestClientKeepsTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		schema := `{"type":"object","$defs":{"a":{"enum":[1,2]}},"properties":{"x":{"$ref":"#/$defs/a"}},"additionalProperties":false}`
		d.Pages[0] = `[{"name":"self.x","description":"d","inputSchema":` + schema + `,"annotations":{"readOnlyHint":true}}]`
		called := 0
		c := connected(t, d, Options{OnTools: func() { called++ }})
		tools := c.GetAvailableTools()
		if got := toolNames(tools); got != "self.x self.hidden" {
			t.Fatalf("tools: %s", got)
		}
		if x := tools[0]; string(x.Schema) != schema || x.Source != "device" || x.Origin != mcp.Remote || x.Annotations.ReadOnly == nil || x.UserOnly() {
			t.Errorf("self.x = %+v", x)
		}
		if !tools[1].UserOnly() {
			t.Error("self.hidden is not marked as for people only")
		}
		if called != 1 {
			t.Errorf("OnTools was called %d times", called)
		}
	})
}

// TestClientPaging: the walk ends however the device's cursors behave.
func TestClientPaging(t *testing.T) {
	tool := func(i int) string { return fmt.Sprintf(`{"name":"t%02d","inputSchema":{"type":"object"}}`, i) }
	tests := map[string]struct {
		page  func(cursor string, n int) (tools, next string)
		want  int // requests
		tools int
	}{
		"60 tools in 12 pages": {func(_ string, n int) (string, string) {
			var tools []string
			for i := range 5 {
				tools = append(tools, tool(n*5+i))
			}
			if n == 11 {
				return strings.Join(tools, ","), ""
			}
			return strings.Join(tools, ","), fmt.Sprintf("t%02d", n*5+5)
		}, 12, 60},
		"the cursor repeats": {func(_ string, n int) (string, string) { return tool(n), "again" }, 2, 2},
		"a cycle of two":     {func(_ string, n int) (string, string) { return tool(n % 2), fmt.Sprint(n % 2) }, 3, 2},
		"it never ends":      {func(_ string, n int) (string, string) { return tool(n), fmt.Sprint(n) }, 32, 32},
		"tools are null":     {func(string, int) (string, string) { return "", "" }, 1, 0},
		"the same tool twice": {func(string, int) (string, string) {
			return tool(1) + "," + tool(1), ""
		}, 1, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, n := NewFakeDevice(t), 0
				d.Answer = func(r FakeRequest) ([]string, bool) {
					if r.Method != methodListTools {
						return nil, false
					}
					tools, next := test.page("", n)
					n++
					return []string{ReplyTo(r, fmt.Sprintf(`{"tools":[%s],"nextCursor":%q}`, tools, next))}, true
				}
				c := connected(t, d, Options{})
				if n != test.want || len(c.GetAvailableTools()) != test.tools || !c.IsReady() {
					t.Errorf("%d requests, %d tools, ready %v", n, len(c.GetAvailableTools()), c.IsReady())
				}
				pass(time.Minute)
				if n != test.want {
					t.Errorf("%d requests a minute later", n)
				}
			})
		})
	}
}

// TestClientOversizedTool: an error on a later page keeps the pages before it,
// and the list is tried again: after 2, 4, 8 s and then when we are told to.
func TestClientOversizedTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, broken := NewFakeDevice(t), true
		var at []time.Duration
		start := time.Now()
		d.Answer = func(r FakeRequest) ([]string, bool) {
			if r.Method != methodListTools || !strings.Contains(string(r.Params), "p1") || !broken {
				return nil, false
			}
			at = append(at, time.Since(start))
			return []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"message":"Failed to add tool self.big because of payload size limit"}}`, r.ID)}, true
		}
		c := connected(t, d, Options{})
		if got := toolNames(c.GetAvailableTools()); got != "self.echo self.slow" || !c.IsReady() {
			t.Errorf("after the first try: %s, ready %v", got, c.IsReady())
		}
		pass(time.Minute)
		if got := fmt.Sprint(at); got != "[0s 2s 6s 14s]" {
			t.Errorf("tried at %s", got)
		}
		broken = false
		c.Refresh()
		synctest.Wait()
		if got := toolNames(c.GetAvailableTools()); got != "self.echo self.slow self.hidden" {
			t.Errorf("after Refresh: %s", got)
		}
		before := len(d.Requests(methodListTools))
		c.Refresh()
		pass(time.Minute)
		if after := len(d.Requests(methodListTools)); after != before {
			t.Errorf("Refresh of a complete list sent %d requests", after-before)
		}
	})
}

// TestClientSilentDevice: a device that answers nothing holds nobody up, and
// everything is tried again (protocol trap 40).
func TestClientSilentDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, silent := NewFakeDevice(t), true
		d.Answer = func(FakeRequest) ([]string, bool) { return nil, silent }
		c := connected(t, d, Options{})
		if c.IsReady() {
			t.Error("ready without an answer")
		}
		if _, err := c.CallTool(t.Context(), "self.echo", nil); !errors.Is(err, mcp.ErrNoTool) {
			t.Errorf("CallTool: %v", err)
		}
		pass(5 * time.Minute)
		if n := len(d.Requests(methodInitialize)); n != 4 {
			t.Errorf("initialize was sent %d times, want 4", n)
		}
		silent = false
		c.Refresh()
		synctest.Wait()
		if !c.IsReady() {
			t.Error("not ready after the device answered")
		}
	})
}

func TestClientListChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		c := connected(t, d, Options{})
		for round, quiet := range []time.Duration{0, time.Minute} { // right after the first list, and long after one
			pass(quiet)
			name := fmt.Sprintf("self.new%d", round)
			d.Pages = []string{`[{"name":"` + name + `"}]`}
			before := len(d.Requests(methodListTools))
			for range 100 { // a burst is one list
				d.Say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				synctest.Wait()
			}
			pass(relistPause + time.Second)
			if got := toolNames(c.GetAvailableTools()); got != name {
				t.Errorf("tools: %s", got)
			}
			if n := len(d.Requests(methodListTools)) - before; n != 1 {
				t.Errorf("tools/list was sent %d times", n)
			}
		}
	})
}

// TestClientListChangedMeanwhile: a change during a list is seen by one more.
func TestClientListChangedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		c := connected(t, d, Options{})
		asked := 0
		d.Answer = func(r FakeRequest) ([]string, bool) {
			if r.Method != methodListTools {
				return nil, false
			}
			asked++
			reply := ReplyTo(r, fmt.Sprintf(`{"tools":[{"name":"self.v%d"}]}`, asked))
			if asked == 1 {
				return []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, reply}, true
			}
			return []string{reply}, true
		}
		d.Say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		pass(time.Minute)
		if got := toolNames(c.GetAvailableTools()); got != "self.v2" || asked != 2 {
			t.Errorf("tools: %s, asked %d times", got, asked)
		}
	})
}

// TestClientListRetries: whatever a device does in place of listing its tools,
// it is asked after 2, 4 and 8 s, a listen start begins anew, and in the end the
// tools are there. A request that gets nothing takes its 15 s first.
func TestClientListRetries(t *testing.T) {
	reply := func(text string) func(FakeRequest) []string {
		return func(r FakeRequest) []string { return []string{strings.ReplaceAll(text, "ID", fmt.Sprint(r.ID))} }
	}
	tests := map[string]struct {
		method string
		answer func(FakeRequest) []string
		want   string
	}{
		"initialize: error":   {methodInitialize, reply(`{"jsonrpc":"2.0","id":ID,"error":{"message":"busy"}}`), "[0s 2s 6s 14s]"},
		"initialize: garbage": {methodInitialize, reply(`{"jsonrpc":"2.0","id":ID,"resu`), "[0s 17s 36s 59s]"},
		"initialize: nothing": {methodInitialize, reply(``), "[0s 17s 36s 59s]"},
		"list: error":         {methodListTools, reply(`{"jsonrpc":"2.0","id":ID,"error":{"message":"busy"}}`), "[0s 2s 6s 14s]"},
		"list: error as text": {methodListTools, reply(`{"id":ID,"error":"busy"}`), "[0s 2s 6s 14s]"},
		"list: bad code":      {methodListTools, reply(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32004,"message":"x"}}`), "[0s 2s 6s 14s]"},
		"list: no list":       {methodListTools, reply(`{"jsonrpc":"2.0","id":ID,"result":"tools"}`), "[0s 2s 6s 14s]"},
		"list: tools a text":  {methodListTools, reply(`{"jsonrpc":"2.0","id":ID,"result":{"tools":"none"}}`), "[0s 2s 6s 14s]"},
		"list: garbage":       {methodListTools, reply(`{"jsonrpc":"2.0","id":ID,"error":{"message":"say "no""}}`), "[0s 17s 36s 59s]"},
		"list: another's id":  {methodListTools, reply(`{"jsonrpc":"2.0","id":9ID,"result":{"tools":[]}}`), "[0s 17s 36s 59s]"},
		"list: nothing":       {methodListTools, reply(``), "[0s 17s 36s 59s]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, broken := NewFakeDevice(t), true
				start := time.Now()
				d.Answer = func(r FakeRequest) ([]string, bool) {
					if r.Method != test.method || !broken {
						return nil, false
					}
					return test.answer(r), true
				}
				c := connected(t, d, Options{})
				pass(10 * time.Minute)
				var at []time.Duration
				for _, r := range d.Requests(test.method) {
					at = append(at, r.At.Sub(start))
				}
				if got := fmt.Sprint(at); got != test.want || c.IsReady() {
					t.Errorf("tried at %s, want %s; ready %v", got, test.want, c.IsReady())
				}
				broken = false
				c.Refresh()
				synctest.Wait()
				if got := toolNames(c.GetAvailableTools()); got != "self.echo self.slow self.hidden" || !c.IsReady() {
					t.Errorf("once the device is well: %q", got)
				}
			})
		})
	}
}

// TestClientStaleList: a list that could not be read again stays, and Refresh
// tries once more.
func TestClientStaleList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, silent := NewFakeDevice(t), true
		c := connected(t, d, Options{})
		d.Answer = func(r FakeRequest) ([]string, bool) { return nil, silent && r.Method == methodListTools }
		d.Pages = []string{`[{"name":"self.new"}]`}
		d.Say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		pass(2 * time.Minute)
		if got := toolNames(c.GetAvailableTools()); got != "self.echo self.slow self.hidden" {
			t.Errorf("after it failed: %s", got)
		}
		silent = false
		c.Refresh()
		synctest.Wait()
		if got := toolNames(c.GetAvailableTools()); got != "self.new" {
			t.Errorf("after Refresh: %s", got)
		}
	})
}

// TestClientKeepsWholeList: half a new list does not replace a whole old one.
func TestClientKeepsWholeList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		c := connected(t, d, Options{})
		d.Answer = func(r FakeRequest) ([]string, bool) {
			return []string{fmt.Sprintf(`{"id":%d,"error":"too big"}`, r.ID)}, strings.Contains(string(r.Params), "p1")
		}
		d.Say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		pass(time.Minute)
		if got := toolNames(c.GetAvailableTools()); got != "self.echo self.slow self.hidden" {
			t.Errorf("tools: %s", got)
		}
		if n := len(d.Requests(methodListTools)); n != 10 {
			t.Errorf("tools/list was sent %d times, want 10", n)
		}
	})
}

// TestClientRests: a client whose list is read has nobody waiting for a reason
// to read it again, and reads it all the same when there is one. Clients of one
// cache share the SDK's client.
func TestClientRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		cache := NewListCache("")
		lists := 0
		d.Answer = func(r FakeRequest) ([]string, bool) {
			if r.Method == methodListTools {
				lists++
			}
			return nil, false
		}
		c := connected(t, d, Options{Lists: cache})
		before := lists
		if c.tools.reading {
			t.Error("somebody waits for a reason")
		}
		for i, again := range []func(){
			func() { d.Say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) },
			func() { _ = c.ResetConnection() },
			func() { c.tools.list.stale = true; c.Refresh() },
		} {
			again()
			pass(time.Minute)
			if lists == before || c.tools.reading || !c.tools.current() {
				t.Errorf("reason %d: %d requests, reading %v, current %v", i, lists-before, c.tools.reading, c.tools.current())
			}
			before = lists
		}
		c.Refresh()
		pass(time.Minute)
		if lists != before || c.tools.reading {
			t.Errorf("a list that is complete was read again")
		}
	})
}
