// Package conversations is the page on which people look for what was said, hear it, and see where its time went.
package conversations

import (
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"xiaozhi/console/live"
	"xiaozhi/console/talks"
	"xiaozhi/console/ui"
	"xiaozhi/console/waterfall"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/store"
)

// Files are the templates of the page, and its style.
//
//go:embed *.html *.css
var Files embed.FS

const path = ui.Prefix + "conversations"

// Page shows talks.
type Page struct {
	site *ui.Site
	from *talks.Talks
}

// New returns the page.
func New(site *ui.Site, from *talks.Talks) *Page { return &Page{site, from} }

// Topics are none: what was said does not change any more.
func (p *Page) Topics() []live.Topic { return nil }

// Routes are those of the page, and of what it leads to: sound and files.
func (p *Page) Routes() []access.Route {
	if p.from == nil {
		return nil
	}
	member := account.Need{Role: account.Member, Scope: account.Admin}
	own := account.Need{Role: account.Member, Scope: account.Admin, Own: true}
	routes := []access.Route{
		p.site.Page("GET "+path, access.Route{Need: member}, p.list),
		p.site.Page("GET "+path+"/{talk}", access.Route{Need: own, Owner: p.from.OwnerOfTalk}, p.one),
		p.site.Page("POST "+path+"/{talk}", access.Route{Need: own, Owner: p.from.OwnerOfTalk}, p.act),
	}
	for _, r := range p.from.Routes() {
		r.Refused = p.site.Refused
		routes = append(routes, r)
	}
	return routes
}

// search holds what the list shows.
type search struct {
	Days    []talks.Day
	Asked   bool // for something
	Wrong   string
	Text    string
	Tool    string
	Device  string
	Agent   string
	Slower  string
	Failed  bool
	Cut     bool
	Kept    bool
	Owner   bool // sees the talks of everybody
	Next    string
	Further bool // nothing more was found so far
}

func (p *Page) list(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	f, page, err := talks.ParseFilter(v)
	who := access.PersonOf(r)
	s := search{
		Text: f.Text, Tool: f.Tool, Device: f.Device, Agent: f.Agent, Failed: f.Failed, Cut: f.Interrupted, Kept: f.Kept, Owner: who.Is(account.Owner),
		Asked: f != (store.TalkFilter{}),
	}
	if f.Slower > 0 {
		s.Slower = strconv.FormatInt(f.Slower.Milliseconds(), 10)
	}
	if err != nil {
		s.Wrong = p.site.Say(r, "conversations/wrong")
	} else {
		found, err := p.from.List(r.Context(), who, f, page)
		if err != nil {
			p.site.Refused(w, r, err)
			return
		}
		s.Days = p.from.Days(found.Talks)
		if next := talks.Cursor(found.Next); next != "" {
			v.Set("before", next)
			s.Next, s.Further = path+"?"+v.Encode(), len(found.Talks) == 0
		}
	}
	p.site.Show(w, r, "conversations", ui.Content{Title: p.site.Say(r, "conversations/title"), Data: s})
}

// shown is a turn as the page shows it.
type shown struct {
	*talks.Turn

	Picture     *waterfall.Picture
	User, Reply bool   // can be heard
	NoSound     string // why neither can
	Cost        string // "": nothing
	Cut         bool
}

// talk holds what the page of one talk shows.
type talk struct {
	*talks.Talk

	Shown []shown
	Next  string
	Here  string
}

func (p *Page) one(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.Atoi(r.URL.Query().Get("after"))
	if err != nil || after < 0 {
		after = 0
	}
	t, err := p.from.Talk(r.Context(), r.PathValue("talk"), after)
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	lang, now := ui.Lang(r), time.Now()
	data := talk{Talk: &t, Here: path + "/" + url.PathEscape(t.ID)}
	for i := range t.Turns {
		turn := &t.Turns[i]
		s := shown{Turn: turn, Picture: waterfall.Draw(&turn.Turn, lang), NoSound: p.from.NoSound(turn, lang), Cost: money(turn.CostMicros), Cut: turn.Cause == "barge-in" || turn.Cause == "aborted"}
		_, s.User = turn.Side("user", now)
		_, s.Reply = turn.Side("reply", now)
		data.Shown = append(data.Shown, s)
	}
	if t.More {
		data.Next = data.Here + "?after=" + strconv.Itoa(t.Turns[len(t.Turns)-1].Seq)
	}
	p.site.Show(w, r, "conversation", ui.Content{Title: p.site.Say(r, "conversations/one", name(&t.Talk)), Data: data})
}

// name returns what people call the device of a talk.
func name(t *store.Talk) string {
	if t.DeviceName != "" {
		return t.DeviceName
	}
	return t.DeviceID
}

// money writes millionths of a currency; "": nothing.
func money(micros int) string {
	if micros <= 0 {
		return ""
	}
	return strconv.FormatFloat(float64(micros)/1e6, 'f', 4, 64)
}

// Figure is the picture of the turn with its table.
func (s *shown) Figure() template.HTML { return s.Picture.Figure() }

// act does what the buttons of a talk say.
func (p *Page) act(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	id := r.PathValue("talk")
	here, done := path+"/"+url.PathEscape(id), ""
	var err error
	switch do := f.Get("do"); do {
	case "keep", "unkeep":
		done, err = "conversations/did-"+do, p.from.Keep(r.Context(), id, do == "keep")
	case "delete":
		here, done, err = path, "conversations/did-delete", p.from.DeleteTalk(r, id)
	case "up", "down", "none", "delete-turn":
		turn := f.Get("turn")
		_, of, missing := p.from.Turn(r.Context(), turn)
		if err = missing; err == nil && of.ID != id {
			err = store.ErrNotFound
		}
		switch {
		case err != nil:
		case do == "delete-turn":
			if done, err = "conversations/did-turn", p.from.DeleteTurn(r, turn); of.Turns <= 1 {
				here = path
			}
		default:
			done, err = "conversations/did-rate", p.from.Rate(r.Context(), turn, map[string]int{"up": 1, "down": -1}[do])
			here += "#turn-" + turn
		}
	default:
		p.site.NotFound(w, r)
		return
	}
	if err != nil {
		p.site.Refused(w, r, talks.Unknown(err))
		return
	}
	p.site.Done(w, r, here, done)
}
