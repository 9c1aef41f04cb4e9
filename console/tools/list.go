package tools

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// filter says which tools are looked for.
type filter struct {
	Search string
	Source string // its family: local, homeassistant, file, device, light, iot, external; "": all
	Device string // "": all
	After  string // key of the last row of the page before
}

// row is a tool in the list.
type row struct {
	router.Listed

	Device     string // that runs it; "": this server, or another one
	DeviceName string
	Path       string
	Brief      string // the beginning of its description
	key        string // its place in the list
}

// listing is the page of all tools, as far as somebody may see them.
type listing struct {
	filter

	Rows     []row
	Total    int // that were found
	Next     string
	Last     string         // key of the last row, where there are more
	Families []string       // of sources that there are
	Devices  []fleet.Device // that may be chosen
	Asleep   int            // whose tools are those of before
	Owner    bool
	Many     bool // devices: one must be chosen
	First    bool // it is the first page of all, which is live
}

const (
	pageRows = 50
	together = 20  // devices whose tools are listed together; of more, one is chosen first
	brief    = 140 // bytes of a description in the list
)

// keyParts is how many parts the place of a tool in the list has: its source, the name and the id of a device, and its own.
const keyParts = 4

// familyOf is the kind of a source: all of other people's servers are one.
func familyOf(source string) string {
	family, _, _ := strings.Cut(source, ":")
	return family
}

// families are the kinds of sources, in the order of the list.
var families = []string{mcp.SourceLocal, mcp.SourceHome, mcp.SourceFile, mcp.SourceDevice, mcp.SourceLight, mcp.SourceIoT, "external"}

// idOf names a tool in paths, whatever it is called.
func idOf(t mcp.Tool) string {
	sum := sha256.Sum256([]byte(t.Source + "\x00" + t.Name))
	return hex.EncodeToString(sum[:8])
}

// called returns what people call a device.
func called(d fleet.Device) string { return cmp.Or(d.Name, d.Board, d.ID) }

// rowOf makes the row of a tool of a device, or of none.
func rowOf(l router.Listed, device, name string, lang text.Lang) row {
	w := row{Listed: l, Device: device, DeviceName: name, Brief: text.Cut(strings.Join(strings.Fields(text.Half(l.Tool.Description, lang)), " "), brief), Path: herePath + idOf(l.Tool)}
	if device != "" {
		w.Path = onPath + url.PathEscape(device) + "/" + idOf(l.Tool)
	}
	place := slices.Index(families, familyOf(l.Tool.Source))
	w.key = string(rune('a'+place+1)) + l.Tool.Source + "\x00" + name + "\x00" + device + "\x00" + l.Tool.Name
	return w
}

// rows lists all tools that a person may see: those of a device, or of all of theirs.
func (d *Desk) rows(r *http.Request, f filter, devices []fleet.Device) (all []row, asleep int, err error) {
	owner := access.PersonOf(r).Is(account.Owner)
	seen := map[string]bool{}
	if owner && f.Device == "" {
		for _, l := range d.from.Here() {
			seen[idOf(l.Tool)] = true
			all = append(all, rowOf(l, "", "", ui.Lang(r)))
		}
	}
	if f.Device == "" && len(devices) > together {
		devices = nil
	}
	for _, of := range devices {
		if f.Device != "" && of.ID != f.Device {
			continue
		}
		listed, live, err := d.from.Survey(r.Context(), of.ID)
		if err != nil {
			return nil, 0, err
		}
		if !live {
			asleep++
		}
		for _, l := range listed {
			if !l.Tool.OfDevice() && f.Device == "" {
				if seen[idOf(l.Tool)] {
					continue // the same on each device
				}
				seen[idOf(l.Tool)] = true
			}
			all = append(all, rowOf(l, of.ID, called(of), ui.Lang(r)))
		}
	}
	slices.SortStableFunc(all, func(a, b row) int { return strings.Compare(a.key, b.key) })
	return all, asleep, nil
}

// holds reports whether a tool is one that is searched for.
func (w row) holds(f filter) bool {
	if f.Source != "" && familyOf(w.Tool.Source) != f.Source {
		return false
	}
	all := strings.Join([]string{w.Tool.Name, w.LLMName, w.Tool.Source, w.Tool.Description, w.DeviceName}, "\n")
	return strings.Contains(strings.ToLower(all), strings.ToLower(f.Search))
}

func (d *Desk) listing(r *http.Request, f filter) (listing, error) {
	l := listing{filter: f, Owner: access.PersonOf(r).Is(account.Owner), First: f == filter{}, Families: families}
	devices, err := d.mine(r)
	if err != nil {
		return l, err
	}
	if l.Devices = devices; f.Device != "" && !slices.ContainsFunc(devices, func(of fleet.Device) bool { return of.ID == f.Device }) {
		return l, account.ErrNoDevice
	}
	all, asleep, err := d.rows(r, f, devices)
	if err != nil {
		return l, err
	}
	l.Asleep, l.Many = asleep, f.Device == "" && len(devices) > together
	for _, w := range all {
		if !w.holds(f) {
			continue
		}
		l.Total++
		if w.key <= f.After {
			continue
		}
		if len(l.Rows) == pageRows {
			l.Last = l.Rows[pageRows-1].key
			l.Next = path + "?" + url.Values{"q": {f.Search}, "source": {f.Source}, "device": {f.Device}, "after": {l.Last}}.Encode()
			continue
		}
		l.Rows = append(l.Rows, w)
	}
	return l, nil
}

// asked reads which tools an address asks for.
func (d *Desk) asked(r *http.Request) (f filter, err error) {
	q := r.URL.Query()
	f = filter{Search: strings.TrimSpace(q.Get("q")), After: q.Get("after")}
	if device := strings.TrimSpace(q.Get("device")); device != "" {
		f.Device = d.from.DeviceID(device)
	}
	if f.After != "" && strings.Count(f.After, "\x00") != keyParts-1 {
		return f, account.ErrPageBad
	}
	f.Source, err = access.Choice(r, "source", families...)
	return f, err
}

func (p *Page) list(w http.ResponseWriter, r *http.Request) {
	f, err := p.asked(r)
	var l listing
	if err == nil {
		l, err = p.listing(r, f)
	}
	c := ui.Content{Title: p.site.Say(r, "tools/title"), Data: &l}
	if err != nil {
		l.filter, l.Owner, l.Families = f, access.PersonOf(r).Is(account.Owner), families
		p.site.Failed(w, r, "tools", c, err)
		return
	}
	p.site.Show(w, r, "tools", c)
}
