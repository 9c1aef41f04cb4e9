package waterfall

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/internal/timeline"
)

// canvas takes shapes and texts. Its owner works from above.
type canvas struct {
	strings.Builder
	y float64 // so far
}

// number writes a coordinate.
func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// round keeps a tenth of a pixel.
func round(f float64) float64 { return float64(int(f*10+0.5)) / 10 }

func (v *canvas) rect(class string, x, y, w, h float64) {
	fmt.Fprintf(v, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="2"/>`, class, number(round(x)), number(round(y)), number(round(max(w, 1.5))), number(h))
}

func (v *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(v, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, number(round(x1)), number(round(y1)), number(round(x2)), number(round(y2)))
}

func (v *canvas) path(class, d string) { fmt.Fprintf(v, `<path class="%s" d="%s"/>`, class, d) }

// text writes a text; anchor is start, middle or end.
func (v *canvas) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(v, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`, class, number(round(x)), number(round(y)), anchor, template.HTMLEscapeString(s))
}

// cross is the sign of what failed.
func (v *canvas) cross(x, y float64) {
	v.path("wf-cross", fmt.Sprintf("M%s %sl8 8m0 -8l-8 8", number(round(x-4)), number(round(y-4))))
}

// draw makes the SVG.
func (c *chart) draw(p *Picture) template.HTML {
	v := &canvas{y: 44}
	if len(c.bars) == 0 {
		v.text("wf-event", "start", 0, 14, c.say("waterfall/empty"))
		v.y = 22
		return c.frame(v, p)
	}
	c.fold()
	c.span()
	head := v.y
	for i := range c.bars {
		c.row(v, i)
	}
	foot := v.y
	body := v.String()
	v.Reset()
	c.axis(v, head, foot)
	axis := v.String()
	v.Reset()
	v.y = foot + 8
	if len(p.Parts) > 0 {
		c.sum(v, p)
	}
	c.legend(v)
	below := v.String()
	v.Reset()
	v.WriteString(axis + body + below)
	return c.frame(v, p)
}

// frame puts shapes into an SVG with a name and a description.
func (c *chart) frame(v *canvas, p *Picture) template.HTML {
	var svg strings.Builder
	id := "wf-" + c.turn.ID
	fmt.Fprintf(&svg, `<svg class="wf" xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %s %s" width="%s" height="%s" aria-labelledby="%s-t %s-d">`,
		number(width), number(v.y), number(width), number(v.y), template.HTMLEscapeString(id), template.HTMLEscapeString(id))
	fmt.Fprintf(&svg, `<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, template.HTMLEscapeString(id), template.HTMLEscapeString(p.Title),
		template.HTMLEscapeString(id), template.HTMLEscapeString(join(" ", p.Formula(), p.Fault)))
	svg.WriteString(v.String() + "</svg>\n")
	return template.HTML(svg.String()) //nolint:gosec // all that comes from the record was escaped
}

// fold puts the sentences after the first ones into one row.
func (c *chart) fold() {
	of := slices.IndexFunc(c.bars, func(b bar) bool { return b.lane == laneVoice })
	if of < 0 {
		return
	}
	end := of
	for end < len(c.bars) && c.bars[end].lane == laneVoice {
		end++
	}
	if end-of <= maxSentences {
		return
	}
	rest := bar{lane: laneVoice, title: c.laneName(laneVoice), name: c.say("waterfall/more", end-of-maxSentences+1), first: never}
	for i, b := range c.bars[of+maxSentences-1 : end] {
		if i == 0 {
			rest.from = b.from
		}
		rest.from, rest.to = min(rest.from, b.from), max(rest.to, b.to)
	}
	rest.first, rest.firm, rest.label = rest.from, rest.from, millis(rest.to-rest.from)
	c.bars = slices.Replace(c.bars, of+maxSentences-1, end, rest)
}

// row draws one bar with its names and its label.
func (c *chart) row(v *canvas, i int) {
	b := &c.bars[i]
	if i == 0 || c.bars[i-1].lane != b.lane {
		v.line("wf-rule", 0, v.y, plotEnd, v.y)
		v.y += 4
	}
	middle := v.y + rowHigh/2
	if i == 0 || c.bars[i-1].lane != b.lane || c.bars[i-1].title != b.title {
		v.text("wf-lane", "start", 0, middle+4, fit(b.title, bodySize, nameAt-gap))
	}
	v.text("wf-name", "start", nameAt, middle+4, fit(b.name, bodySize, plotAt-nameAt-2*gap))
	x1, x2 := c.x(b.from), c.x(b.to)
	fmt.Fprintf(v, `<g class="wf-%s wf-is-%s">`, b.lane, b.state)
	c.shape(v, b, x1, x2, middle)
	v.WriteString("</g>")
	c.label(v, b, x1, x2, middle)
	v.y += rowHigh
}

// String names the class of a state.
func (s state) String() string { return []string{"done", "trial", "lost", "failed", "left"}[s] }

// shape draws what a bar is: the wait for its first result, then the rest, a trial hatched.
func (c *chart) shape(v *canvas, b *bar, x1, x2, middle float64) {
	top := middle - barHigh/2
	if b.to <= b.from {
		v.path("wf-dot", fmt.Sprintf("M%s %sl5 6l-5 6l-5 -6z", number(round(x1)), number(round(middle-6))))
	} else {
		at := x2
		if b.first != never {
			at = min(max(c.x(b.first), x1), x2)
		}
		if at > x1 {
			v.rect("wf-wait", x1, top, at-x1, barHigh)
		}
		if at < x2 {
			v.rect("wf-run", at, top, x2-at, barHigh)
		}
		if firm := min(c.x(b.firm), x2); b.firm > b.from && firm > x1+2 {
			v.path("wf-hatch", hatch(x1, firm, top, top+barHigh))
		}
	}
	if b.from < c.begin && b.to > b.from {
		v.path("wf-early", fmt.Sprintf("M%s %sl-6 7l6 7", number(round(x1-2)), number(round(middle-7))))
	}
	for _, at := range b.dots {
		v.path("wf-dry", fmt.Sprintf("M%s %sl-3.5 -6h7z", number(round(c.x(at))), number(round(middle))))
	}
	if b.state == failed {
		v.cross(x2, middle)
	}
}

// hatch returns slanting lines within a box.
func hatch(x1, x2, y1, y2 float64) string {
	const step = 7
	var d strings.Builder
	for x := x1 - (y2 - y1) + step; x < x2; x += step {
		fromX, fromY, toX, toY := x, y2, x+(y2-y1), y1
		if fromX < x1 {
			fromX, fromY = x1, y2-(x1-x)
		}
		if toX > x2 {
			toX, toY = x2, y1+(toX-x2)
		}
		fmt.Fprintf(&d, "M%s %sL%s %s", number(round(fromX)), number(round(fromY)), number(round(toX)), number(round(toY)))
	}
	return d.String()
}

// label writes a bar's label where there is room: right of it, left of it, or on it.
func (c *chart) label(v *canvas, b *bar, x1, x2, middle float64) {
	if b.label == "" {
		return
	}
	near := gap + 2
	if b.to <= b.from || b.state == failed {
		near = gap + 6
	}
	w := textWidth(b.label, bodySize)
	y := middle + 4
	switch right, left := plotEnd-x2-near, x1-near-plotAt; {
	case w <= right:
		v.text("wf-label", "start", x2+near, y, b.label)
	case w <= left:
		v.text("wf-label", "end", x1-near, y, b.label)
	case w <= x2-x1-2*gap:
		class := "wf-label"
		if b.first != never && c.x(b.first) <= x2-gap-w && b.state == done {
			class = "wf-inside"
		}
		v.text(class, "end", x2-gap, y, b.label)
	case right >= left:
		v.text("wf-label", "start", x2+near, y, fit(b.label, bodySize, right))
	default:
		v.text("wf-label", "end", x1-near, y, fit(b.label, bodySize, left))
	}
}

// axis draws the numbers, the two moments between which the user waits, and where the axis becomes narrower.
func (c *chart) axis(v *canvas, head, foot float64) {
	frame, heard := c.mark(timeline.MarkFrame)
	if zero := c.x(0); heard {
		v.rect("wf-waited", zero, head, c.x(frame)-zero, foot-head)
	}
	for _, t := range c.ticks() {
		v.line("wf-grid", t.at, head-6, t.at, foot)
		if t.at+textWidth(t.label, bodySize)/2 > width {
			v.text("wf-tick", "end", width, head-10, t.label)
			continue
		}
		v.text("wf-tick", "middle", t.at, head-10, t.label)
	}
	if c.broken >= 0 {
		x := c.broken
		v.path("wf-break", fmt.Sprintf("M%s %sl-4 4l8 6l-4 4V%s", number(round(x)), number(head-14), number(round(foot))))
	}
	zero := c.x(0)
	v.line("wf-zero", zero, head-6, zero, foot)
	v.text("wf-event", "end", zero+4, 14, c.say(c.zeroName()))
	if !heard {
		return
	}
	x := c.x(frame)
	v.line("wf-heard", x, head-6, x, foot)
	words := c.say("waterfall/heard", millis(frame))
	if w := textWidth(words, bodySize+1); x+w > plotEnd {
		v.text("wf-event wf-strong", "end", x, 14, words)
	} else {
		v.text("wf-event wf-strong", "start", x, 14, words)
	}
}

func (c *chart) zeroName() string {
	switch c.spans.End {
	case timeline.EndStop:
		return "waterfall/zero-stop"
	case timeline.EndTyped:
		return "waterfall/zero-typed"
	case timeline.EndVoice:
		return "waterfall/zero-voice"
	case timeline.EndServer:
	}
	return "waterfall/zero-server"
}

// sum draws the parts of the wait, in a row as long as the wait is on the axis, and names them.
func (c *chart) sum(v *canvas, p *Picture) {
	v.line("wf-rule wf-strong", 0, v.y, plotEnd, v.y)
	v.y += 6
	from, to := c.x(0), c.x(p.Wait.Milliseconds())
	v.text("wf-lane", "start", 0, v.y+14, c.say("waterfall/waited"))
	v.text("wf-total", "start", nameAt, v.y+14, Show(p.Wait))
	x := from
	for i, part := range p.Parts {
		w := (to - from) * float64(part.Time) / float64(p.Wait)
		if w > 0 {
			v.rect("wf-part wf-"+part.ID, x, v.y, w, 18)
		}
		if letter := letters[i]; w >= 14 {
			v.text("wf-letter wf-on-"+part.ID, "middle", x+w/2, v.y+13, letter)
		}
		x += w
	}
	v.y += 26
	at := 0.0
	sign := ""
	for i, part := range p.Parts {
		if part.Time == 0 {
			continue
		}
		words := part.Name + " " + Show(part.Time)
		need := textWidth(words, bodySize) + 48
		if at+need > width {
			at = 0
			v.y += 22
		}
		if sign != "" {
			v.text("wf-plus", "start", at, v.y+13, sign)
			at += 12
		}
		sign = "+"
		v.rect("wf-part wf-"+part.ID, at, v.y+1, 16, 16)
		v.text("wf-letter wf-on-"+part.ID, "middle", at+8, v.y+13, letters[i])
		v.text("wf-sum", "start", at+22, v.y+13, words)
		at += need - 4
	}
	total := "= " + Show(p.Wait)
	if at+textWidth(total, bodySize+1) > width {
		at = 0
		v.y += 22
	}
	v.text("wf-total", "start", at, v.y+13, total)
	v.y += 28
}

// letters name the parts of the wait.
var letters = [...]string{"A", "B", "C", "D", "E"}

// legend explains the shapes that are drawn.
func (c *chart) legend(v *canvas) {
	v.line("wf-rule", 0, v.y, plotEnd, v.y)
	v.y += 6
	at := 0.0
	item := func(used bool, words string, shape func(x, middle float64)) {
		if !used {
			return
		}
		need := 34 + textWidth(words, bodySize-1) + 18
		if at+need > width && at > 0 {
			at = 0
			v.y += 20
		}
		shape(at, v.y+9)
		v.text("wf-key", "start", at+34, v.y+13, words)
		at += need
	}
	has := func(f func(b bar) bool) bool { return slices.ContainsFunc(c.bars, f) }
	box := func(class, state string) func(x, middle float64) {
		return func(x, middle float64) {
			fmt.Fprintf(v, `<g class="wf-legend wf-is-%s">`, state)
			v.rect(class, x, middle-6, 26, 12)
			v.WriteString("</g>")
		}
	}
	long := func(b bar) bool { return b.to > b.from }
	item(has(func(b bar) bool { return long(b) && b.first != b.from && b.lane != laneSpeech }), c.say("waterfall/key-wait"), box("wf-wait", "done"))
	item(has(func(b bar) bool { return long(b) && b.first != never && b.first < b.to }), c.say("waterfall/key-run"), box("wf-run", "done"))
	item(has(func(b bar) bool { return b.firm > b.from && long(b) }), c.say("waterfall/key-trial"), func(x, middle float64) {
		v.WriteString(`<g class="wf-legend wf-is-trial">`)
		v.rect("wf-wait", x, middle-6, 26, 12)
		v.path("wf-hatch", hatch(x, x+26, middle-6, middle+6))
		v.WriteString("</g>")
	})
	item(has(func(b bar) bool { return b.state == lost || b.state == left }), c.say("waterfall/key-lost"), box("wf-run", "lost"))
	item(has(func(b bar) bool { return b.state == failed }), c.say("waterfall/key-failed"), func(x, middle float64) { v.cross(x+13, middle) })
	item(has(func(b bar) bool { return !long(b) }), c.say("waterfall/key-moment"), func(x, middle float64) {
		v.path("wf-dot wf-legend", fmt.Sprintf("M%s %sl5 6l-5 6l-5 -6z", number(x+13), number(middle-6)))
	})
	item(has(func(b bar) bool { return len(b.dots) > 0 && b.lane == laneWire }), c.say("waterfall/key-dry"), func(x, middle float64) {
		v.path("wf-dry wf-legend", fmt.Sprintf("M%s %sl-3.5 -6h7z", number(x+13), number(middle+3)))
	})
	item(has(func(b bar) bool { return b.from < c.begin && long(b) }), c.say("waterfall/key-early"), func(x, middle float64) {
		v.path("wf-early wf-legend", fmt.Sprintf("M%s %sl-6 7l6 7", number(x+16), number(middle-7)))
	})
	item(c.broken >= 0, c.say("waterfall/key-break"), func(x, middle float64) {
		v.path("wf-break wf-legend", fmt.Sprintf("M%s %sv2l-4 3l8 5l-4 3v2", number(x+13), number(middle-8)))
	})
	v.y += 22
}
