package agents

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/lab"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/text"
	"xiaozhi/prompts"
)

// roles are the chains that an agent can have for itself, in the order of the page.
var roles = []string{"asr", "llm", "tts", "vision", "realtime"}

// editor is the page of one agent.
type editor struct {
	Agent roster.Agent
	New   bool
	Mine  bool // who looks may change it
	Here  string
	Base  int // the revision that is changed

	Prompts   []prompt
	Languages []tongue
	Chains    []chain
	Voices    []Voice
	Sources   []source
	Variables []string
	Devices   []Device
	Tries     bool // what is not saved can be tried
	Documents bool // who looks may see those that it has

	Preview  *lab.Prompt
	Clip     *lab.VoiceRow
	Silent   string // why Clip has no sound
	Conflict *conflict
	Past     []roster.Agent
	Shown    ui.Rows[roster.Agent] // of those
	Set      []change              // of one that cannot be changed here
}

// prompt is one that has a name.
type prompt struct{ Name, Text string }

// chain is the choice of services for a role.
type chain struct {
	Role

	Slots []slot
}

// slot is the choice of one service: the first, or one that follows when it fails.
type slot struct {
	Field string
	N     int // from 0 on
	Nth   int
	Names []string
}

// source is a place that tools come from, with those.
type source struct {
	Name  string
	Label string
	Tools []Tool
}

// tongue is a language with its name.
type tongue struct{ Tag, Name string }

// conflict is a revision that somebody else has made meanwhile.
type conflict struct {
	Now    roster.Agent
	Theirs []change // from the revision that was read to theirs
	Yours  []change // from theirs to what was typed
}

// edit shows the editor with what a form holds.
func (p *Page) edit(w http.ResponseWriter, r *http.Request, e *editor, f *ui.Form) {
	stock, lang := p.o.Stock, ui.Lang(r)
	if e.Here == "" {
		e.Here = newPath
	}
	for _, name := range stock.Prompts() {
		e.Prompts = append(e.Prompts, prompt{name, stock.PromptText(name, string(lang))})
	}
	e.Voices, e.Variables, e.Devices, e.Tries = stock.Voices(), prompts.Variables(), stock.Devices(r), p.o.Lab != nil
	tags := stock.Languages()
	if tag := f.Get("language"); tag != "" && !slices.Contains(tags, tag) {
		tags = append(slices.Clone(tags), tag)
	}
	for _, tag := range tags {
		e.Languages = append(e.Languages, tongue{tag, text.Lang(tag).Name(lang)})
	}
	for _, role := range stock.Roles() {
		c := chain{Role: role}
		for i := range maxChain {
			value := f.Get(chainField(role.Key, i))
			names := role.Names
			if value != "" && !slices.Contains(names, value) {
				names = append(slices.Clone(names), value)
			}
			c.Slots = append(c.Slots, slot{chainField(role.Key, i), i, i + 1, names})
			if value == "" && i > 0 {
				break
			}
		}
		e.Chains = append(e.Chains, c)
	}
	for _, t := range stock.Tools(r) {
		if i := slices.IndexFunc(e.Sources, func(s source) bool { return s.Name == t.Source }); i >= 0 {
			e.Sources[i].Tools = append(e.Sources[i].Tools, t)
		} else {
			e.Sources = append(e.Sources, source{t.Source, p.label(r, t.Source), []Tool{t}})
		}
	}
	title := p.site.Say(r, "agents/new")
	if !e.New {
		title = e.Agent.Name
	}
	p.site.Show(w, r, "agent", ui.Content{Title: title, Data: e, Form: f})
}

// label says where tools come from.
func (p *Page) label(r *http.Request, from string) string {
	if name, ok := strings.CutPrefix(from, "external:"); ok {
		return p.site.Say(r, "agents/source-external", name)
	}
	switch from {
	case "local":
		return p.site.Say(r, "agents/source-local")
	case "device", "light", "iot":
		return p.site.Say(r, "agents/source-device")
	}
	return from
}

// one shows an agent: in the editor, or what it is where it cannot be changed here.
func (p *Page) one(w http.ResponseWriter, r *http.Request) {
	e, err := p.editor(r)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	if !e.Mine {
		e.Set = compare([]byte("{}"), e.Agent.Settings)
		p.site.Show(w, r, "agent-fixed", ui.Content{Title: e.Agent.Name, Data: e})
		return
	}
	p.edit(w, r, e, p.filled(r, read(e.Agent.Settings), "base", strconv.Itoa(e.Agent.Rev)))
}

// editor is that of the agent of a request.
func (p *Page) editor(r *http.Request) (*editor, error) {
	name := r.PathValue("name")
	a, err := p.o.Book.One(r, name)
	if err != nil {
		return nil, err
	}
	a.Trouble = p.trouble(r, a)
	who := access.PersonOf(r)
	e := &editor{Agent: a, Base: a.Rev, Mine: mayChange(who, a), Here: here(name), Documents: who.Is(account.Owner) || a.Owner != "" && a.Owner == who.ID}
	if a.Rev > 0 {
		if e.Past, err = p.o.Book.Past(r, name); err == nil {
			e.Shown, err = versions(r, e)
		}
	}
	return e, err
}

// make makes an agent, or tries what was typed for it.
func (p *Page) make(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	e, name := &editor{New: true}, f.Get("name")
	if p.tried(w, r, e, f) {
		return
	}
	set := p.checked(r, f, name)
	if name == "" {
		f.Wrong("name", p.site.Say(r, "agents/name-missing"))
	}
	if f.Valid() {
		err := p.o.Book.Save(r, name, 0, set.doc(), f.Get("note"), true)
		if err == nil {
			p.site.Done(w, r, here(name), "agents/made")
			return
		}
		if !p.site.Explain(w, r, f, fieldOf(err), err) {
			return
		}
	}
	p.edit(w, r, e, f)
}

// fieldOf names the field at which it stands why a new agent was not kept.
func fieldOf(err error) string {
	if refusal, ok := errors.AsType[*roster.RefusalError](err); ok && refusal.About("agents/taken", "agents/name") {
		return "name"
	}
	return ""
}

// change does what the buttons of an agent say.
func (p *Page) change(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	e, err := p.editor(r)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	name := e.Agent.Name
	e.Base, _ = strconv.Atoi(f.Get("base")) // of what is none: there was none yet
	switch f.Get("do") {
	case "delete":
		if err := p.o.Book.Delete(r, name); err == nil {
			ui.Redirect(w, r, path+"?undo="+url.QueryEscape(name))
		} else if p.site.Explain(w, r, f, "", err) {
			p.edit(w, r, e, p.refill(r, e, f))
		}
		return
	case "save":
		p.save(w, r, e, f)
		return
	}
	if !p.tried(w, r, e, f) {
		p.site.NotFound(w, r)
	}
}

// refill is a form with the settings of the agent and the mistakes of another.
func (p *Page) refill(r *http.Request, e *editor, f *ui.Form) *ui.Form {
	full := p.filled(r, read(e.Agent.Settings), "base", strconv.Itoa(e.Agent.Rev))
	for _, m := range f.Mistakes() {
		full.Wrong(m.Field, m.Text)
	}
	return full
}

// save keeps what was typed as a new revision, unless somebody else has made one.
func (p *Page) save(w http.ResponseWriter, r *http.Request, e *editor, f *ui.Form) {
	set := p.checked(r, f, e.Agent.Name)
	if f.Valid() {
		err := p.o.Book.Save(r, e.Agent.Name, e.Base, set.doc(), f.Get("note"), false)
		if err == nil {
			p.site.Done(w, r, e.Here, "agents/saved")
			return
		}
		if stale, ok := errors.AsType[*roster.StaleError](err); ok {
			e.Conflict = p.conflict(e, stale.Now, set)
			f.Set("base", strconv.Itoa(stale.Now.Rev))
			f.Wrong("", p.site.Say(r, "agents/stale", stale.Now.By, stale.Now.Rev))
		} else if !p.site.Explain(w, r, f, "", err) {
			return
		}
	}
	p.edit(w, r, e, f)
}

// conflict tells what somebody has changed meanwhile.
func (p *Page) conflict(e *editor, now roster.Revision, typed settings) *conflict {
	before := []byte("{}")
	for _, old := range e.Past {
		if old.Rev == e.Base {
			before = old.Settings
		}
	}
	e.Base = now.Rev
	return &conflict{
		Now:    roster.Agent{Name: now.Agent, Rev: now.Rev, By: now.By, Note: now.Note, At: &now.At},
		Theirs: compare(before, []byte(now.Doc)), Yours: compare([]byte(now.Doc), typed.doc()),
	}
}

// checked reads what was typed, and notes at each field what is wrong with it.
func (p *Page) checked(r *http.Request, f *ui.Form, name string) settings {
	set, lang := typed(f), ui.Lang(r)
	if f.Get("from") == "own" && set.Text == "" {
		f.Wrong("long-text", p.site.Say(r, "agents/text-missing"))
	}
	if unknown, meant, line := prompts.CheckText(set.Text); unknown != "" {
		f.Wrong("long-text", p.site.Say(r, "agents/variable", line, unknown, meant))
	}
	for _, flaw := range p.o.Stock.Check(name, set.doc()) {
		f.Wrong(fieldOfKey(flaw.Key), cmp.Or(flaw.In[lang], flaw.In[text.English]))
	}
	return set
}

// fieldOfKey is the field of a setting.
func fieldOfKey(key string) string {
	switch {
	case key == "":
		return "name"
	case key == "prompt_text":
		return "long-text"
	case slices.Contains(roles, key):
		return chainField(key, 0)
	}
	return strings.ReplaceAll(key, ".", "-")
}

// How long the page waits for a voice, and what it says if nothing was typed.
const listenTime = 35 * time.Second

// tried shows how what was typed would be, and reports whether that was asked for.
func (p *Page) tried(w http.ResponseWriter, r *http.Request, e *editor, f *ui.Form) bool {
	do := f.Get("do")
	if do != "preview" && do != "listen" || p.o.Lab == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), listenTime)
	defer cancel()
	set := p.checked(r, f, e.Agent.Name)
	var err error
	switch {
	case !f.Valid():
	case do == "preview":
		e.Preview, err = p.preview(ctx, r, f, set)
	default:
		if e.Clip, err = p.listen(ctx, r, f, set); e.Clip != nil {
			e.Silent = lab.WordsIn(ui.Lang(r), e.Clip.Why)
		}
	}
	if err != nil && !p.site.Explain(w, r, f, map[string]string{"preview": "preview-words", "listen": "listen-words"}[do], err) {
		return true
	}
	p.edit(w, r, e, f)
	return true
}

// preview shows a model's request.
func (p *Page) preview(ctx context.Context, r *http.Request, f *ui.Form, set settings) (*lab.Prompt, error) {
	device := f.Get("preview-device")
	if !slices.ContainsFunc(p.o.Stock.Devices(r), func(d Device) bool { return d.ID == device }) {
		device = ""
	}
	sent, err := p.o.Lab.Prompt(ctx, lab.PromptOrder{Setup: lab.Setup{Doc: set.doc()}, Device: device, Words: f.Get("preview-words")})
	return &sent, err
}

// listen has the voice of the agent say a sentence.
func (p *Page) listen(ctx context.Context, r *http.Request, f *ui.Form, set settings) (*lab.VoiceRow, error) {
	voice := lab.Voice{Voice: set.Voice, Language: set.Language}
	if len(set.TTS) > 0 {
		voice.Service = set.TTS[0]
	} else {
		for _, role := range p.o.Stock.Roles() {
			if role.Key == "tts" && len(role.All) > 0 {
				voice.Service = role.All[0]
			}
		}
	}
	if voice.Service == "" {
		return nil, lab.Refuse(lab.Invalid, "lab/no-voices")
	}
	if speed, err := strconv.ParseFloat(f.Get("listen-speed"), 64); err == nil && speed != 1 {
		voice.Speed = speed
	}
	sentence := f.Get("listen-words")
	if sentence == "" {
		sentence = p.site.Say(r, "agents/listen-sentence")
	}
	run, err := p.o.Lab.Voices(lab.Person(r), sentence, []lab.Voice{voice})
	if err != nil {
		return nil, err
	}
	for {
		s, changed := run.Snapshot(0)
		if len(s.Rows) > 0 {
			row, _ := s.Rows[0].(lab.VoiceRow)
			return &row, nil
		}
		if s.State != lab.Running {
			return &lab.VoiceRow{Fault: s.Fault, Why: s.Why}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			run.Cancel()
			return nil, lab.Refuse(lab.Invalid, "lab/late")
		}
	}
}
