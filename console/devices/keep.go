package devices

import (
	"net/http"
	"strconv"

	"xiaozhi/console/ui"
)

// Kept says for how many days what a device says is kept; 0: for ever.
type Kept struct {
	Text, Sound           *int // nil: as the settings say
	UsualText, UsualSound int  // by the settings
}

// TextField returns the value of the field of talks.
func (k Kept) TextField() string { return written(k.Text) }

// SoundField returns the value of the field of recordings.
func (k Kept) SoundField() string { return written(k.Sound) }

func written(days *int) string {
	if days == nil {
		return ""
	}
	return strconv.Itoa(*days)
}

// Fields of the form by which somebody says for how long a device is kept.
const (
	textField  = "keep-text"
	soundField = "keep-sound"
)

// keep sets for how many days what a device says is kept.
func (p *Page) keep(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	id := p.o.ID(r.PathValue("id"))
	text, sound := p.days(r, f, textField), p.days(r, f, soundField)
	if !f.Valid() {
		p.one(w, r, f)
		return
	}
	err := p.o.Book.Keep(r.Context(), id, text, sound)
	p.door.Did(r, "device.keep", id, err)
	if err != nil {
		if p.site.Explain(w, r, f, textField, err) {
			p.one(w, r, f)
		}
		return
	}
	p.site.Done(w, r, path+"/"+id, "devices/kept")
}

// days reads a number of days, and notes a mistake. nil: none was typed.
func (p *Page) days(r *http.Request, f *ui.Form, field string) *int {
	typed := f.Get(field)
	if typed == "" {
		return nil
	}
	n, err := strconv.Atoi(typed)
	if err != nil || n < 0 || n > p.o.MaxDays {
		f.Wrong(field, p.site.Say(r, "devices/keep-wrong", p.o.MaxDays))
	}
	return &n
}
