package router_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/iot"
	"xiaozhi/mcp/light"
	"xiaozhi/mcp/router"
)

// sent keeps what a device was sent, in its dialect.
type sent struct {
	mu     sync.Mutex
	frames []string
}

func (s *sent) send(frame json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(string(frame), `"Open"`) || strings.Contains(string(frame), "mcp/tool/execute") {
		s.frames = append(s.frames, string(frame))
	}
	return nil
}

func (s *sent) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.frames)
}

// dialects are the sources of devices that do not speak MCP, each with a door.
func dialects(t *testing.T) map[string]func(*sent) mcp.Source {
	t.Helper()
	return map[string]func(*sent) mcp.Source{
		"iot": func(s *sent) mcp.Source {
			things := iot.New(iot.Options{Send: s.send})
			if err := things.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			things.Deliver(json.RawMessage(`[{"name":"Door","description":"A door","properties":{},"methods":{"Open":{"description":"opens it","parameters":{}}}}]`), nil)
			return things
		},
		"light": func(s *sent) mcp.Source {
			device := light.New(light.Options{Send: s.send})
			if err := device.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			device.Deliver(json.RawMessage(`{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":"AA-BB-CC-DD-EE-FF","tools":[` +
				`{"name":"self.door.open","description":"opens it","main_type":"remote","sub_type":"control","parameters":{"type":"object","properties":{}}}]},"id":"r"}`))
			return device
		},
	}
}

// TestEveryWayAsks: an order to an older device, or to one of the light dialect, is sent to it only after a yes, in
// whatever way it is run and by whatever pattern the tool is named, as a job too; for a tool and a program it is not sent.
func TestEveryWayAsks(t *testing.T) {
	for dialect, make := range dialects(t) {
		for _, pattern := range []string{"self.door.open", "SELF_Door_Open", "*door*", dialect + "/*", strings.ToUpper(dialect) + "/self.*"} {
			for _, jobs := range [][]string{nil, {pattern}} {
				s := &sent{}
				source := make(s)
				rt := router.New(router.Options{Rules: router.Rules{Confirm: []string{pattern}}, Jobs: jobs}, source)
				for _, by := range []mcp.Asker{mcp.ByTool, mcp.ByProgram} {
					if _, refused := rt.Prepare(mcp.Call{ID: "c", Name: "self_door_open", By: by}); refused == nil {
						t.Errorf("%s, %s: prepared for %d", dialect, pattern, by)
					}
				}
				for _, by := range []mcp.Asker{mcp.ByModel, mcp.ByOutside} {
					p, refused := rt.Prepare(mcp.Call{ID: "c", Name: "self_door_open", By: by})
					if refused != nil || !p.Asks() || p.Offer.Job != (jobs != nil) {
						t.Fatalf("%s, %s, %d: %+v %+v", dialect, pattern, by, p.Offer, refused)
					}
					outcomes := []mcp.ActionResponse{rt.Run(t.Context(), p), rt.Begin(t.Context(), p)(), rt.Detach(t.Context(), p)}
					err := rt.Go(p, func(mcp.ActionResponse) { t.Error("it was taken") })
					for _, r := range outcomes {
						if !r.Action.Failed() || err == nil {
							t.Errorf("%s, %s, %d: %+v, %v", dialect, pattern, by, r, err)
						}
					}
				}
				if n := s.count(); n != 0 {
					t.Errorf("%s, %s: sent %d times without a yes", dialect, pattern, n)
				}
				if err := source.Stop(); err != nil {
					t.Error(err)
				}
				rt.Close()
			}
		}
	}
}

// TestWaysAfterYes: with the yes the order is sent, once.
func TestWaysAfterYes(t *testing.T) {
	synctest.Test(t, waysAfterYes)
}

func waysAfterYes(t *testing.T) {
	for dialect, make := range dialects(t) {
		s := &sent{}
		source := make(s)
		rt := router.New(router.Options{Rules: router.Rules{Confirm: []string{"*"}}}, source)
		p, refused := rt.Prepare(mcp.Call{ID: "c", Name: "self_door_open"})
		if refused != nil {
			t.Fatal(refused)
		}
		wait := rt.Begin(t.Context(), rt.Consent(p, ""))
		time.Sleep(time.Second)
		if n := s.count(); n != 1 {
			t.Errorf("%s: sent %d times", dialect, n)
		}
		if err := source.Stop(); err != nil {
			t.Error(err)
		}
		wait()
		rt.Close()
	}
}
