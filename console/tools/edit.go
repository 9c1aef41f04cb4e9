package tools

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/config"
	"xiaozhi/internal/nearby"
	"xiaozhi/internal/settings"
	"xiaozhi/mcp/external"
	"xiaozhi/providers"
)

// serverForm is the page on which a server of tools is added or changed.
type serverForm struct {
	Name     string // "": a new one
	Made     bool   // here, so that it can be removed here
	Off      string // why nothing can be changed; "": it can
	Revision int
	Commands bool // programs of this machine can be set too
	Program  bool // it is one
	Where    string
	Headers  []string // names of those that are set
	Env      []string
	Tried    *tried
	Types    []external.Transport
}

// kept stands for a secret that stays as it is.
const kept = "••••"

// serversAt is the place of servers in the settings.
func serversAt(name ...string) []string {
	return append([]string{"tools", "external", "mcpServers"}, name...)
}

// editServer shows the form of a server.
func (p *Page) editServer(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if p.set == nil {
		p.site.NotFound(w, r)
		return
	}
	f := ui.Filled("type", string(external.HTTP))
	if name != "" {
		s, there := p.set.Current().Tools.External.MCPServers[name]
		if !there {
			p.site.NotFound(w, r)
			return
		}
		f = filledWith(s)
	}
	p.showForm(w, r, name, f, nil)
}

// filledWith is the form of a server as it is, without its secrets.
func filledWith(s config.MCPServer) *ui.Form {
	kind := s.Transport
	if kind == "" {
		kind = s.Type
	}
	if c, err := s.Entry().Config(); err == nil {
		kind = string(c.Transport)
	}
	pairs := []string{"type", kind, "headers", secrets(s.Headers, ": "), "env", secrets(s.Env, "="), "allow", strings.Join(s.Allow, "\n"), "deny", strings.Join(s.Deny, "\n"),
		"timeout", s.Timeout, "command", s.Command, "args", strings.Join(s.Args, "\n"), "cwd", s.Cwd}
	if s.URL != "" {
		pairs = append(pairs, "url", external.PublicURL(string(s.URL)))
	}
	if s.Trust {
		pairs = append(pairs, "trust", "yes")
	}
	if s.Disabled {
		pairs = append(pairs, "disabled", "yes")
	}
	return ui.Filled(pairs...)
}

// secrets writes the names of secrets, a line each, with dots in the place of their values.
func secrets(all map[string]providers.Secret, between string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, name+between+kept)
	}
	return strings.Join(lines, "\n")
}

func (p *Page) showForm(w http.ResponseWriter, r *http.Request, name string, f *ui.Form, t *tried) {
	c := p.set.Current()
	s := serverForm{Name: name, Revision: p.set.Revision(), Commands: c.Console.Commands, Tried: t, Types: []external.Transport{external.HTTP, external.SSE, external.WebSocket}}
	if s.Commands {
		s.Types = append(s.Types, external.Stdio)
	}
	s.Program = name != "" && c.Tools.External.MCPServers[name].Command != ""
	s.Made = name != "" && c.OriginOf(serversAt(name)).Layer == config.LayerConsole
	if err := p.set.Changeable(); err != nil {
		s.Off = settings.Explain(ui.Lang(r), err)
	}
	title := p.site.Say(r, "tools/server-new")
	if name != "" {
		title = name
	}
	p.site.Show(w, r, "tools-server-form", ui.Content{Title: title, Data: s, Form: f})
}

// typed is a server as it was typed.
type typed struct {
	name    string
	before  config.MCPServer // as it is kept
	is      bool             // it is kept
	entry   external.Entry
	headers map[string]string // "": as before
	env     map[string]string
	moved   bool // it is elsewhere than before, where its secrets do not go
}

// saveServer tests, keeps or removes a server.
func (p *Page) saveServer(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	if p.set == nil {
		p.site.NotFound(w, r)
		return
	}
	name, do := r.URL.Query().Get("name"), f.Get("do")
	before, is := p.set.Current().Tools.External.MCPServers[name]
	if name != "" && !is {
		p.site.NotFound(w, r)
		return
	}
	if do == "remove" || do == "off" || do == "on" {
		p.switchServer(w, r, name, do)
		return
	}
	v := typed{name: name, before: before, is: is}
	p.read(r, f, &v)
	if r = p.site.Again(w, r, f); settings.TypeSecrets(v.edits()) {
		p.site.AsksAgain(r, f, access.PersonOf(r).Proven(time.Now()))
	}
	switch {
	case !f.Valid():
		p.showForm(w, r, name, f, nil)
	case do == "test":
		p.tryServer(w, r, f, &v)
	default:
		p.keepServer(w, r, f, &v)
	}
}

// read takes what was typed, and notes mistakes at their fields.
func (p *Page) read(r *http.Request, f *ui.Form, v *typed) {
	say := func(field, id string, args ...any) { f.Wrong(field, p.site.Say(r, id, args...)) }
	c := p.set.Current()
	if !v.is {
		v.name = f.Get("name")
		switch _, taken := c.Tools.External.MCPServers[v.name]; {
		case !config.GoodServer(v.name):
			say("name", "tools/bad-server-name")
		case taken:
			say("name", "tools/server-taken")
		}
	}
	v.entry = external.Entry{
		Type: f.Get("type"), Allow: lines(f.Get("allow")), Deny: lines(f.Get("deny")), Timeout: external.Text(f.Get("timeout")), Trust: f.Has("trust", "yes"),
		Disabled: f.Has("disabled", "yes"), Kinds: v.before.Kinds, Protocol: v.before.Protocol, Elicitation: v.before.Elicitation,
	}
	if v.entry.Type == string(external.Stdio) {
		if !c.Console.Commands {
			say("type", "tools/no-commands")
			return
		}
		v.entry.Command, v.entry.Cwd = f.Get("command"), f.Get("cwd")
		v.moved = v.entry.Command != v.before.Command
		for _, a := range lines(f.Get("args")) {
			v.entry.Args = append(v.entry.Args, external.Text(a))
		}
		v.env = p.pairs(r, f, v, "env", "=", v.before.Env)
		v.entry.Env = texts(v.env, v.before.Env)
	} else {
		v.entry.URL = f.Get("url")
		if shown := external.PublicURL(string(v.before.URL)); v.is && v.entry.URL == shown {
			v.entry.URL = string(v.before.URL) // with what was not shown of it
		}
		at, err := url.Parse(v.entry.URL)
		if err == nil && nearby.IsDoorHost(at.Hostname()) {
			say("url", "tools/link-local")
		}
		old, _ := url.Parse(string(v.before.URL))
		v.moved = old == nil || at == nil || old.Host != at.Host || old.Scheme != at.Scheme
		v.headers = p.pairs(r, f, v, "headers", ":", v.before.Headers)
		v.entry.Headers = texts(v.headers, v.before.Headers)
	}
	if _, err := v.entry.Config(); err != nil {
		for why := range strings.SplitSeq(err.Error(), "\n") {
			f.Wrong(fieldFor(why), p.site.Say(r, "tools/entry-says", why))
		}
	}
}

// fieldFor is the field that a complaint about an entry is of.
func fieldFor(why string) string {
	key, _, _ := strings.Cut(why, ":")
	if first, _, several := strings.Cut(key, ","); several {
		key = first
	}
	if slices.Contains([]string{"url", "command", "headers", "env", "allow", "timeout", "type"}, key) {
		return key
	}
	return "url"
}

// lines lists what was typed, one a line.
func lines(all string) (out []string) {
	for line := range strings.Lines(all) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// pairs reads names with their secrets. One of dots stays as it was, unless it would go elsewhere.
func (p *Page) pairs(r *http.Request, f *ui.Form, v *typed, field, between string, before map[string]providers.Secret) map[string]string {
	all := map[string]string{}
	for _, line := range lines(f.Get(field)) {
		name, value, ok := strings.Cut(line, between)
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		_, known := before[name]
		switch {
		case !ok || name == "" || value == "":
			f.Wrong(field, p.site.Say(r, "tools/bad-pair-"+field))
			return all
		case strings.Trim(value, "•") != "":
			all[name] = value
		case known && !v.moved:
			all[name] = ""
		default:
			f.Wrong(field, p.site.Say(r, "tools/secret-again", name))
			return all
		}
	}
	return all
}

// texts joins secrets that were typed with those that stay.
func texts(typed map[string]string, before map[string]providers.Secret) map[string]external.Text {
	all := map[string]external.Text{}
	for name, value := range typed {
		if value == "" {
			value = string(before[name])
		}
		all[name] = external.Text(value)
	}
	return all
}

// tryServer connects once to what was typed.
func (p *Page) tryServer(w http.ResponseWriter, r *http.Request, f *ui.Form, v *typed) {
	if err := p.pace.Often(access.PersonOf(r).ID, "servers"); err != nil {
		p.site.Explain(w, r, f, "", err) // the reason is for everybody
		p.showForm(w, r, nameOf(v), f, nil)
		return
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), testTime, errTestTime)
	defer cancel()
	now, took, err := p.from.TryServer(ctx, v.name, v.entry)
	p.door.Did(r, "tool-server.try", v.name, err)
	t := tried{Name: v.name, OK: err == nil, Took: took, Tools: now.Listed}
	if err != nil {
		t.Error = strings.Join(append([]string{err.Error()}, now.Lines...), "\n")
	}
	p.showForm(w, r, nameOf(v), f, &t)
}

// nameOf is the name of a server that is kept; "": it is new.
func nameOf(v *typed) string {
	if v.is {
		return v.name
	}
	return ""
}

// keepServer changes the settings to what was typed.
func (p *Page) keepServer(w http.ResponseWriter, r *http.Request, f *ui.Form, v *typed) {
	base, _ := strconv.Atoi(f.Get("revision")) // of what is none: nothing was set then
	if err := p.plan(w, r, base, v.edits(), serversPath); err != nil {
		p.refusedServer(w, r, f, nameOf(v), err)
	}
}

// edits lists the changes of settings that the form asks for.
func (v *typed) edits() (all []settings.Edit) {
	e, was := v.entry, v.before
	set := func(key string, value any) {
		all = append(all, settings.Edit{Path: serversAt(v.name, key), Value: value})
	}
	if kind := string(typeOf(was)); e.Type != kind || !v.is {
		set("transport", e.Type)
	}
	if e.URL != string(was.URL) && e.Command == "" {
		set("url", e.URL)
	}
	if e.Command != was.Command && e.Command != "" {
		set("command", e.Command)
	}
	if args := plainTexts(e.Args); e.Command != "" && !slices.Equal(args, was.Args) {
		set("args", listOf(args))
	}
	if e.Command != "" && e.Cwd != was.Cwd {
		set("cwd", e.Cwd)
	}
	for key, pair := range map[string]struct {
		typed  map[string]string
		before map[string]providers.Secret
	}{"headers": {v.headers, was.Headers}, "env": {v.env, was.Env}} {
		for _, name := range slices.Sorted(maps.Keys(pair.typed)) {
			if value := pair.typed[name]; value != "" {
				all = append(all, settings.Edit{Path: serversAt(v.name, key, name), Value: value})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(pair.before)) {
			if _, stays := pair.typed[name]; !stays && pair.typed != nil {
				all = append(all, settings.Edit{Path: serversAt(v.name, key, name), Remove: true})
			}
		}
	}
	if !slices.Equal(e.Allow, was.Allow) {
		set("allow", listOf(e.Allow))
	}
	if !slices.Equal(e.Deny, was.Deny) {
		set("deny", listOf(e.Deny))
	}
	if string(e.Timeout) != was.Timeout {
		set("timeout", string(e.Timeout))
	}
	if e.Trust != was.Trust {
		set("trust", e.Trust)
	}
	if e.Disabled != was.Disabled {
		set("disabled", e.Disabled)
	}
	return all
}

// typeOf is the transport of a server that is kept; "": its entry names none that there is.
func typeOf(s config.MCPServer) external.Transport {
	c, err := s.Entry().Config()
	if err != nil {
		return ""
	}
	return c.Transport
}

func plainTexts(all []external.Text) (out []string) {
	for _, t := range all {
		out = append(out, string(t))
	}
	return out
}

// switchServer removes a server that was made here, or switches one off or on.
func (p *Page) switchServer(w http.ResponseWriter, r *http.Request, name, do string) {
	edit := settings.Edit{Path: serversAt(name, "disabled"), Value: do == "off"}
	if do == "remove" {
		edit = settings.Edit{Path: serversAt(name), Remove: true}
	}
	if err := p.plan(w, r, p.set.Revision(), []settings.Edit{edit}, serversPath); err != nil {
		p.refusedServer(w, r, filledWith(p.set.Current().Tools.External.MCPServers[name]), name, err)
	}
}

// refusedServer shows the form with the reasons why it was not kept, each at its field.
func (p *Page) refusedServer(w http.ResponseWriter, r *http.Request, f *ui.Form, name string, err error) {
	if invalid, is := errors.AsType[*settings.InvalidError](err); is {
		for _, problem := range invalid.Problems {
			field := ""
			if len(problem.Path) > 4 && slices.Equal(problem.Path[:3], serversAt()) {
				field = problem.Path[4]
			}
			f.Wrong(field, settings.Problem(ui.Lang(r), problem))
		}
		p.showForm(w, r, name, f, nil)
		return
	}
	if p.explain(w, r, f, "", err) {
		p.showForm(w, r, name, f, nil)
	}
}
