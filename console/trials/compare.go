package trials

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"xiaozhi/console/agents"
	"xiaozhi/console/ui"
	"xiaozhi/internal/lab"
)

// compare is the page of two agents over the same turns.
type compare struct {
	Device   string
	Devices  []agents.Device
	Agents   []string
	Models   []string
	Estimate *lab.Estimate
	Currency string
	Run      *run
	Here     string
}

func (p *Page) showCompare(w http.ResponseWriter, r *http.Request) {
	run, f := p.asked(r, "compare")
	if f == nil {
		agent := r.URL.Query().Get("agent")
		f = ui.Filled("last", "20", "a-agent", agent)
	}
	p.compare(w, r, r.URL.Query().Get("device"), compare{Run: run}, f)
}

func (p *Page) compare(w http.ResponseWriter, r *http.Request, device string, d compare, f *ui.Form) {
	d.Devices, d.Agents, d.Models, d.Currency = p.o.Stock.Devices(r), p.o.Stock.Names(r, false), p.role("llm").Names, p.o.Stock.Currency()
	if i := slices.IndexFunc(d.Devices, func(one agents.Device) bool { return one.ID == device }); i >= 0 {
		d.Device = device
	} else if len(d.Devices) > 0 {
		d.Device = d.Devices[0].ID
	}
	d.Here = comparePath + "/" + url.PathEscape(d.Device)
	p.site.Show(w, r, "trial-compare", ui.Content{Title: p.site.Say(r, "trials/compare"), Data: d, Form: f})
}

func (p *Page) tryCompare(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	device := r.PathValue("device")
	last, err := strconv.Atoi(f.Get("last"))
	if err != nil {
		last = 0 // which the lab refuses
	}
	order := lab.CompareOrder{
		Device: device, Agent: f.Get("of"), Last: last, Sound: f.Has("sound", "1"), Speak: f.Has("speak", "1"),
		A: lab.Setup{Agent: p.mayUse(r, f, "a-agent"), LLM: f.Get("a-llm")}, B: lab.Setup{Agent: p.mayUse(r, f, "b-agent"), LLM: f.Get("b-llm")},
	}
	if order.A.Agent == order.B.Agent && order.A.LLM == order.B.LLM {
		f.Wrong("b-agent", p.site.Say(r, "trials/same"))
	}
	if !f.Valid() {
		p.compare(w, r, device, compare{}, f)
		return
	}
	turns, err := p.o.Lab.Last(r.Context(), order)
	d := compare{}
	switch {
	case err != nil:
	case f.Get("do") == "estimate":
		var e lab.Estimate
		if e, err = p.o.Lab.Estimate(r.Context(), order, turns); err == nil {
			d.Estimate = &e
		}
	default:
		var run *lab.Run
		run, err = p.o.Lab.Compare(lab.Person(r), order, turns)
		p.o.Stock.Did(r, "device.compare", device, err)
		if err == nil {
			p.begun(w, r, f, run, comparePath, url.Values{"device": {device}})
			return
		}
	}
	if err == nil || p.site.Explain(w, r, f, "last", err) {
		p.compare(w, r, device, d, f)
	}
}
