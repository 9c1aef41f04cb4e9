package devices

import (
	"context"
	"net/http"
	"slices"

	"xiaozhi/internal/access"
)

// Heir can have a device.
type Heir struct {
	ID    string
	Name  string // of the account
	Shown string
}

// heirs finds whose a device is, "": nobody's, and who else can have it.
func (p *Page) heirs(ctx context.Context, owner string) (whose string, others []Heir, err error) {
	all, err := p.o.Book.Heirs(ctx)
	if i := slices.IndexFunc(all, func(h Heir) bool { return h.ID == owner }); i >= 0 {
		whose = all[i].Shown
		all = slices.Delete(all, i, i+1)
	}
	return whose, all, err
}

// give makes a device another person's.
func (p *Page) give(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	id, to := p.o.ID(r.PathValue("id")), f.Get("owner")
	if to == "" {
		f.Wrong("owner", p.site.Say(r, "devices/owner-choose"))
		p.one(w, r, f)
		return
	}
	if err := p.o.Book.Give(r.Context(), access.PersonOf(r), id, to); err != nil {
		if p.site.Explain(w, r, f, "owner", err) {
			p.one(w, r, f)
		}
		return
	}
	p.site.Done(w, r, path+"/"+id, "devices/given", to)
}
