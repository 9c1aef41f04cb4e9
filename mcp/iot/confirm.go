package iot

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
)

const (
	// confirmTime is how long the change that a control should cause is waited for. A device tells of it before it
	// listens again; one that does not listen for so long is not waited for.
	confirmTime = 5 * time.Minute
	// actTime is how long what a device has sent before it got a command may be on its way: it says nothing of the command.
	// Firmware carries a command out as it comes, before anything that it is sent later.
	actTime = 300 * time.Millisecond
	// maxExpected is how many controls of a device are waited for; the oldest makes room.
	maxExpected = 32
)

// The words of methods without parameters that switch something, one a line.
var (
	//go:embed on.txt
	onWords string
	//go:embed off.txt
	offWords string
)

// change is the change of a thing's state that a method should cause: properties with the values of parameters, or one
// that is switched. The zero value is none that is known.
type change struct {
	from     map[string]string // property to parameter
	switched string            // a boolean property; "": none
	on       bool
}

// changeOf finds the change by the names that a device gives: a property that is called as a parameter; the one that
// SetX sets by its only parameter; and the only boolean property, for a method that turns on or off.
func changeOf(th *thing, m *method) (c change) {
	if len(m.parameters) == 0 {
		c.switched, c.on = th.switchedBy(m.name)
		return c
	}
	c.from = map[string]string{}
	for _, p := range m.parameters {
		if th.holds(p.name, p.kind) {
			c.from[p.name] = p.name
		}
	}
	if len(c.from) == 0 && len(m.parameters) == 1 {
		what, set := strings.CutPrefix(strings.Join(mcp.NameWords(m.name), ""), "set")
		for _, p := range th.properties {
			if set && what == strings.Join(mcp.NameWords(p.name), "") && p.kind == m.parameters[0].kind {
				c.from[p.name] = m.parameters[0].name
			}
		}
	}
	return c
}

// known reports whether there is a change to wait for.
func (c change) known() bool { return len(c.from) > 0 || c.switched != "" }

// want returns the values that properties should have after a command.
func (c change) want(parameters map[string]any) map[string]any {
	want := map[string]any{}
	if c.switched != "" {
		want[c.switched] = c.on
	}
	for property, parameter := range c.from {
		want[property] = parameters[parameter]
	}
	return want
}

// holds reports whether the thing has a property of that name and kind.
func (t *thing) holds(property, kind string) bool {
	return slices.ContainsFunc(t.properties, func(p value) bool { return p.name == property && p.kind == kind })
}

// switchedBy returns the boolean property that a method turns on or off; "" if that is not clear.
func (t *thing) switchedBy(method string) (property string, on bool) {
	name := strings.Join(mcp.NameWords(method), " ")
	switch {
	case slices.Contains(strings.Split(onWords, "\n"), name):
		on = true
	case !slices.Contains(strings.Split(offWords, "\n"), name) || name == "":
		return "", false
	}
	for _, p := range t.properties {
		if p.kind != "boolean" {
			continue
		}
		if property != "" {
			return "", false // which of them?
		}
		property = p.name
	}
	if slices.Contains(strings.Split(offWords, "\n"), strings.Join(mcp.NameWords(property), " ")) || inverse(property) {
		return "", false // it is true when the thing is off
	}
	return property, on
}

// inverse reports whether a property by its name is true when its thing is off.
func inverse(property string) bool {
	return firstWordIn(property, "closed", "off", "muted", "locked", "disabled", "stopped", "standby", "sleeping", "not", "no")
}

// expected is a control whose change is waited for.
type expected struct {
	thing   string
	want    map[string]any
	before  map[string]any // what was known of these when it was sent
	sent    time.Time
	outcome chan error // 1: nil if the change has come, or nothing speaks against it
}

// settle ends the waiting, once. The source's mu is held.
func (e *expected) settle(err error) {
	select {
	case e.outcome <- err:
	default:
	}
}

// unconfirmed says that a device has not done what it should.
type unconfirmed struct {
	property string
	value    any // nil: nothing was reported
}

// Error says so in English; [Source.confirm] words it for the turn.
func (u *unconfirmed) Error() string { return u.in(text.English) }

func (u *unconfirmed) in(lang text.Lang) string {
	switch u.value.(type) {
	case int64, float64:
		return message.In(lang, "iot/otherwise", u.property, fmt.Sprint(u.value))
	}
	return message.In(lang, "iot/no-change")
}

// expect notes a control, in the place of older ones that are about the same. It returns nil if the state is already as
// wanted, so that no report will come.
func (t *Source) expect(thing string, want map[string]any) *expected {
	e := &expected{thing: thing, want: want, before: t.home.known(thing, want), sent: time.Now(), outcome: make(chan error, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expecting = slices.DeleteFunc(t.expecting, func(old *expected) bool {
		if old.thing != thing || !old.shares(want) {
			return false
		}
		old.settle(nil)
		return true
	})
	if e.met(e.before) {
		return nil
	}
	if len(t.expecting) == maxExpected {
		t.expecting[0].settle(nil)
		t.expecting = slices.Delete(t.expecting, 0, 1)
	}
	t.expecting = append(t.expecting, e)
	return e
}

// shares reports whether the control is about one of these properties.
func (e *expected) shares(want map[string]any) bool {
	for property := range want {
		if _, both := e.want[property]; both {
			return true
		}
	}
	return false
}

// met reports whether all values are as wanted.
func (e *expected) met(values map[string]any) bool {
	for property, want := range e.want {
		if got, there := values[property]; !there || !e.fits(property, got, want) {
			return false
		}
	}
	return true
}

// fits is equal for a report. A text that has changed may be the device's way of writing what was wanted.
func (e *expected) fits(property string, got, want any) bool {
	before, known := e.before[property]
	_, words := got.(string)
	return equal(got, want) || words && known && got != before
}

// equal compares values of properties. Numbers are alike whatever their types, texts whatever their case.
func equal(got, want any) bool {
	if a, ok := got.(string); ok {
		b, same := want.(string)
		return same && strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
	}
	return number(got) == number(want)
}

// number makes numbers comparable, and leaves all else as it is.
func number(v any) any {
	switch n := v.(type) {
	case int:
		return float64(n)
	case int64:
		return float64(n)
	}
	return v
}

// judge looks at the controls of a thing that has told its state. t.mu is held.
func (t *Source) judge(r report, now time.Time) {
	t.expecting = slices.DeleteFunc(t.expecting, func(e *expected) bool {
		if e.thing != r.thing {
			return false
		}
		state := t.home.known(r.thing, e.want)
		if e.met(state) {
			e.settle(nil)
			return true
		}
		if now.Sub(e.sent) < actTime { // that was on its way before the command
			return false
		}
		for property := range state {
			if _, told := r.state[property]; !told {
				delete(state, property) // it was told before, and says nothing now
			}
		}
		why := e.against(state)
		if why != nil {
			e.settle(why)
		}
		return why != nil
	})
}

// against returns what a state says against a control; nil: nothing.
func (e *expected) against(state map[string]any) error {
	for property, want := range e.want {
		if got, there := state[property]; there && !e.fits(property, got, want) {
			return &unconfirmed{property, got}
		}
	}
	return nil
}

// Listening notes that the device begins to listen: what has changed it has told before. It never waits.
func (t *Source) Listening() {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expecting = slices.DeleteFunc(t.expecting, func(e *expected) bool {
		if now.Sub(e.sent) < actTime {
			return false
		}
		e.settle(e.silence())
		return true
	})
}

// silence returns what it means that nothing was reported: that nothing has changed, if it was known how it was before.
func (e *expected) silence() error {
	for property := range e.want {
		if _, known := e.before[property]; !known {
			return nil
		}
	}
	return &unconfirmed{}
}

// confirm waits for the change that a control should cause. The error says what speaks against it.
func (t *Source) confirm(ctx context.Context, e *expected) error {
	if e == nil {
		return nil
	}
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.expecting = slices.DeleteFunc(t.expecting, func(old *expected) bool { return old == e })
	}()
	select {
	case err := <-e.outcome:
		if u, ok := err.(*unconfirmed); ok { //nolint:errorlint // it is our own, and never wrapped
			return &mcp.ToolError{Message: u.in(text.Lang(mcp.InfoFrom(ctx).Language))}
		}
		return err
	case <-t.closed: // nothing will be reported any more
	case <-ctx.Done():
	}
	return nil
}
