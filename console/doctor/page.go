// Package doctor is the page that says what is wrong with the server, and how far each device has come on its way to a talk.
package doctor

import (
	"context"
	"embed"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/contact/excerpt"
	"xiaozhi/internal/doctor"
	"xiaozhi/internal/lru"
)

// Files are the templates of the page.
//
//go:embed *.html
var Files embed.FS

// Topics that pages follow: the server, and a device by its id.
const (
	Topic        = "doctor"
	TopicContact = "contact"
)

// Source tells what the page shows. Its methods may be called at the same time.
type Source interface {
	Doctor() *doctor.Doctor
	Name(device string) string                                      // given by a person; "": none
	DeviceOwner(ctx context.Context, device string) (string, error) // id of an account; "": nobody's
	Device(typed string) string                                     // the one spelling of a device's id
	Bases() []string                                                // addresses by which the server is reached, the likeliest first
	Microphones() *excerpt.Excerpts                                 // what they have sent last
	Recorded(device string) bool                                    // the sound of its turns is kept
}

// Page shows the doctor.
type Page struct {
	site  *ui.Site
	door  access.Door
	from  Source
	heard *lru.Cache[string, time.Time] // by person and device: when somebody else's sound was last told of in the audit
}

// New returns the page.
func New(site *ui.Site, door access.Door, from Source) *Page {
	return &Page{site, door, from, lru.New[string, time.Time](heardMost, 0)}
}

const path = ui.Prefix + "doctor"

var (
	members = account.Need{Role: account.Member, Scope: account.Admin}
	owners  = account.Need{Role: account.Owner, Scope: account.Admin}
	own     = account.Need{Role: account.Member, Scope: account.Admin, Own: true}
)

// Routes are those of the page: members see the devices that are theirs.
func (p *Page) Routes() []access.Route {
	whose := func(r *http.Request) (string, error) { return p.from.DeviceOwner(r.Context(), p.device(r)) }
	return []access.Route{
		p.site.Page("GET "+path, access.Route{Need: members}, p.show),
		p.site.Page("POST "+path, access.Route{Need: owners}, p.act),
		p.site.Page("GET "+path+"/{id}", access.Route{Need: own, Owner: whose}, p.showContact),
		p.site.Page("POST "+path+"/{id}", access.Route{Need: own, Owner: whose}, p.actContact),
		p.site.Page("GET "+path+"/{id}/sound", access.Route{Need: own, Owner: whose}, p.sound),
	}
}

// Topics lists the live parts.
func (p *Page) Topics() []live.Topic {
	whose := func(r *http.Request, id string) (string, error) { return p.from.DeviceOwner(r.Context(), id) }
	return []live.Topic{
		{Name: Topic, Need: members, Parts: p.parts},
		{Name: TopicContact, Need: own, Owner: whose, Ages: true, Parts: func(r *http.Request, id string) ([]live.Part, error) {
			s := p.contactState(r, id)
			html, err := p.site.Fragment(r, "checkup-steps", s)
			if err != nil {
				return nil, err
			}
			sound, err := p.site.Fragment(r, "checkup-microphone", s)
			return []live.Part{{ID: "steps", HTML: html}, {ID: "microphone", HTML: sound}}, err
		}},
	}
}

// device is the id that a path names; callers without one are named by their address.
func (p *Page) device(r *http.Request) string {
	id := r.PathValue("id")
	if contact.IsNameless(id) {
		return id
	}
	return p.from.Device(id)
}

// state fills the page of the server.
type state struct {
	Owner   bool
	Search  string
	Older   string // path of the next page; "": there is none
	First   bool   // it is the first page, which is live
	Report  doctor.Report
	Areas   []area
	Devices []device
	Callers []contact.Called
	Phone   *phone // nil: no link was made
}

// area is a part of the server with its findings.
type area struct {
	Title    contact.Why
	Worst    doctor.Level
	Findings []doctor.Finding
}

// device is one in the list.
type device struct {
	contact.Contact
	Name, Path string
	Next       contact.Why // the step to look at; empty: all is well
	Failed     bool        // that went wrong
}

// phone is a link for phones.
type phone struct {
	doctor.Link
	Addresses []string
	Code      ui.QR
}

// callers is how many of those who have asked last are shown.
const callers = 8

// state fills the page. The error is of the place in the list of devices that an address names.
func (p *Page) state(r *http.Request, report doctor.Report) (state, error) {
	who, d := access.PersonOf(r), p.from.Doctor()
	s := state{Owner: who.Is(account.Owner), Search: strings.TrimSpace(r.URL.Query().Get("q"))}
	before, err := timeOf(r.URL.Query().Get("before"))
	s.First = err == nil && before.IsZero() && s.Search == ""
	var ids []string
	if err == nil {
		ids = p.found(r, s, before, d.Contacts().Heads())
	}
	all := d.Contacts().Of(ids[:min(maxShown, len(ids))]...)
	if len(ids) > maxShown && len(all) > 0 {
		s.Older = path + "?" + url.Values{"q": {s.Search}, "before": {all[len(all)-1].Last.Format(time.RFC3339Nano)}}.Encode()
	}
	for _, c := range all {
		s.Devices = append(s.Devices, p.listed(c))
	}
	if !s.Owner {
		return s, err
	}
	s.Report, s.Areas, s.Callers = report, areas(report.Findings), d.Contacts().Callers(callers)
	if l, ok := d.Links().Last(); ok {
		s.Phone = &phone{Link: l}
		for _, base := range p.from.Bases() {
			if address := base + l.Path; !slices.Contains(s.Phone.Addresses, address) {
				s.Phone.Addresses = append(s.Phone.Addresses, address)
			}
		}
		if len(s.Phone.Addresses) == 0 { // nobody knows better than the browser that asks
			s.Phone.Addresses = []string{"http://" + r.Host + l.Path}
		}
		s.Phone.Code = ui.QROf(s.Phone.Addresses[0])
	}
	return s, err
}

// timeOf reads when the last device of a page has called; "": it is the first page.
func timeOf(typed string) (at time.Time, err error) {
	if typed == "" {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339Nano, typed); err != nil || at.IsZero() {
		return at, account.ErrPageBad
	}
	return at, nil
}

// maxShown is how many devices are on a page.
const maxShown = 50

// found returns the ids of devices that are looked for and may be seen, one more than a page has.
func (p *Page) found(r *http.Request, s state, before time.Time, heads []contact.Head) (ids []string) {
	search := strings.ToLower(s.Search)
	for _, h := range heads {
		if len(ids) > maxShown {
			break
		}
		if !before.IsZero() && !h.Last.Before(before) {
			continue
		}
		if search != "" && !strings.Contains(strings.ToLower(h.Device+" "+p.from.Name(h.Device)+" "+h.Board+" "+h.From), search) {
			continue
		}
		if !s.Owner {
			if whose, err := p.from.DeviceOwner(r.Context(), h.Device); err != nil || whose == "" || whose != access.PersonOf(r).ID {
				continue
			}
		}
		ids = append(ids, h.Device)
	}
	return ids
}

func (p *Page) listed(c contact.Contact) device {
	d := device{Contact: c, Name: p.from.Name(c.Device), Path: path + "/" + url.PathEscape(c.Device)}
	for _, m := range c.Steps {
		if m.Step == c.Open {
			d.Next, d.Failed = m.Title, m.State == contact.Failed
		}
	}
	return d
}

// areas groups findings, the worst areas first.
func areas(all []doctor.Finding) (out []area) {
	for _, a := range doctor.Areas() {
		one := area{Title: a.Title()}
		for _, f := range all {
			if f.Area == a {
				one.Findings = append(one.Findings, f)
			}
		}
		if len(one.Findings) > 0 {
			one.Worst = doctor.Worst(one.Findings)
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, func(a, b area) int { return b.Worst.Compare(a.Worst) })
	return out
}

func (p *Page) show(w http.ResponseWriter, r *http.Request) {
	var report doctor.Report
	if access.PersonOf(r).Is(account.Owner) {
		var err error
		if report, err = p.from.Doctor().Report(r.Context()); err != nil {
			return // who asked is gone
		}
	}
	s, err := p.state(r, report)
	c := ui.Content{Title: p.site.Say(r, "frame/nav-doctor"), Data: s}
	if err != nil {
		p.site.Failed(w, r, "checkup", c, err)
		return
	}
	p.site.Show(w, r, "checkup", c)
}

// act looks at the server anew, or makes a link for a phone.
func (p *Page) act(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	switch f.Get("do") {
	case "phone":
		p.from.Doctor().Links().New()
		ui.Redirect(w, r, path+"#phone")
	default:
		if _, err := p.from.Doctor().Run(r.Context()); err != nil {
			return // who asked is gone
		}
		ui.Redirect(w, r, path)
	}
}

func (p *Page) parts(r *http.Request, _ string) (all []live.Part, err error) {
	s, err := p.state(r, p.from.Doctor().Last())
	if err != nil {
		return nil, err
	}
	names := [][2]string{{"devices", "checkup-devices"}} // ids of elements, and their templates
	if s.Owner {
		names = append(names, [][2]string{{"callers", "checkup-calls"}, {"server", "checkup-server"}, {"phone", "checkup-phone"}}...)
	}
	for _, name := range names {
		html, err := p.site.Fragment(r, name[1], s)
		if err != nil {
			return nil, err
		}
		all = append(all, live.Part{ID: name[0], HTML: html})
	}
	return all, nil
}

// ShowPhone tells whoever has opened a link for phones that it works: nobody has to log in for that.
func (p *Page) ShowPhone(w http.ResponseWriter, r *http.Request) {
	p.site.Show(w, r, "checkup-works", ui.Content{Title: p.site.Say(r, "checkup/works")})
}

// contactState fills the page of a device.
type contactState struct {
	contact.Contact
	Name    string
	Owner   bool
	Called  bool
	Path    string
	Loud    string // how loud its microphone was, in dB below full scale; "": nothing was heard
	Topic   string
	Steps   []step
	Also    []device         // others that say the same Device-Id
	Callers []contact.Called // who has called, where this one has not
	Sent    string           // in the step that was asked for
	SentIn  contact.Why      // its title
	Sound   microphone
	Hears   bool // it is known: what its microphone sends can be heard
}

// step is one of the twelve.
type step struct {
	contact.Mark
	Number int
	Open   bool
	Causes []contact.Why // of the open one, without its note
	Kind   string        // of its state, as the frame draws it
}

// contactPath is the path of a device.
func (p *Page) contactPath(id string) string { return path + "/" + url.PathEscape(id) }

// kinds are those of states.
var kinds = map[contact.State]string{contact.Reached: "ok", contact.Failed: "bad", contact.Missing: "idle", contact.Unneeded: "idle"}

func (p *Page) contactState(r *http.Request, id string) contactState {
	d := p.from.Doctor()
	s := contactState{Name: p.from.Name(id), Owner: access.PersonOf(r).Is(account.Owner), Path: p.contactPath(id), Topic: TopicContact + ":" + id}
	s.Contact, s.Called = d.Contact(r.Context(), id)
	s.Hears = s.Called && s.Known
	s.Sound = p.microphone(r.Context(), id)
	if s.Level != nil {
		s.Loud = strconv.FormatFloat(*s.Level, 'f', 0, 64)
	}
	for i, m := range s.Contact.Steps {
		one := step{Mark: m, Number: i + 1, Open: m.Step == s.Open, Kind: kinds[m.State]}
		if one.Open {
			one.Kind = map[bool]string{true: "bad", false: "busy"}[m.State == contact.Failed]
			for _, why := range s.Causes {
				if why.ID != m.Note.ID {
					one.Causes = append(one.Causes, why)
				}
			}
		}
		s.Steps = append(s.Steps, one)
	}
	if !s.Owner {
		return s
	}
	for _, h := range d.Contacts().Heads() {
		if strings.HasPrefix(h.Device, id+"~") {
			for _, c := range d.Contacts().Of(h.Device) {
				s.Also = append(s.Also, p.listed(c))
			}
		}
	}
	if !s.Called {
		s.Callers = d.Contacts().Callers(callers)
	}
	return s
}

func (p *Page) showContact(w http.ResponseWriter, r *http.Request) {
	sent, err := access.Choice(r, "sent", contact.StepNames()...)
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	id := p.device(r)
	s := p.contactState(r, id)
	if at, ok := contact.ParseStep(sent); ok {
		s.Sent, s.SentIn = p.from.Doctor().Contacts().Raw(id, at), s.Contact.Steps[at].Title
	}
	title := id
	if s.Name != "" {
		title = s.Name
	}
	p.site.Show(w, r, "checkup-contact", ui.Content{Title: title, Data: s})
}
