package reader

import (
	"context"
	"io"
	"regexp"
	"strings"
)

// readPlain reads what is not packed: text, Markdown or HTML.
func (p patterns) readPlain(ctx context.Context, f io.Reader, ending string) (Kind, *slicer, error) {
	const most = 8 * MaxText // HTML has more marks than text
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return Text, nil, fault(Broken, err)
	}
	if err := ctx.Err(); err != nil {
		return Text, nil, err
	}
	longer := len(data) > most
	if p.isHTML(data, ending) {
		c, err := readHTML(data[:min(len(data), most)])
		if c != nil {
			c.cut = c.cut || longer
		}
		return HTML, c, err
	}
	if len(data) > 2*MaxText { // of the widest encoding still more than is kept
		data, longer = data[:2*MaxText], true
	}
	words, err := decode(data)
	if err != nil {
		return Text, nil, err
	}
	kind := Text
	if ending == ".md" || ending == ".markdown" {
		kind = Markdown
	}
	c := p.readLines(words, kind == Markdown)
	c.cut = c.cut || longer
	return kind, c, nil
}

// patterns find marks in text.
type patterns struct {
	markup, tag                                       *regexp.Regexp // of HTML
	atx, setext, fenced, image, link, bold, underline *regexp.Regexp // of Markdown
}

func newPatterns() patterns {
	return patterns{
		markup:    regexp.MustCompile(`(?i)^(?:\s|\x{FEFF}|<\?xml[^>]*>|<!--(?s:.*?)-->)*<(?:!doctype html|html|head|body)\b`),
		tag:       regexp.MustCompile(`(?i)<(?:p|div|h[1-6]|table|br|a|span|ul)\b[^>]*>`),
		atx:       regexp.MustCompile(`^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*$`),
		setext:    regexp.MustCompile(`^ {0,3}(=+|-+)[ \t]*$`),
		fenced:    regexp.MustCompile("^ {0,3}(?:```|~~~)"),
		image:     regexp.MustCompile(`!\[([^\]]*)\]\([^)]*\)`),
		link:      regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`),
		bold:      regexp.MustCompile(`(\*\*|__)([^*_]+)(\*\*|__)`),
		underline: regexp.MustCompile(`^[ \t]*\|?[ \t:|-]+\|[ \t:|-]*$`), // between the head and the rows of a table
	}
}

// isHTML reports whether a text is HTML: it says so, or is called so and has some of its elements. Text of two bytes for
// each sign is looked at without its zeros.
func (p patterns) isHTML(data []byte, ending string) bool {
	head := string(data[:min(len(data), headSize)])
	if strings.HasPrefix(head, "\xFF\xFE") || strings.HasPrefix(head, "\xFE\xFF") {
		head = head[2:]
	}
	head = strings.ToValidUTF8(strings.ReplaceAll(head, "\x00", ""), "?")
	if p.markup.MatchString(head) {
		return true
	}
	return (ending == ".html" || ending == ".htm" || ending == ".xhtml") && p.tag.MatchString(head)
}

// readLines cuts text, with the headings of Markdown if it is that.
func (p patterns) readLines(s string, marked bool) *slicer {
	c := &slicer{}
	var paragraph []string
	end := func() {
		c.add(strings.Join(paragraph, "\n"))
		paragraph = paragraph[:0]
	}
	code := false
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	if marked {
		s = frontMatter(c, s)
	}
	for line := range strings.SplitSeq(s, "\n") {
		if c.full() {
			break
		}
		line = strings.TrimRight(line, " \t")
		switch {
		case strings.TrimSpace(line) == "":
			end()
			continue
		case !marked:
		case p.fenced.MatchString(line):
			code = !code
			continue
		case code:
		case p.atx.MatchString(line):
			end()
			m := p.atx.FindStringSubmatch(line)
			c.setHeading(len(m[1]), p.plain(m[2]))
			continue
		case len(paragraph) == 1 && p.setext.MatchString(line):
			level := 1
			if strings.Contains(line, "-") {
				level = 2
			}
			c.setHeading(level, paragraph[0])
			paragraph = paragraph[:0]
			continue
		case p.underline.MatchString(line):
			continue
		default:
			line = p.plain(line)
		}
		paragraph = append(paragraph, line)
	}
	end()
	return c
}

// plain takes the marks out of a line of Markdown.
func (p patterns) plain(line string) string {
	if strings.Contains(line, "](") {
		line = p.link.ReplaceAllString(p.image.ReplaceAllString(line, "$1"), "$1")
	}
	if strings.Contains(line, "**") || strings.Contains(line, "__") {
		line = p.bold.ReplaceAllString(line, "$2")
	}
	return line
}

// frontMatter takes the settings off the beginning of a Markdown file, and their title.
func frontMatter(c *slicer, s string) string {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(s, "\uFEFF"), "---\n")
	if !ok {
		return s
	}
	settings, rest, ok := strings.Cut(rest, "\n---\n")
	if !ok || len(settings) > headSize {
		return s
	}
	for line := range strings.SplitSeq(settings, "\n") {
		if title, ok := strings.CutPrefix(line, "title:"); ok {
			c.title = strings.Trim(strings.TrimSpace(title), `"'`)
		}
	}
	return rest
}
