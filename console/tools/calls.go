package tools

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/toolcount"
	"xiaozhi/mcp/router"
	"xiaozhi/store"
)

// call is one in the log.
type call struct {
	store.Call
	DeviceName string
}

// callLog is the page of the calls that were made.
type callLog struct {
	Calls    []call
	Tool     string
	Source   string
	Device   string
	Failed   bool
	Asked    bool // for something
	Next     string
	Further  bool // nothing was found so far
	Devices  []fleet.Device
	Families []string
	Owner    bool
	Counts   []toolcount.Count // since the start; nil: they are not shown
}

// Many reports whether there were calls at all.
func (l *callLog) Many() bool {
	return slices.ContainsFunc(l.Counts, func(c toolcount.Count) bool { return c.Calls > 0 || refused(c) > 0 })
}

// refused counts the calls that were not made.
func refused(c toolcount.Count) (all uint64) {
	for _, n := range c.Refused {
		all += n
	}
	return all
}

// counted is a row of counts.
type counted struct {
	toolcount.Count
	Refusals uint64
	Why      []reasonCount // that there were
}

// reasonCount counts the calls that were not made for a reason.
type reasonCount struct {
	Reason router.Refusal
	Times  uint64
}

// Rows are the counts of sources that were asked for anything.
func (l *callLog) Rows() (rows []counted) {
	for _, c := range l.Counts {
		if c.Calls == 0 && refused(c) == 0 {
			continue
		}
		row := counted{Count: c, Refusals: refused(c)}
		for _, why := range router.Refusals() {
			if n := c.Refused[why]; n > 0 {
				row.Why = append(row.Why, reasonCount{why, n})
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// callsAsked reads which calls an address asks for, their device apart.
func callsAsked(r *http.Request) (f store.CallFilter, err error) {
	f.Tool = strings.TrimSpace(r.URL.Query().Get("tool"))
	if f.Source = r.URL.Query().Get("source"); !strings.HasPrefix(f.Source, "external:") { // that is one of them
		f.Source, err = access.Choice(r, "source", families...)
	}
	if err == nil {
		f.Failed, err = access.Switch(r, "failed")
	}
	return f, err
}

// calls shows the log: members that of their own devices.
func (p *Page) calls(w http.ResponseWriter, r *http.Request) {
	q, who := r.URL.Query(), access.PersonOf(r)
	asked, err := callsAsked(r)
	l := callLog{
		Tool: asked.Tool, Source: asked.Source, Device: strings.TrimSpace(q.Get("device")), Failed: asked.Failed,
		Owner: who.Is(account.Owner), Families: families,
	}
	if l.Owner {
		l.Counts = p.from.Counts()
	}
	c := ui.Content{Title: p.site.Say(r, "tools/calls"), Data: &l}
	if err == nil {
		l.Devices, err = p.mine(r)
	}
	if err != nil {
		p.site.Failed(w, r, "tools-calls", c, err)
		return
	}
	if l.Device != "" {
		l.Device = p.from.DeviceID(l.Device)
	}
	f := store.CallFilter{Tool: l.Tool, Source: l.Source, Device: l.Device, Failed: l.Failed}
	l.Asked = f != store.CallFilter{}
	if f.Source == "external" {
		f.Source += ":"
	}
	if !l.Owner {
		f.Owner = who.ID
	}
	before, ok := cursorOf(q.Get("before"))
	if !ok {
		err = account.ErrPageBad
	}
	var found store.CallList
	if err == nil {
		found, err = p.from.FindCalls(r.Context(), f, store.Page{Limit: pageRows, Before: before})
	}
	if err != nil {
		p.site.Failed(w, r, "tools-calls", c, err)
		return
	}
	p.fill(&l, found)
	p.site.Show(w, r, "tools-calls", c)
}

// fill takes what was found.
func (p *Page) fill(l *callLog, found store.CallList) {
	names := map[string]string{}
	for _, d := range l.Devices {
		names[d.ID] = called(d)
	}
	for i := range found.Calls {
		l.Calls = append(l.Calls, call{found.Calls[i], cmp.Or(names[found.Calls[i].DeviceID], found.Calls[i].DeviceID)})
	}
	if found.Next == (store.Cursor{}) {
		return
	}
	v := url.Values{"tool": {l.Tool}, "source": {l.Source}, "device": {l.Device}, "before": {strconv.FormatInt(found.Next.At.UnixMilli(), 10) + "-" + found.Next.ID}}
	if l.Failed {
		v.Set("failed", "1")
	}
	l.Next, l.Further = callsPath+"?"+v.Encode(), len(found.Calls) == 0
}

// cursorOf reads where a page begins.
func cursorOf(typed string) (c store.Cursor, ok bool) {
	if typed == "" {
		return c, true
	}
	at, id, ok := strings.Cut(typed, "-")
	ms, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || ms < 0 || len(id) > 64 {
		return c, false
	}
	return store.Cursor{At: time.UnixMilli(ms), ID: id}, true
}

// Who says who made a call: a text of the page.
func (c call) Who() string {
	switch c.Caller {
	case "model", "outside", "console":
		return "tools/by-" + c.Caller
	}
	return "tools/by-outside"
}

// Family is the text of the kind of its source.
func (c call) Family() string { return "tools/source-" + familyOf(c.Source) }

// Server is whose tool it was, of other people's servers.
func (c call) Server() string {
	_, name, _ := strings.Cut(c.Source, ":")
	return name
}

// Parts are the parts of its name, between which a line may break.
func (c call) Parts() []string { return partsOf(c.Name) }
