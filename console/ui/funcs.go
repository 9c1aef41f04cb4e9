package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// funcs returns the functions that templates of a language can call.
func (s *Site) funcs(lang text.Lang, words lexicon) template.FuncMap {
	return template.FuncMap{
		"t":       words.say,
		"has":     func(id string) bool { return words[id] != "" },
		"asset":   s.asset,
		"icon":    icon,
		"version": func() string { return s.o.Version },
		"dict":    dict,
		"list":    func(all ...any) []any { return all },
		"ms":      func(d any) string { return duration(words, d) },
		"size":    size,
		"time":    func(at time.Time) template.HTML { return s.timeTag(words, at) },
		"clock":   func(at time.Time) string { return at.In(s.o.Zone()).Format("15:04:05") },
		"day":     func(at time.Time) string { return at.In(s.o.Zone()).Format(time.DateOnly) },
		"json":    func(v any) (string, error) { b, err := json.MarshalIndent(v, "", "  "); return string(b), err },
		"join":    strings.Join,
		"lang":    func() text.Lang { return lang },
		"gap":     func() string { return gap(lang) },
	}
}

// gap returns what stands between two sentences: Chinese has its space within the full stop.
func gap(lang text.Lang) string {
	if lang == text.Chinese {
		return ""
	}
	return " "
}

// dict makes a map of pairs of key and value, for templates with several arguments.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict takes pairs")
	}
	m := map[string]any{"Type": "text", "Hint": "", "Required": false, "Auto": "off", "Value": nil, "Rows": 0, "Off": "", "Path": "", "Action": "", "List": ""}
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is no key", pairs[i])
		}
		m[key] = pairs[i+1]
	}
	return m, nil
}

// timeTag writes a time as people say it: how long ago within a day, else the date; all of it shows on hover.
func (s *Site) timeTag(words lexicon, at time.Time) template.HTML {
	if at.IsZero() {
		return template.HTML(template.HTMLEscapeString(words.say("frame/never")))
	}
	at = at.In(s.o.Zone())
	//nolint:gosec // all parts are escaped here
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`,
		at.Format(time.RFC3339), template.HTMLEscapeString(at.Format("2006-01-02 15:04:05 -07:00")), template.HTMLEscapeString(ago(words, s.o.Now().In(s.o.Zone()), at))))
}

// ago says when something was, or will be.
func ago(words lexicon, now, at time.Time) string {
	d := now.Sub(at)
	switch {
	case d < -24*time.Hour || d >= 24*time.Hour && at.Year() != now.Year():
		return at.Format(time.DateOnly)
	case d < -time.Minute:
		return at.Format("15:04")
	case d < 10*time.Second:
		return words.say("frame/now")
	case d < time.Minute:
		return words.say("frame/seconds-ago", int(d.Seconds()))
	case d < time.Hour:
		return words.say("frame/minutes-ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return words.say("frame/hours-ago", int(d.Hours()))
	}
	return at.Format("01-02 15:04")
}

// duration writes a length of time: in milliseconds below ten seconds.
func duration(words lexicon, v any) string {
	var d time.Duration
	switch v := v.(type) {
	case time.Duration:
		d = v
	case int:
		d = time.Duration(v) * time.Millisecond
	case int64:
		d = time.Duration(v) * time.Millisecond
	default:
		return fmt.Sprint(v)
	}
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Hour:
		return words.say("frame/minutes", int(d.Minutes()))
	case d < 48*time.Hour:
		return words.say("frame/hours", int(d.Hours()))
	}
	return words.say("frame/days", int(d.Hours()/24))
}

// size writes a number of bytes.
func size(v any) string {
	var n float64
	switch v := v.(type) {
	case int:
		n = float64(v)
	case int64:
		n = float64(v)
	case uint64:
		n = float64(v)
	}
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if n < 1024 || unit == "GiB" {
			if n < 10 && unit != "B" {
				return fmt.Sprintf("%.1f %s", n, unit)
			}
			return fmt.Sprintf("%.0f %s", n, unit)
		}
		n /= 1024
	}
	return ""
}

// Reason says in the language of who asks why something was not done, or "" where that is not for them.
func (s *Site) Reason(r *http.Request, err error) string {
	if reason, ok := errors.AsType[account.ReasonError](err); ok {
		return message.In(Lang(r), string(reason))
	}
	if often, ok := errors.AsType[*account.TooOftenError](err); ok {
		return s.Say(r, "frame/too-often", int(often.Wait.Seconds())+1)
	}
	if s.o.Explain != nil {
		return s.o.Explain(Lang(r), err)
	}
	return ""
}

// Explain notes in the form why something was not done. Not ok: the reason is not for who asks, and it has been answered.
func (s *Site) Explain(w http.ResponseWriter, r *http.Request, f *Form, field string, err error) (ok bool) {
	why := s.Reason(r, err)
	if why == "" {
		s.broken(w, r, err)
		return false
	}
	f.Wrong(field, why)
	return true
}
