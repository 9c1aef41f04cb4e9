package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"mime"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"

	"xiaozhi/internal/text"
	"xiaozhi/mcp/rawjson"
)

var (
	errHTML   = errors.New("the page is meant for people: it is neither JSON nor a feed nor plain text")
	errFeed   = errors.New("the page is no feed that can be read")
	errResult = errors.New("the page does not hold what is configured as its result")
	errBinary = errors.New("the page is no text") // but a picture, an archive or the like
)

// maxJSONDepth is how deep nested JSON may be.
const maxJSONDepth = 64

// plainText is the body in UTF-8. The charset is that of the Content-Type; an
// XML page may name its own in its first line. One that is not known is an error.
func plainText(body []byte, contentType string) ([]byte, error) {
	_, parameters, err := mime.ParseMediaType(contentType)
	if name := parameters["charset"]; err == nil && name != "" {
		known, err := decoderOf(name)
		if err != nil {
			return nil, err
		}
		if known != nil && !utf8.Valid(body) { // some say gbk and send UTF-8
			if body, err = known.NewDecoder().Bytes(body); err != nil {
				return nil, errBinary
			}
		}
	}
	if bytes.IndexByte(body, 0) >= 0 {
		return nil, errBinary
	}
	return body, nil
}

// decoderOf is the encoding of a charset, nil for UTF-8.
func decoderOf(charset string) (encoding.Encoding, error) {
	switch strings.ToLower(strings.TrimSpace(charset)) {
	case "utf-8", "utf8", "us-ascii", "ascii":
		return nil, nil
	case "gbk", "gb2312", "gb18030", "gb_2312-80", "x-gbk":
		return simplifiedchinese.GB18030, nil
	case "iso-8859-1", "latin1", "windows-1252":
		return charmap.Windows1252, nil
	}
	return nil, fmt.Errorf("the page is in %q, which is not known", Cut(charset, 40))
}

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
		return list(body, p.options.Items)
	}
	return strings.ToValidUTF8(string(body), "\uFFFD"), nil
}

func (p *Page) json(body []byte) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var v any
	if rawjson.Depth(body) > maxJSONDepth || decoder.Decode(&v) != nil {
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

// paths are the places in a result: {current.temp}, {days.0.max}, {days.*.max}.
func paths() *regexp.Regexp { return regexp.MustCompile(`\{[^{}\s]+\}`) }

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

// Bare is text without markup and runs of space.
func Bare(text string) string {
	text = within().ReplaceAllString(text, "")
	text = tag().ReplaceAllString(text, " ")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

var (
	tag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)<[^>]*>`) })
	// within are the tags that stand in a word or a sentence.
	within = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?is)</?(?:a|abbr|b|code|em|font|i|mark|s|small|span|strong|sub|sup|u)(?:\s[^>]*)?>`)
	})
)

// Cut shortens s to limit bytes, with the ellipsis.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return text.Cut(s, limit-len("…"))
}
