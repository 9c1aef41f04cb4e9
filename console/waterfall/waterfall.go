// Package waterfall draws what a kept turn did when: lanes for the ear, the model, tools, the voice and the wire on one
// time axis whose zero is the moment from which on the user waited, the parts of the wait below them, and the same as
// the rows of a table.
//
// All functions are pure and may be called at the same time. What they return is safe to put into a page: what comes from
// the record is escaped. The SVG has attributes and classes only; waterfall.css gives them their colours.
package waterfall

import (
	"embed"
	"html/template"
	"strconv"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/timeline"
	"xiaozhi/store"
)

// CSS is the style sheet. It uses the custom properties --ink, --muted, --line, --surface and --bad of the page.
//
//go:embed waterfall.css
var CSS string

// Files hold the style sheet, as an asset of the pages.
//
//go:embed waterfall.css
var Files embed.FS

// Part is a part of the wait.
type Part struct {
	ID   string // eou, asr, ttfs, ttfb or added
	Name string
	Time time.Duration
}

// Row is a line of the table.
type Row struct {
	Lane, What string
	At         string // from zero on
	First      string // from At on; "": there was none
	Took       string // from At on; "": a moment
	Note       string
}

// Picture is a turn as it is drawn.
type Picture struct {
	SVG   template.HTML
	Title string // what the picture says, in one sentence
	Fault string // what failed, in words; "": nothing did
	Wait  time.Duration
	Parts []Part // they add up to Wait; empty: nothing was heard
	Rows  []Row
	lang  text.Lang
}

// Draw draws a turn. A record that cannot be read, or has no times, gives a picture without lanes.
func Draw(t *store.Turn, lang text.Lang) *Picture {
	spans, err := timeline.ReadSpans(t.Spans)
	if err != nil {
		spans = timeline.Spans{}
	}
	c := &chart{turn: t, spans: &spans, lang: lang, broken: -1}
	c.collect()
	p := &Picture{Wait: t.E2E.Truncate(time.Millisecond), Parts: Sum(t, lang), lang: lang}
	p.Fault = c.fault()
	p.Title = c.title(p)
	p.Rows = c.rows()
	p.SVG = c.draw(p)
	return p
}

// Sum returns the parts of the wait for the first sound of a turn, which add up to it exactly; nil: nothing was heard.
func Sum(t *store.Turn, lang text.Lang) []Part {
	rest := t.E2E.Truncate(time.Millisecond)
	if rest <= 0 {
		return nil
	}
	parts := []Part{
		{"eou", message.In(lang, "waterfall/eou"), t.EOU}, {"asr", message.In(lang, "waterfall/asr"), t.ASR},
		{"ttfs", message.In(lang, "waterfall/ttfs"), t.TTFS}, {"ttfb", message.In(lang, "waterfall/ttfb"), t.TTFB},
	}
	for i := range parts { // records of earlier versions may hold more than was waited
		parts[i].Time = min(parts[i].Time.Truncate(time.Millisecond), rest)
		rest -= parts[i].Time
	}
	return append(parts, Part{"added", message.In(lang, "waterfall/added"), rest})
}

// Formula is the sum in one line.
func (p *Picture) Formula() string {
	line := ""
	for _, part := range p.Parts {
		if part.Time == 0 {
			continue
		}
		if line != "" {
			line += " + "
		}
		line += part.Name + " " + Show(part.Time)
	}
	if line == "" {
		return message.In(p.lang, "waterfall/silent")
	}
	return line + " = " + Show(p.Wait)
}

// Show writes a time: in milliseconds below ten seconds.
func Show(d time.Duration) string { return millis(d.Milliseconds()) }

func millis(ms int64) string {
	if ms > -10_000 && ms < 10_000 {
		return strconv.FormatInt(ms, 10) + " ms"
	}
	return strconv.FormatFloat(float64(ms)/1000, 'f', 1, 64) + " s"
}
