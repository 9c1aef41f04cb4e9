package tools

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"strings"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/store"
)

// single is the page of one tool.
type single struct {
	row

	Live    bool // it can be called now
	Gone    bool // it is not there any more
	Asks    bool // somebody must say yes first
	Fields  []field
	Whole   bool   // the arguments are best written as JSON
	Schema  string // for people
	Places  []place
	Owner   bool
	Answer  *answer // to a call
	Last    []store.Call
	LogPath string
	Rules   *rules // nil: they cannot be changed here
}

// place offers a tool on one device, or says why it cannot be called there.
type place struct {
	row
	Here bool // the one that is shown
	Live bool
}

// answer is the outcome of a call.
type answer struct {
	Failed   bool
	Text     string
	Say      string // that would be spoken
	Pictures []picture
	Left     int // pictures that cannot be shown
	Took     time.Duration
}

// errNoTool says that there is no such tool.
var errNoTool = errors.New("there is no such tool")

// lastCalls is how many calls of a tool its page shows.
const lastCalls = 5

// find returns a tool of a device, or of none, by its id.
func (d *Desk) find(r *http.Request, device, id string) (w row, live bool, err error) {
	all, live, name := []router.Listed(nil), true, ""
	if device == "" {
		all = d.from.Here()
	} else if all, live, err = d.from.Survey(r.Context(), device); err != nil {
		return w, false, err
	}
	devices, err := d.mine(r)
	if err != nil {
		return w, false, err
	}
	for _, of := range devices {
		if of.ID == device {
			name = called(of)
		}
	}
	for _, l := range all {
		if idOf(l.Tool) == id {
			return rowOf(l, device, name, ui.Lang(r)), live, nil
		}
	}
	return w, false, errNoTool
}

// single fills the page of a tool.
func (p *Page) single(r *http.Request) (s single, err error) {
	device := r.PathValue("device")
	if device != "" {
		device = p.from.DeviceID(device)
	}
	if s.row, s.Live, err = p.find(r, device, r.PathValue("tool")); err != nil {
		return s, err
	}
	s.Owner = access.PersonOf(r).Is(account.Owner)
	s.Live = s.Live && (s.Hidden == "" || s.Personal()) && (s.Device != "" || !s.Tool.NeedsDevice)
	s.Asks = s.row.Listed.Asks != ""
	s.Fields, s.Whole = fieldsOf(s.Tool.Schema)
	s.Schema = indented(s.Tool.Schema)
	if s.Places, err = p.places(r, s.row); err != nil {
		return s, err
	}
	s.LogPath = callsPath + "?tool=" + template.URLQueryEscaper(s.Tool.Name)
	f := store.CallFilter{Tool: s.Tool.Name, Device: s.Device}
	if !s.Owner {
		f.Owner = access.PersonOf(r).ID
	}
	l, err := p.from.FindCalls(r.Context(), f, store.Page{Limit: lastCalls})
	s.Last = l.Calls
	return s, err
}

// maxSchema is how much of a schema is shown, in bytes.
const maxSchema = 16 << 10

// indented writes a schema for people.
func indented(raw json.RawMessage) string {
	if len(raw) > maxSchema {
		return text.Cut(string(raw), maxSchema)
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return string(raw)
	}
	return text.Cut(string(b), maxSchema)
}

// places lists where else the same tool can be called.
func (p *Page) places(r *http.Request, w row) (all []place, err error) {
	id := idOf(w.Tool)
	if access.PersonOf(r).Is(account.Owner) && !w.Tool.OfDevice() {
		for _, l := range p.from.Here() {
			if idOf(l.Tool) == id {
				all = append(all, place{row: rowOf(l, "", "", ui.Lang(r)), Live: true})
			}
		}
	}
	devices, err := p.mine(r)
	for _, d := range devices[:min(len(devices), together)] {
		listed, live, err := p.from.Survey(r.Context(), d.ID)
		if err != nil {
			return nil, err
		}
		for _, l := range listed {
			if idOf(l.Tool) == id {
				all = append(all, place{row: rowOf(l, d.ID, called(d), ui.Lang(r)), Live: live})
			}
		}
	}
	for i := range all {
		all[i].Here = all[i].Device == w.Device
	}
	return all, err
}

func (p *Page) one(w http.ResponseWriter, r *http.Request) { p.show(w, r, nil, nil, nil) }

// show shows the page of a tool, with what was typed and the outcome of a call. was is how it was before that: the tool may
// have gone with it.
func (p *Page) show(w http.ResponseWriter, r *http.Request, f *ui.Form, was *single, a *answer) {
	s, err := p.single(r)
	switch {
	case errors.Is(err, errNoTool) && was != nil:
		s = *was
		s.Live, s.Gone = false, true
	case errors.Is(err, errNoTool):
		p.site.NotFound(w, r)
		return
	case err != nil:
		p.site.Refused(w, r, err)
		return
	}
	s.Answer = a
	if s.Owner {
		s.Rules = p.rulesOf(r, s.row)
	}
	p.site.Show(w, r, "tool", ui.Content{Title: text.Cut(s.Tool.Name, 80), Data: s, Form: f})
}

// callTime limits what a tool does while the page waits, but for those that may take longer: the user may be asked first,
// within askTime.
const (
	callTime = 100 * time.Second
	askTime  = 40 * time.Second
)

// act calls a tool, or changes how it is used.
func (p *Page) act(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	s, err := p.single(r)
	switch {
	case errors.Is(err, errNoTool):
		p.site.NotFound(w, r)
		return
	case err != nil:
		p.site.Refused(w, r, err)
		return
	}
	switch f.Get("do") {
	case "call":
		p.call(w, r, f, s)
	case "rules":
		p.setRules(w, r, f, s)
	default:
		p.site.NotFound(w, r)
	}
}

// call runs a tool with what was typed.
func (p *Page) call(w http.ResponseWriter, r *http.Request, f *ui.Form, s single) {
	say := func(id string, args ...any) string { return p.site.Say(r, id, args...) }
	arguments, err := asked(f, s.Fields, s.Tool.Schema, say)
	sure := f.Has("sure", "yes")
	switch {
	case err != nil && !errors.Is(err, errMistake):
		p.site.Refused(w, r, err)
		return
	case err != nil:
	case !s.Live:
		f.Wrong("", say("tools/not-now"))
	case s.Device == "" && s.Asks && !sure:
		f.Wrong("sure", say("tools/must-be-sure"))
	}
	if !f.Valid() {
		p.show(w, r, f, &s, nil)
		return
	}
	who := access.PersonOf(r)
	if err := p.pace.Often(who.ID, s.Device); err != nil {
		p.site.Explain(w, r, f, "", err) // the reason is for everybody
		p.show(w, r, f, &s, nil)
		return
	}
	a, invalid, err := p.run(r, s.row, arguments, sure)
	p.door.Did(r, "tool.call", auditName(s.row), cmp.Or(err, a.outcome()))
	switch {
	case err != nil && p.site.Reason(r, err) == "":
		f.Wrong("", say("tools/not-now"))
	case err != nil:
		p.site.Explain(w, r, f, "", err)
	case invalid != "":
		f.Wrong("", say("tools/schema-says", invalid))
	}
	if !f.Valid() {
		p.show(w, r, f, &s, nil)
		return
	}
	p.show(w, r, f, &s, &a)
}

// errFailed says of a call in the audit that the tool failed.
var errFailed = errors.New("the tool failed")

func (a *answer) outcome() error {
	if a.Failed {
		return errFailed
	}
	return nil
}

// auditName names a tool, and where it was called.
func auditName(w row) string {
	name := text.Cut(w.Tool.Source+"/"+w.Tool.Name, 200)
	if w.Device != "" {
		name += " " + w.Device
	}
	return name
}

// Limits of what a page shows of an outcome.
const (
	maxPictures = 4
	maxPicture  = 4 << 20 // bytes
)

// answerOf makes of an outcome what a page can show: texts, and pictures of kinds that cannot do anything.
func answerOf(o mcp.Outcome) answer {
	a := answer{Failed: o.Failed, Text: o.Text, Say: o.Say}
	var texts []string
	for _, b := range o.Blocks {
		image, is := b.(mcp.Image)
		if !is {
			if s, ok := b.(string); ok && s != "" {
				texts = append(texts, s)
			}
			continue
		}
		kind := http.DetectContentType(image.Data)
		switch {
		case len(a.Pictures) == maxPictures, len(image.Data) > maxPicture, kind != "image/png" && kind != "image/jpeg" && kind != "image/gif" && kind != "image/webp":
			a.Left++
		default:
			//nolint:gosec // the bytes are those of such a picture, and base64 has no signs that mean something
			a.Pictures = append(a.Pictures, picture{template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(image.Data)), len(image.Data)})
		}
	}
	if len(texts) > 0 || len(o.Blocks) > 0 {
		a.Text = strings.Join(texts, "\n")
	}
	if a.Text == "" {
		a.Text = a.Say
	}
	if a.Text == a.Say {
		a.Say = ""
	}
	return a
}
