// Package conversations is the page on which people look for what was said, hear it, and see where its time went.
package conversations

import (
	"cmp"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
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

// Topics of the page: the newest talks, and the turns of a talk after one, TALK/SEQ.
const (
	Topic      = "talks"
	TopicTurns = "turns"
)

// Choice is one of a list.
type Choice struct{ Value, Text string }

// Options say what the page uses.
type Options struct {
	From    *talks.Talks                                     // nil: nothing is kept
	Choices func(r *http.Request) (devices, agents []Choice) // that who asks can search for
}

// Page shows talks.
type Page struct {
	site *ui.Site
	from *talks.Talks
	o    Options
}

// New returns the page.
func New(site *ui.Site, o Options) *Page { return &Page{site, o.From, o} }

// Topics lists the live parts: talks are added at the beginning of the list, and turns at the end of a talk.
func (p *Page) Topics() []live.Topic {
	if p.from == nil {
		return nil
	}
	own := account.Need{Role: account.Member, Scope: account.Admin, Own: true}
	return []live.Topic{
		{Name: Topic, Need: account.Need{Role: account.Member, Scope: account.Admin}, Parts: func(r *http.Request, _ string) ([]live.Part, error) {
			s, err := p.search(r, nil)
			if err != nil {
				return nil, err
			}
			html, err := p.site.Fragment(r, "conversations-days", s)
			return []live.Part{{ID: "talks", HTML: html}}, err
		}},
		{Name: TopicTurns, Need: own, Owner: func(r *http.Request, key string) (string, error) {
			id, _, _ := strings.Cut(key, "/")
			return p.from.OwnerOf(r.Context(), id)
		}, Parts: func(r *http.Request, key string) ([]live.Part, error) {
			id, seq, _ := strings.Cut(key, "/")
			after, err := strconv.Atoi(seq)
			if err != nil {
				return nil, err
			}
			t, err := p.talk(r, id, after)
			if err != nil {
				return nil, err
			}
			html, err := p.site.Fragment(r, "conversation-turns", t)
			return []live.Part{{ID: "turns", HTML: html}}, err
		}},
	}
}

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
	Devices []Choice
	Agents  []Choice
	Undo    string // a talk that was deleted, and can be brought back
	First   bool   // it is the beginning of the list of all talks
}

func (p *Page) list(w http.ResponseWriter, r *http.Request) {
	s, err := p.search(r, r.URL.Query())
	s.Devices, s.Agents = p.o.Choices(r)
	for value, all := range map[string]*[]Choice{s.Device: &s.Devices, s.Agent: &s.Agents} {
		if value != "" && !slices.ContainsFunc(*all, func(c Choice) bool { return c.Value == value }) {
			*all = append(*all, Choice{value, value}) // one that is gone
		}
	}
	if id := r.URL.Query().Get("undo"); p.from.Bin.Has(id) {
		s.Undo = id
	}
	c := ui.Content{Title: p.site.Say(r, "conversations/title"), Data: s, Trouble: s.Wrong}
	switch {
	case err != nil:
		p.site.Failed(w, r, "conversations", c, err)
	case s.Wrong != "":
		p.site.Unclear(w, r, "conversations", c)
	default:
		p.site.Show(w, r, "conversations", c)
	}
}

// search looks for what an address asks for. Of what cannot be read, by the error, it still tells what was asked.
func (p *Page) search(r *http.Request, v url.Values) (*search, error) {
	f, page, err := talks.ParseFilter(v)
	who := access.PersonOf(r)
	s := &search{
		Text: f.Text, Tool: f.Tool, Device: f.Device, Agent: f.Agent, Failed: f.Failed, Cut: f.Interrupted, Kept: f.Kept, Owner: who.Is(account.Owner),
		Asked: f != (store.TalkFilter{}),
	}
	s.First = !s.Asked && v.Get("before") == ""
	if f.Slower > 0 {
		s.Slower = strconv.FormatInt(f.Slower.Milliseconds(), 10)
	}
	if err != nil {
		s.Wrong = p.site.Say(r, "conversations/wrong")
	} else {
		found, err := p.from.List(r.Context(), who, f, page)
		if err != nil {
			return s, err
		}
		found.Talks = slices.DeleteFunc(found.Talks, func(t store.Talk) bool { return p.from.Bin.Has(t.ID) })
		s.Days = p.from.Days(found.Talks)
		if next := talks.Cursor(found.Next); next != "" {
			older := url.Values{"before": {next}}
			for key, values := range v {
				if key != "before" && key != "undo" {
					older[key] = values
				}
			}
			s.Next, s.Further = path+"?"+older.Encode(), len(found.Talks) == 0
		}
	}
	return s, nil
}

// shown is a turn as the page shows it.
type shown struct {
	*talks.Turn

	Picture     *waterfall.Picture
	User, Reply bool   // can be heard
	NoSound     string // why neither can
	Sets        bool   // who looks may change what is recorded
	Cost        string // "": nothing
	Cut         bool
}

// talk holds what the page of one talk shows.
type talk struct {
	*talks.Talk

	Shown []*shown
	Next  string
	Here  string
	After int    // the turns before it are not shown
	Last  int    // the number of the last turn that is shown
	Undo  string // a turn that was deleted, and can be brought back
}

func (p *Page) one(w http.ResponseWriter, r *http.Request) {
	after, err := turnOf(r.URL.Query().Get("after"))
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	data, err := p.talk(r, r.PathValue("talk"), after)
	if err != nil {
		p.site.Refused(w, r, talks.Unknown(err))
		return
	}
	if id := r.URL.Query().Get("undo"); p.from.Bin.Has(id) {
		data.Undo = id
	}
	p.site.Show(w, r, "conversation", ui.Content{Title: p.site.Say(r, "conversations/one", name(&data.Talk.Talk)), Data: data})
}

// turnOf reads the number of the turn behind which a page begins; "": from the first.
func turnOf(typed string) (int, error) {
	if typed == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(typed)
	if err != nil || n < 0 {
		return 0, account.ErrPageBad
	}
	return n, nil
}

// talk is a talk with its turns after one.
func (p *Page) talk(r *http.Request, id string, after int) (*talk, error) {
	t, err := p.from.Talk(r.Context(), id, after)
	if err == nil && p.from.Bin.Has(id) {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	lang, now := ui.Lang(r), time.Now()
	data := &talk{Talk: &t, Here: path + "/" + url.PathEscape(t.ID), After: after, Last: after}
	for i := range t.Turns {
		turn := &t.Turns[i]
		data.Last = turn.Seq
		if p.from.Bin.Has(turn.ID) {
			continue
		}
		s := &shown{Turn: turn, Picture: waterfall.Draw(&turn.Turn, lang), NoSound: p.from.NoSound(turn, lang), Sets: access.PersonOf(r).Is(account.Owner), Cost: money(turn.Cost()), Cut: turn.Cause == "barge-in" || turn.Cause == "aborted"}
		_, s.User = turn.Side("user", now)
		_, s.Reply = turn.Side("reply", now)
		data.Shown = append(data.Shown, s)
	}
	if t.More {
		data.Next = data.Here + "?after=" + strconv.Itoa(t.Turns[len(t.Turns)-1].Seq)
	}
	return data, nil
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
		p.from.Bin.Delete(r, id, "")
		ui.Redirect(w, r, path+"?undo="+url.QueryEscape(id))
		return
	case "undo":
		what := cmp.Or(f.Get("turn"), id)
		if done = "conversations/did-undo"; !p.from.Bin.Undo(what) {
			here, done = path, "conversations/too-late"
		}
	case "up", "down", "none", "delete-turn":
		turn := f.Get("turn")
		_, of, missing := p.from.Turn(r.Context(), turn)
		if err = missing; err == nil && of.ID != id {
			err = store.ErrNotFound
		}
		switch {
		case err != nil:
		case do == "delete-turn" && of.Turns <= 1:
			p.from.Bin.Delete(r, id, "")
			ui.Redirect(w, r, path+"?undo="+url.QueryEscape(id))
			return
		case do == "delete-turn":
			p.from.Bin.Delete(r, id, turn)
			ui.Redirect(w, r, here+"?undo="+url.QueryEscape(turn))
			return
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
