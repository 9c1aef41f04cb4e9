package iot

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// tell has the board report states.
func tell(s *Source, states string) { s.Deliver(nil, json.RawMessage(states)) }

// assumed runs a control by a router as a conversation does, and returns its outcome when it is there.
func assumed(t *testing.T, b *router.Router, name, arguments string) <-chan mcp.ActionResponse {
	t.Helper()
	p, bad := b.Prepare(mcp.Call{ID: name, Name: mcp.FunctionName(name), Arguments: arguments, Language: "en"})
	if bad != nil {
		t.Fatalf("%s: %+v", name, bad)
	}
	p.Info = mcp.Info{Language: "en"}
	done := make(chan mcp.ActionResponse, 1)
	if err := b.Go(p, func(r mcp.ActionResponse) { done <- r }); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	synctest.Wait()
	return done
}

// over returns what has come of a call; nil: it is open.
func over(done <-chan mcp.ActionResponse) *mcp.ActionResponse {
	synctest.Wait()
	select {
	case r := <-done:
		return &r
	default:
		return nil
	}
}

// TestControlIsConfirmed: a control whose success was assumed ends when the device reports what it should cause; with a
// failure when it reports something else, or listens again without having reported anything.
func TestControlIsConfirmed(t *testing.T) {
	const (
		on, off  = `[{"name":"Lamp","state":{"power":true}}]`, `[{"name":"Lamp","state":{"power":false}}]`
		loud, no = `[{"name":"Speaker","state":{"volume":80}}]`, ""
	)
	for name, c := range map[string]struct {
		before    string // that was reported
		tool      string
		arguments string
		after     string // is reported; "": nothing
		listens   bool
		want      string // of the failure; "done"; "open"
	}{
		"it is done":                      {off, "self.lamp.turn_on", "", on, true, "done"},
		"it is done, nobody listens":      {off, "self.lamp.turn_on", "", on, false, "done"},
		"nothing is reported":             {off, "self.lamp.turn_on", "", no, true, "the device reports no change"},
		"nobody listens":                  {off, "self.lamp.turn_on", "", no, false, "open"},
		"it was so before":                {on, "self.lamp.turn_on", "", no, true, "done"},
		"nothing was known":               {no, "self.lamp.turn_on", "", no, true, "done"},
		"nothing was known, it is not so": {no, "self.lamp.turn_on", "", off, true, "the device reports no change"},
		"a number":                        {loud, "self.speaker.set_volume", `{"volume":30}`, `[{"name":"Speaker","state":{"volume":30}}]`, true, "done"},
		"another number":                  {loud, "self.speaker.set_volume", `{"volume":130}`, `[{"name":"Speaker","state":{"volume":100}}]`, true, "the device reports volume 100"},
		"another thing":                   {off, "self.lamp.turn_on", "", loud, false, "open"},
		"a method that changes who knows": {off, "self.lamp.blink", `{"fast":true,"colour":"red"}`, no, false, "done"},
		"a parameter that is no property": {off, "self.lamp.set_level", `{"level":40}`, no, true, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := describedThings(t, NewLegacyBoard(t, lampDescriptor, speakerDescriptor), Options{})
				if c.before != "" {
					tell(s, c.before)
				}
				b := router.New(router.Options{}, s)
				defer b.Close()
				done := assumed(t, b, c.tool, c.arguments)
				time.Sleep(3 * time.Second)
				if c.after != "" {
					tell(s, c.after)
				}
				if c.listens {
					s.Listening()
				}
				r := over(done)
				switch {
				case c.want == "open":
					if r != nil {
						t.Errorf("%+v", r)
					}
				case r == nil:
					t.Error("it is open")
				case c.want == "done":
					if r.Result != true {
						t.Errorf("%+v", r)
					}
				case r.Response != c.want || !r.Action.Failed():
					t.Errorf("%+v, want %q", r, c.want)
				}
			})
		})
	}
}

// TestControlHoldsNothing: while a control waits to be confirmed the device gets other calls, and the same one again; a
// newer one takes the place of an older. What is on its way when the command is sent says nothing of it.
func TestControlHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := NewLegacyBoard(t, lampDescriptor, speakerDescriptor)
		s := describedThings(t, board, Options{})
		tell(s, `[{"name":"Lamp","state":{"power":false}},{"name":"Speaker","state":{"volume":80}}]`)
		b := router.New(router.Options{}, s)
		defer b.Close()
		first := assumed(t, b, "self.lamp.turn_on", "")
		tell(s, `[{"name":"Lamp","state":{"power":false}}]`)
		s.Listening()
		volume := assumed(t, b, "self.speaker.set_volume", `{"volume":5}`)
		if over(first) != nil || over(volume) != nil || len(board.Sent()) != 2 {
			t.Fatalf("sent %q", board.Sent())
		}
		again := assumed(t, b, "self.lamp.turn_on", "")
		if r := over(first); r == nil || r.Result != true {
			t.Errorf("an older one: %+v", r)
		}
		off := assumed(t, b, "self.lamp.turn_off", "")
		if r := over(again); r == nil || r.Result != true {
			t.Errorf("one that was taken back: %+v", r)
		}
		if r := over(off); r == nil || r.Result != true { // it was off before, as far as is known
			t.Errorf("off again: %+v", r)
		}
		time.Sleep(2 * time.Second)
		tell(s, `[{"name":"Speaker","state":{"volume":5}}]`)
		if r := over(volume); r == nil || r.Result != true {
			t.Errorf("another thing: %+v", r)
		}
	})
}

// TestControlUnconfirmed: where nothing more can be known, nothing is claimed: the end of the connection, of the router, or
// of five minutes.
func TestControlUnconfirmed(t *testing.T) {
	for name, end := range map[string]func(s *Source, b *router.Router){
		"the connection ends":   func(s *Source, _ *router.Router) { _ = s.Stop() },
		"the conversation ends": func(_ *Source, b *router.Router) { b.Close() },
		"it takes too long":     func(*Source, *router.Router) { time.Sleep(confirmTime) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := describedThings(t, NewLegacyBoard(t, lampDescriptor), Options{})
				tell(s, `[{"name":"Lamp","state":{"power":false}}]`)
				b := router.New(router.Options{}, s)
				defer b.Close()
				done := assumed(t, b, "self.lamp.turn_on", "")
				time.Sleep(2 * time.Second)
				end(s, b)
				if r := over(done); r == nil || r.Result != true {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// TestControlAwaited: whoever waits for a control is told at once that it was sent.
func TestControlAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := NewLegacyBoard(t, lampDescriptor)
		s := describedThings(t, board, Options{})
		tell(s, `[{"name":"Lamp","state":{"power":false}}]`)
		if got, err := s.CallTool(t.Context(), "self.lamp.turn_on", nil); got != true || err != nil {
			t.Errorf("%v, %v", got, err)
		}
		board.refuse = errors.New("gone")
		if _, err := s.CallTool(mcp.WithAssumed(t.Context()), "self.lamp.turn_on", nil); !errors.Is(err, board.refuse) || len(s.expecting) > 1 {
			t.Errorf("%v, %d are waited for", err, len(s.expecting))
		}
	})
}

// TestChangeOf: which property a method changes, by the names that a device gives.
func TestChangeOf(t *testing.T) {
	boolean := func(names ...string) (out []value) {
		for _, name := range names {
			out = append(out, value{name: name, kind: "boolean"})
		}
		return out
	}
	level := value{name: "brightness", kind: "integer"}
	for name, c := range map[string]struct {
		properties []value
		method     method
		arguments  map[string]any
		want       map[string]any
	}{
		"turn on":               {boolean("power"), method{name: "TurnOn"}, nil, map[string]any{"power": true}},
		"turn off":              {append(boolean("power"), level), method{name: "turn_off"}, nil, map[string]any{"power": false}},
		"in Chinese":            {boolean("开关"), method{name: "打开"}, nil, map[string]any{"开关": true}},
		"open":                  {boolean("open"), method{name: "Open"}, nil, map[string]any{"open": true}},
		"of several":            {boolean("power", "night"), method{name: "TurnOn"}, nil, nil},
		"of none":               {[]value{level}, method{name: "TurnOn"}, nil, nil},
		"the other way round":   {boolean("closed"), method{name: "Close"}, nil, nil},
		"muted":                 {boolean("muted"), method{name: "TurnOn"}, nil, nil},
		"another name":          {boolean("power"), method{name: "Toggle"}, nil, nil},
		"a parameter":           {[]value{level}, method{name: "Dim", parameters: []value{level}}, map[string]any{"brightness": int64(5)}, map[string]any{"brightness": int64(5)}},
		"a parameter elsewhere": {[]value{level}, method{name: "SetBrightness", parameters: []value{{name: "value", kind: "integer"}}}, map[string]any{"value": int64(5)}, map[string]any{"brightness": int64(5)}},
		"of another kind":       {[]value{level}, method{name: "SetBrightness", parameters: []value{{name: "brightness", kind: "string"}}}, nil, nil},
		"some of several":       {append(boolean("power"), level), method{name: "Set", parameters: []value{level, {name: "fade", kind: "boolean"}}}, map[string]any{"brightness": int64(1), "fade": true}, map[string]any{"brightness": int64(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			change := changeOf(&thing{properties: c.properties}, &c.method)
			if change.known() != (c.want != nil) {
				t.Fatalf("known %v: %+v", change.known(), change)
			}
			got, _ := json.Marshal(change.want(c.arguments))
			want, _ := json.Marshal(c.want)
			if c.want != nil && string(got) != string(want) {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// TestTextConfirmed: a text that has changed may be the device's way of writing what was wanted.
func TestTextConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const strip = `{"name":"Strip","properties":{"colour":{"type":"string"}},"methods":{"Paint":{"parameters":{"colour":{"type":"string"}}}}}`
		s := describedThings(t, NewLegacyBoard(t, strip), Options{})
		tell(s, `[{"name":"Strip","state":{"colour":"#00ff00"}}]`)
		b := router.New(router.Options{}, s)
		defer b.Close()
		for _, c := range []struct {
			colour, reported string
			failed           bool
		}{{"RED", "red ", false}, {"blue", "#0000ff", false}, {"green", "#0000ff", true}} {
			done := assumed(t, b, "self.strip.paint", `{"colour":"`+c.colour+`"}`)
			time.Sleep(2 * time.Second)
			tell(s, `[{"name":"Strip","state":{"colour":"`+c.reported+`"}}]`)
			s.Listening()
			if r := over(done); r == nil || r.Action.Failed() != c.failed {
				t.Errorf("%s: %+v", c.colour, r)
			}
		}
	})
}
