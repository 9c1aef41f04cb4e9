package reader

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/htmlindex"
)

// readHTML reads a page: what it tells, without what leads to other pages.
func readHTML(data []byte) (*slicer, error) {
	words, err := decodeHTML(data)
	if err != nil {
		return nil, err
	}
	root, err := html.Parse(strings.NewReader(words)) // which refuses elements of more than 512 levels
	if err != nil {
		return nil, fault(Broken, err)
	}
	p := &page{}
	p.walk(root, place{})
	c := &slicer{title: p.title.String()}
	main, all, shown := 0, 0, 0
	for _, b := range p.blocks {
		n := len(b.text)
		all += n
		if b.main {
			main += n
		}
		if !b.aside {
			shown += n
		}
	}
	for _, b := range p.blocks {
		switch {
		case main*4 >= all && !b.main: // the page says what it is about
		case main*4 < all && shown*4 >= all && b.aside: // what is around it
		case b.level > 0:
			c.setHeading(b.level, b.text)
		default:
			c.add(b.text)
		}
	}
	return c, nil
}

// decodeHTML returns a page as text: by a byte order mark, as it says itself, or by its bytes.
func decodeHTML(data []byte) (string, error) {
	if e := marked(data); e != nil {
		return decodeAs(data, e)
	}
	if s := wholeRunes(data); utf8.Valid(s) && bytes.IndexByte(s, 0) < 0 {
		return string(s), nil
	}
	if e, name, certain := charset.DetermineEncoding(data, ""); certain || name != "windows-1252" {
		if name == "gbk" || name == "gb2312" {
			e, _ = htmlindex.Get("gb18030") // which is a superset of both, and always there
		}
		if s, err := decodeAs(data, e); err == nil {
			return s, nil
		}
	}
	return decode(data)
}

// block is a paragraph or a heading of a page.
type block struct {
	text  string
	level int  // of a heading; 0: it is none
	main  bool // it is in what the page is about
	aside bool // it is in what is around that
}

// place says where in a page the walk is.
type place struct{ main, aside, pre bool }

// page collects the text of a page.
type page struct {
	title  strings.Builder
	blocks []block
	line   strings.Builder // of the block that is being made
}

// end ends a block.
func (p *page) end(level int, in place) {
	if s := strings.TrimSpace(p.line.String()); s != "" {
		p.blocks = append(p.blocks, block{s, level, in.main, in.aside})
	}
	p.line.Reset()
}

// walk collects the text of an element with all that it has.
func (p *page) walk(n *html.Node, in place) {
	if n.Type == html.TextNode {
		p.words(n.Data, in)
		return
	}
	around := in
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Svg, atom.Math, atom.Iframe, atom.Object, atom.Select, atom.Button, atom.Textarea, atom.Audio, atom.Video:
		return
	case atom.Title:
		if p.title.Len() == 0 && n.FirstChild != nil {
			p.title.WriteString(n.FirstChild.Data)
		}
		return
	case atom.Main, atom.Article:
		in.main = true
	case atom.Nav, atom.Footer, atom.Aside:
		in.aside = true
	case atom.Pre:
		in.pre = true
	case atom.Br:
		p.line.WriteByte('\n')
	case atom.Td, atom.Th:
		if p.line.Len() > 0 {
			p.line.WriteString(" | ")
		}
	}
	own := stands(n.DataAtom)
	if own {
		p.end(0, around)
		if n.DataAtom == atom.Li {
			p.line.WriteString("- ")
		}
	}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		p.walk(child, in)
	}
	if own {
		level := 0
		if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
			level = int(n.Data[1] - '0')
		}
		p.end(level, in)
	}
}

// words adds text to a block. Outside of pre elements space of any length is one space.
func (p *page) words(s string, in place) {
	if in.pre {
		p.line.WriteString(s)
		return
	}
	begins := s != "" && strings.ContainsRune(" \t\r\n\f", rune(s[0]))
	all := strings.Fields(s)
	if (begins || len(all) == 0 && s != "") && p.line.Len() > 0 {
		p.line.WriteByte(' ')
	}
	p.line.WriteString(strings.Join(all, " "))
	if len(all) > 0 && strings.ContainsRune(" \t\r\n\f", rune(s[len(s)-1])) {
		p.line.WriteByte(' ')
	}
}

// stands reports whether an element stands by itself, and not within a line.
func stands(a atom.Atom) bool {
	switch a {
	case atom.P, atom.Div, atom.Section, atom.Article, atom.Main, atom.Header, atom.Footer, atom.Nav, atom.Aside, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5,
		atom.H6, atom.Ul, atom.Ol, atom.Li, atom.Dl, atom.Dt, atom.Dd, atom.Table, atom.Tr, atom.Caption, atom.Pre, atom.Blockquote, atom.Figure, atom.Figcaption,
		atom.Form, atom.Fieldset, atom.Hr, atom.Body, atom.Html, atom.Address, atom.Details, atom.Summary:
		return true
	}
	return false
}
