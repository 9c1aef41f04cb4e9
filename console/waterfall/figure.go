package waterfall

import (
	"fmt"
	"html/template"
	"strings"

	"xiaozhi/internal/text/message"
)

// Figure is the whole: what failed in words, the picture in a box of its own that scrolls sideways, the sum in one line, and
// the table, closed.
func (p *Picture) Figure() template.HTML {
	var b strings.Builder
	b.WriteString(`<figure class="wf-box">`)
	if p.Fault != "" {
		fmt.Fprintf(&b, `<p class="wf-fault">%s</p>`, template.HTMLEscapeString(p.Fault))
	}
	fmt.Fprintf(&b, `<div class="wf-scroll" tabindex="0" role="region" aria-label="%s">%s</div>`, template.HTMLEscapeString(message.In(p.lang, "waterfall/name")), p.SVG)
	fmt.Fprintf(&b, `<figcaption class="wf-sums">%s</figcaption>`, template.HTMLEscapeString(p.Formula()))
	b.WriteString(string(p.Table()) + "</figure>\n")
	return template.HTML(b.String()) //nolint:gosec // all that comes from the record was escaped
}

// Table is the same as the picture, as a table that can be opened.
func (p *Picture) Table() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<details class="wf-rows"><summary>%s</summary><table><thead><tr>`, template.HTMLEscapeString(message.In(p.lang, "waterfall/table")))
	for _, id := range []string{"waterfall/col-lane", "waterfall/col-what", "waterfall/col-at", "waterfall/col-first", "waterfall/col-took", "waterfall/col-note"} {
		fmt.Fprintf(&b, `<th scope="col">%s</th>`, template.HTMLEscapeString(message.In(p.lang, id)))
	}
	b.WriteString("</tr></thead><tbody>")
	for _, r := range p.Rows {
		b.WriteString("<tr>")
		for i, cell := range []string{r.Lane, r.What, r.At, r.First, r.Took, r.Note} {
			class := ""
			if 2 <= i && i <= 4 {
				class = ` class="wf-number"`
			}
			fmt.Fprintf(&b, "<td%s>%s</td>", class, template.HTMLEscapeString(cell))
		}
		b.WriteString("</tr>")
	}
	b.WriteString("</tbody></table></details>")
	return template.HTML(b.String()) //nolint:gosec // all that comes from the record was escaped
}
