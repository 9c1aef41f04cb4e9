package people

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/store"
)

const exportPath = ui.Prefix + "log/export"

// exportTime limits the time that a browser may take over a page of rows: there is one export at a time.
const exportTime = time.Minute

// exported is an act as it is taken out.
type exported struct {
	At     time.Time `json:"at"`
	Who    string    `json:"who"`
	Via    string    `json:"via"`
	Remote string    `json:"remote"`
	Act    string    `json:"act"`
	Object string    `json:"object"`
	Detail string    `json:"detail"`
	OK     bool      `json:"ok"`
}

// export gives all acts that a search finds, the newest first. They are read and sent a page at a time.
func (p *Page) export(w http.ResponseWriter, r *http.Request) {
	form, err := access.Choice(r, "form", "csv", "jsonl")
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	page := store.Page{Limit: store.MaxPage}
	acts, err := p.accounts.Audit(r.Context(), page)
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	search := strings.TrimSpace(r.URL.Query().Get("q"))
	p.accounts.Did(r.Context(), p.actor(r), "audit.export", search, nil)
	write, kind, end := rowsTo(w), "text/csv; charset=utf-8", "csv"
	if form == "jsonl" {
		write, kind, end = linesTo(w), "application/jsonl; charset=utf-8", form
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="xiaozhi-audit-`+p.now().UTC().Format("20060102T150405Z")+"."+end+`"`)
	h.Set("Cache-Control", "no-store")
	search = strings.ToLower(search)
	text, control := p.searched(r), http.NewResponseController(w)
	for {
		_ = control.SetWriteDeadline(p.now().Add(exportTime)) // a writer of tests has none
		var found []store.Act
		for _, a := range acts {
			if strings.Contains(strings.ToLower(text(a)), search) {
				found = append(found, a)
			}
		}
		if write(found) != nil {
			return // the browser is gone
		}
		if len(acts) < page.Limit {
			return
		}
		last := acts[len(acts)-1]
		page.Before = store.Cursor{At: last.At, ID: last.ID}
		if acts, err = p.accounts.Audit(r.Context(), page); err != nil {
			panic(http.ErrAbortHandler) // the browser says that the file is not whole
		}
	}
}

// linesTo writes acts as JSON, a line each.
func linesTo(w io.Writer) func([]store.Act) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return func(acts []store.Act) error {
		for _, a := range acts {
			if err := out.Encode(exported{a.At.UTC(), a.Who, a.Via, a.Remote, a.Act, a.Object, a.Detail, a.OK}); err != nil {
				return err
			}
		}
		return nil
	}
}

// byteOrder begins a file of which spreadsheets would else not know that it is UTF-8.
const byteOrder = "\ufeff"

// rowsTo writes acts as rows for a spreadsheet, below a row with the names of the columns.
func rowsTo(w io.Writer) func([]store.Act) error {
	out := csv.NewWriter(w)
	head := []string{byteOrder + "at", "who", "via", "remote", "act", "object", "detail", "ok"}
	return func(acts []store.Act) error {
		if head != nil {
			_ = out.Write(head) // Error has it
			head = nil
		}
		for _, a := range acts {
			row := []string{a.At.UTC().Format(time.RFC3339Nano), a.Who, a.Via, a.Remote, a.Act, a.Object, a.Detail, strconv.FormatBool(a.OK)}
			for i := range row {
				row[i] = cell(row[i])
			}
			_ = out.Write(row)
		}
		out.Flush()
		return out.Error()
	}
}

// formula matches the places at which a spreadsheet would begin to calculate: at the beginning of a cell, or behind what may divide cells
// where people live.
var formula = regexp.MustCompile(`(^|[,;|\t\r\n])([\s"']*[=+\-@＝＋－＠])`)

// cell is a text that no spreadsheet takes for a formula, whoever typed it.
func cell(text string) string { return formula.ReplaceAllString(text, "$1'$2") }
