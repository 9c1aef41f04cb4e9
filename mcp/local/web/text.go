package web

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"

	"xiaozhi/internal/text"
)

var (
	errHTML   = errors.New("the page is meant for people: it is neither JSON nor a feed nor plain text")
	errFeed   = errors.New("the page is no feed that can be read")
	errResult = errors.New("the page does not hold what is configured as its result")
)

// maxJSONDepth is how deep nested JSON may be.
const maxJSONDepth = 64

// text makes the text to tell of a page: of JSON what the result names, of a
// feed its items, plain text as it is.
func (p *Page) text(body []byte) (string, error) {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	if len(body) == 0 {
		return "", errors.New("the page is empty")
	}
	switch body[0] {
	case '{', '[':
		return p.json(body)
	case '<':
		return feed(body, p.options.Items)
	}
	return strings.ToValidUTF8(string(body), "\uFFFD"), nil
}

func (p *Page) json(body []byte) (string, error) {
	if deep(body) {
		return "", errors.New("the page is no JSON that can be read")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return "", errors.New("the page is no JSON that can be read")
	}
	if p.options.Result == "" {
		return word(v), nil
	}
	found := false
	text := paths().ReplaceAllStringFunc(p.options.Result, func(path string) string {
		text := strings.Join(pick(v, strings.Split(strings.Trim(path, "{}"), ".")), "; ")
		found = found || text != ""
		return text
	})
	if !found {
		return "", errResult
	}
	return text, nil
}

// deep reports whether JSON is nested too deep, by counting brackets outside of
// texts.
func deep(body []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			if depth++; depth > maxJSONDepth {
				return true
			}
		case !quoted && (c == '}' || c == ']'):
			depth--
		}
	}
	return false
}

// paths are the places in a result: {current.temp}, {days.0.max}, {days.*.max}.
func paths() *regexp.Regexp { return regexp.MustCompile(`\{[^{}\s]+\}`) }

// checkTemplate refuses a result that would tell nothing of the page.
func checkTemplate(result string) error {
	if result != "" && !paths().MatchString(result) {
		return fmt.Errorf("the result %q holds no {path.of.json}", cut(result, 60))
	}
	return nil
}

// pick finds the values at a path: names of members, places in lists, * for all.
func pick(v any, path []string) []string {
	if len(path) == 0 {
		return []string{word(v)}
	}
	switch v := v.(type) {
	case map[string]any:
		if member, ok := v[path[0]]; ok && member != nil {
			return pick(member, path[1:])
		}
	case []any:
		if path[0] == "*" {
			var all []string
			for _, item := range v {
				all = append(all, pick(item, path[1:])...)
			}
			return all
		}
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(v) {
			return pick(v[i], path[1:])
		}
	}
	return nil
}

// word is a value as text.
func word(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	data, err := json.Marshal(v)
	if err != nil { // it came from JSON
		return ""
	}
	return string(data)
}

// feedXML is RSS 2.0, RSS 1.0 (items beside the channel) and Atom in one.
type feedXML struct {
	XMLName xml.Name
	Channel struct {
		Items []itemXML `xml:"item"`
	} `xml:"channel"`
	Items   []itemXML `xml:"item"`
	Entries []itemXML `xml:"entry"`
}

type itemXML struct {
	Title       string `xml:"title"`
	Description string `xml:"description"`
	Summary     string `xml:"summary"`
}

// feed lists the first items: title, and the beginning of what it is about.
func feed(body []byte, limit int) (string, error) {
	decoder := xmlReader(body)
	decoder.Strict = false
	decoder.Entity = xml.HTMLEntity
	var f feedXML
	err := decoder.Decode(&f)
	if strings.EqualFold(f.XMLName.Local, "html") || bytes.HasPrefix(bytes.ToLower(body[:min(len(body), 14)]), []byte("<!doctype html")) {
		return "", errHTML
	}
	if err != nil {
		return "", errFeed
	}
	items := append(append(f.Channel.Items, f.Items...), f.Entries...)
	var lines []string
	for _, item := range items {
		title, about := bare(item.Title), bare(item.Description+item.Summary)
		if title == "" && about == "" {
			continue
		}
		line := title
		if about != "" && about != title {
			line = strings.TrimPrefix(title+": "+cut(about, 300), ": ")
		}
		if lines = append(lines, fmt.Sprintf("%d. %s", len(lines)+1, line)); len(lines) == limit {
			break
		}
	}
	if len(lines) == 0 {
		return "", errFeed
	}
	return strings.Join(lines, "\n"), nil
}

// bare is text without markup and runs of space.
func bare(text string) string {
	text = regexp.MustCompile(`(?s)<[^>]*>`).ReplaceAllString(text, " ")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

// cut shortens s to limit bytes, with the ellipsis.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return text.Cut(s, limit-len("…"))
}
