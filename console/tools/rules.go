package tools

import (
	"net/http"

	"xiaozhi/console/ui"
)

// rules are the settings of one tool.
type rules struct{}

func (p *Page) rulesOf(row) *rules { return nil }

func (p *Page) setRules(w http.ResponseWriter, r *http.Request, _ *ui.Form, _ single) {
	p.site.NotFound(w, r)
}
