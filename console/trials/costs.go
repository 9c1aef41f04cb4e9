package trials

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/console/agents"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/lab"
	"xiaozhi/internal/text"
	"xiaozhi/store"
)

// costs is the page of what turns have cost.
type costs struct {
	lab.Costs

	Parts    []part
	Devices  []agents.Device
	Device   string
	First    string // day, as it is typed
	Last     string
	Wrong    string
	Owner    bool
	Currency string
}

// part is one way to divide the sum.
type part struct {
	ui.Rows[costRow]

	Key string // day, device, agent or service
}

// costRow is a line of it.
type costRow struct {
	lab.CostSum

	Name  string
	Place int // in its part
	Share int // of the largest of the part, in percent
}

func (p *Page) showCosts(w http.ResponseWriter, r *http.Request) {
	v, zone, who := r.URL.Query(), p.o.Stock.Zone(), access.PersonOf(r)
	now := time.Now().In(zone)
	d := costs{
		First: cmp.Or(v.Get("from"), now.AddDate(0, 0, -29).Format(time.DateOnly)), Last: cmp.Or(v.Get("to"), now.Format(time.DateOnly)),
		Device: v.Get("device"), Devices: p.o.Stock.Devices(r), Owner: who.Is(account.Owner), Currency: p.o.Stock.Currency(),
	}
	names := map[string]string{}
	for _, one := range d.Devices {
		names[one.ID] = cmp.Or(one.Name, one.ID)
	}
	from, wrong := time.ParseInLocation(time.DateOnly, d.First, zone)
	to, wrongToo := time.ParseInLocation(time.DateOnly, d.Last, zone)
	if wrong != nil || wrongToo != nil {
		d.Wrong = p.site.Say(r, "trials/no-day")
	} else {
		q := store.CostQuery{From: from, To: to.AddDate(0, 0, 1), DeviceID: d.Device}
		if !d.Owner {
			q.OwnerID = lab.Person(r)
		}
		var err error
		if d.Costs, err = p.o.Lab.Costs(r.Context(), q); err != nil {
			if d.Wrong = text.Sentence(p.site.Reason(r, err)); d.Wrong == "" {
				p.site.Refused(w, r, err)
				return
			}
		}
	}
	for _, one := range []struct {
		key string
		all []lab.CostSum
	}{{"day", d.Days}, {"device", d.Costs.Devices}, {"agent", d.Agents}, {"service", d.Services}} {
		var rows []costRow
		most := int64(1)
		for _, s := range one.all {
			most = max(most, s.Micros)
		}
		for _, s := range one.all {
			name := s.Key
			if one.key == "device" {
				name = cmp.Or(names[s.Key], s.Key)
			}
			if one.key == "agent" && name == "" {
				name = p.site.Say(r, "trials/unknown")
			}
			rows = append(rows, costRow{s, name, len(rows), int(s.Micros * 100 / most)})
		}
		shown, err := ui.List[costRow]{
			Path: costsPath, Name: one.key,
			Key:  func(c costRow) string { return fmt.Sprintf("%06d", c.Place) },
			Text: func(c costRow) string { return c.Name },
		}.Page(r, rows, nil)
		if err != nil {
			d.Wrong = text.Sentence(p.site.Reason(r, err))
		}
		d.Parts = append(d.Parts, part{shown, one.key})
	}
	c := ui.Content{Title: p.site.Say(r, "trials/costs"), Data: d}
	if d.Wrong != "" {
		p.site.Unclear(w, r, "costs", c)
		return
	}
	p.site.Show(w, r, "costs", c)
}

// Money writes millionths of a currency.
func (costs) Money(micros int64, currency string) string { return money(micros, currency) }

// Money writes what something has cost.
func (r *row) Money(c lab.Cost) string { return cost(c, r.Currency) }

// Money writes what a side would cost.
func (d compare) Money(c lab.Cost) string { return cost(c, d.Currency) }

// Money writes what something has cost.
func (r *run) Money(c lab.Cost) string {
	currency := ""
	if len(r.Rows) > 0 {
		currency = r.Rows[0].Currency
	}
	return cost(c, currency)
}

func cost(c lab.Cost, currency string) string {
	if c.Micros == 0 && c.Missing != "" {
		return "? (" + c.Missing + ")"
	}
	if c.Missing != "" {
		return money(c.Micros, currency) + " + ? (" + c.Missing + ")"
	}
	return money(c.Micros, currency)
}

// money has as many digits as tell something.
func money(micros int64, currency string) string {
	if micros == 0 {
		return strings.TrimSpace("0 " + currency)
	}
	digits := 2
	for limit := int64(1_000_000); digits < 6 && micros < limit; limit /= 10 {
		digits++
	}
	s := strconv.FormatFloat(float64(micros)/1e6, 'f', digits, 64)
	return strings.TrimSpace(s + " " + currency)
}

// Signed lists the tool calls of a result by name.
func (r *row) Signed(calls []lab.CallRow) string {
	var names []string
	for _, c := range calls {
		names = append(names, c.Name)
	}
	return strings.Join(slices.Compact(names), ", ")
}
