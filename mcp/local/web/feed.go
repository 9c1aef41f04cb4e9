package web

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Item is an entry of a feed, as plain text.
type Item struct {
	Title string
	About string // what it is about, without markup
	Link  string
	At    time.Time // when it was published; zero: that cannot be read
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
	Content     string `xml:"content"`
	Encoded     string `xml:"encoded"` // content:encoded
	Links       []struct {
		Href string `xml:"href,attr"`
		Text string `xml:",chardata"`
	} `xml:"link"`
	PubDate   string `xml:"pubDate"`
	Date      string `xml:"date"` // dc:date
	Updated   string `xml:"updated"`
	Published string `xml:"published"`
}

// Feed reads RSS 0.9 to 2.0 and Atom: the first items, each with so many bytes of what it is about at most. contentType may be
// empty.
func Feed(body []byte, contentType string, limit, most int) ([]Item, error) {
	body, err := plainText(body, contentType)
	if err != nil {
		return nil, err
	}
	return feed(bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff"))), limit, most)
}

func feed(body []byte, limit, most int) ([]Item, error) {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	decoder.CharsetReader = func(charset string, r io.Reader) (io.Reader, error) {
		known, err := decoderOf(charset)
		if err != nil || known == nil || utf8.Valid(body) { // what is UTF-8 already stays
			return r, err
		}
		return known.NewDecoder().Reader(r), nil
	}
	decoder.Strict = false
	decoder.Entity = xml.HTMLEntity
	var f feedXML
	err := decoder.Decode(&f)
	if strings.EqualFold(f.XMLName.Local, "html") || bytes.HasPrefix(bytes.ToLower(body[:min(len(body), 14)]), []byte("<!doctype html")) {
		return nil, errHTML
	}
	if err != nil {
		return nil, errFeed
	}
	var items []Item
	for _, x := range append(append(f.Channel.Items, f.Items...), f.Entries...) {
		item := x.item(most)
		if item.Title == "" && item.About == "" {
			continue
		}
		if items = append(items, item); len(items) == limit {
			break
		}
	}
	if len(items) == 0 {
		return nil, errFeed
	}
	return items, nil
}

// item is an entry as plain text: of what it is about the longest that it says.
func (x itemXML) item(most int) Item {
	item := Item{Title: Cut(Bare(x.Title), 300), About: Bare(x.Description + x.Summary)}
	for _, longer := range []string{x.Content, x.Encoded} {
		if text := Bare(longer); len(item.About) < min(len(text), most) {
			item.About = text
		}
	}
	item.About = Cut(item.About, most)
	for _, l := range x.Links {
		if link := strings.TrimSpace(l.Href + l.Text); item.Link == "" && (strings.HasPrefix(link, "http://") || strings.HasPrefix(link, "https://")) {
			item.Link = Cut(link, 500)
		}
	}
	for _, at := range []string{x.PubDate, x.Published, x.Updated, x.Date} {
		for _, layout := range []string{time.RFC1123Z, time.RFC1123, "Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 MST", time.RFC3339, time.DateTime} {
			if t, err := time.Parse(layout, strings.TrimSpace(at)); err == nil && item.At.IsZero() {
				item.At = t
			}
		}
	}
	return item
}

// list makes a text of the first items of a feed: title, and the beginning of what it is about.
func list(body []byte, limit int) (string, error) {
	items, err := feed(body, limit, 300)
	if err != nil {
		return "", err
	}
	lines := make([]string, len(items))
	for i, item := range items {
		line := item.Title
		if item.About != "" && item.About != item.Title {
			line = strings.TrimPrefix(item.Title+": "+item.About, ": ")
		}
		lines[i] = fmt.Sprintf("%d. %s", i+1, line)
	}
	return strings.Join(lines, "\n"), nil
}
