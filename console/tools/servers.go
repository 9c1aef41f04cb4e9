package tools

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/mcp/external"
)

// server is one of other people's servers of tools.
type server struct {
	external.Status
	Kind string // the shape of its state
	Word string // the text of its state
	Why  string // the text of its trouble; "": there is none
	Edit string // path of its form; "": it is none of the settings
}

// shownLines is how many of the last lines of a program stand beside its end.
const shownLines = 6

// Tail returns the last lines of a program that has ended. What it says again at each try stands there once.
func (s server) Tail() []string {
	all := slices.Compact(slices.Clone(s.Lines))
	return all[max(0, len(all)-shownLines):]
}

// fleetState is the page of other people's servers.
type fleetState struct {
	Servers ui.Rows[server]
	Off     []server // that are switched off
	Tried   *tried
	New     string // path of the form of a new one; "": none can be added
}

// tried is the outcome of a test.
type tried struct {
	Name  string
	OK    bool
	Took  time.Duration
	Tools int
	Error string
}

// fleet fills the page. The error is of the place in the list that an address names.
func (p *Page) fleet(r *http.Request, t *tried) (fleetState, error) {
	s := fleetState{Tried: t}
	var known []server
	for _, now := range p.from.Servers() {
		one := serverOf(now)
		if p.set != nil && now.From == external.InSettings {
			one.Edit = editPath + "?" + url.Values{"name": {now.Name}}.Encode()
		}
		known = append(known, one)
	}
	var err error
	s.Servers, err = ui.List[server]{
		Path: serversPath,
		Key:  func(one server) string { return one.Name + " " + one.Device },
		Text: func(one server) string {
			return strings.Join([]string{one.Name, one.Where, one.Device, one.About, p.site.Say(r, one.Word)}, " ")
		},
	}.Page(r, known, nil)
	if p.set == nil {
		return s, err
	}
	s.New = editPath
	all := p.set.Current().Tools.External.MCPServers
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].Disabled {
			s.Off = append(s.Off, server{Status: external.Status{Name: name}, Edit: editPath + "?" + url.Values{"name": {name}}.Encode()})
		}
	}
	return s, err
}

// serverOf words the state of a server.
func serverOf(now external.Status) server {
	s := server{Status: now}
	switch now.Phase {
	case external.Connected:
		s.Kind, s.Word = "ok", "tools/phase-connected"
		switch {
		case now.Listed+now.Resources+now.Prompts == 0:
			s.Kind, s.Why = "warn", "tools/server-empty"
		case now.Tools == 0:
			s.Kind, s.Why = "warn", "tools/server-hidden"
		case now.MoreAsked:
			s.Kind, s.Why = "warn", "tools/login-more"
		}
		return s
	case external.Connecting:
		s.Kind, s.Word = "busy", "tools/phase-connecting"
	case external.Waiting:
		s.Kind, s.Word = "bad", "tools/phase-waiting"
	case external.LeftOut:
		s.Kind, s.Word = "bad", "tools/phase-left-out"
	default:
		s.Kind, s.Word = "idle", "tools/phase-resting"
	}
	switch now.Trouble {
	case external.Unanswered:
		s.Why = "tools/trouble-unanswered"
	case external.Exited:
		s.Why = "tools/trouble-exited"
	case external.Unreachable:
		s.Why = "tools/trouble-unreachable"
		if now.Transport == external.Stdio {
			s.Why = "tools/trouble-unstarted"
		}
	case external.Login:
		s.Kind, s.Word, s.Why = "warn", "tools/phase-login", "tools/trouble-login"
	case external.Failed:
		s.Why = "tools/trouble-failed"
	}
	return s
}

func (p *Page) servers(w http.ResponseWriter, r *http.Request) { p.showServers(w, r, nil, nil) }

func (p *Page) showServers(w http.ResponseWriter, r *http.Request, f *ui.Form, t *tried) {
	s, err := p.fleet(r, t)
	c := ui.Content{Title: p.site.Say(r, "tools/servers"), Data: s, Form: f}
	if err != nil {
		p.site.Failed(w, r, "tools-servers", c, err)
		return
	}
	p.site.Show(w, r, "tools-servers", c)
}

// testTime limits a test.
const testTime = 10 * time.Second

// actServer tests a server or connects to it again.
func (p *Page) actServer(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	name, do := f.Get("server"), f.Get("do")
	if err := p.pace.Often(access.PersonOf(r).ID, "servers"); err != nil {
		p.site.Explain(w, r, f, "", err) // the reason is for everybody
		p.showServers(w, r, f, nil)
		return
	}
	switch do {
	case "test":
		t := p.test(r.Context(), name)
		var outcome error
		if !t.OK {
			outcome = errFailed
		}
		p.door.Did(r, "tool-server.test", name, outcome)
		p.showServers(w, r, f, &t)
	case "restart":
		err := p.from.RestartServer(name)
		p.door.Did(r, "tool-server.restart", name, err)
		if err != nil {
			f.Wrong("", p.site.Say(r, "tools/no-server"))
			p.showServers(w, r, f, nil)
			return
		}
		p.site.Done(w, r, serversPath, "tools/restarted", name)
	case "login":
		logins{p}.begin(w, r, f, name)
	case "logout":
		logins{p}.out(w, r, f, name)
	default:
		p.site.NotFound(w, r)
	}
}

// test asks a server for its tools.
func (p *Page) test(ctx context.Context, name string) tried {
	ctx, cancel := context.WithTimeoutCause(ctx, testTime, errTestTime)
	defer cancel()
	t := tried{Name: name}
	var err error
	if t.Took, t.Tools, err = p.from.TestServer(ctx, name); err != nil {
		t.Error = err.Error()
	}
	t.OK = err == nil
	return t
}

var errTestTime = errors.New("no answer within 10 s")
