package reader

import (
	"archive/zip"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/net/html/charset"
)

// Bounds of what an archive may hold.
const (
	maxDepth  = 256       // of elements within one another
	maxRatio  = 200       // of an unpacked part to its packed size; XML has some 20
	smallPart = 8 << 20   // bytes: up to that any ratio is harmless
	maxStyles = 8 << 20   // bytes of the list of styles
	maxCore   = 256 << 10 // bytes of the part with the title
)

// readDOCX reads a document of Word (ISO/IEC 29500, WordprocessingML).
func readDOCX(ctx context.Context, f io.ReaderAt, size int64) (*slicer, error) {
	archive, err := zip.NewReader(f, size)
	if err != nil {
		return nil, fault(Broken, err)
	}
	parts := map[string]*zip.File{}
	for _, part := range archive.File {
		parts[part.Name] = part
	}
	body := bodyOf(ctx, parts)
	if body == nil {
		return nil, &FaultError{Fault: OtherKind, Detail: otherArchive(parts)}
	}
	c, levels := &slicer{}, map[string]int{}
	if styles := parts["word/styles.xml"]; styles != nil {
		// Without styles there are no headings, but all text.
		_ = each(ctx, styles, maxStyles, styleLevels(levels))
	}
	if core := parts["docProps/core.xml"]; core != nil {
		_ = each(ctx, core, maxCore, coreTitle(c))
	}
	w := &wordText{c: c, levels: levels}
	err = each(ctx, body, maxPart, w.token)
	w.endParagraph()
	switch {
	case errors.Is(err, errEnough):
		return c, nil
	case err != nil:
		return nil, err
	}
	return c, nil
}

// bodyOf returns the part with the body, which some programs call word/document2.xml: the relations of the whole name it (ISO/IEC
// 29500-2, 9.3). nil: there is none.
func bodyOf(ctx context.Context, parts map[string]*zip.File) *zip.File {
	if body := parts["word/document.xml"]; body != nil {
		return body
	}
	target := ""
	if relations := parts["_rels/.rels"]; relations != nil {
		// Without relations it is another kind of archive.
		_ = each(ctx, relations, maxCore, func(t xml.Token) error {
			if e, ok := t.(xml.StartElement); ok && strings.HasSuffix(attribute(e, "Type"), "/officeDocument") {
				target = strings.TrimPrefix(attribute(e, "Target"), "/")
			}
			return nil
		})
	}
	if !strings.HasPrefix(target, "word/") {
		return nil
	}
	return parts[target]
}

// otherArchive names what an archive is that holds no document of Word.
func otherArchive(parts map[string]*zip.File) string {
	for name := range parts {
		switch {
		case strings.HasPrefix(name, "xl/"):
			return "XLSX"
		case strings.HasPrefix(name, "ppt/"):
			return "PPTX"
		case name == "META-INF/container.xml":
			return "EPUB"
		case name == "content.xml":
			return "ODT"
		}
	}
	return "ZIP"
}

// errEnough ends the reading of a part of which no more is wanted.
var errEnough = errors.New("enough was read")

// each gives the elements and texts of a part to token, until that fails.
func each(ctx context.Context, part *zip.File, most int64, token func(xml.Token) error) error {
	if part.Flags&1 != 0 {
		return fault(Encrypted, nil)
	}
	if part.UncompressedSize64 > uint64(most) || part.UncompressedSize64 > smallPart && part.UncompressedSize64/maxRatio > part.CompressedSize64 {
		return fault(Bomb, nil)
	}
	in, err := part.Open()
	if err != nil {
		return fault(Broken, err)
	}
	defer in.Close()
	bounded := &io.LimitedReader{R: in, N: most}
	d := xml.NewDecoder(bounded)
	d.CharsetReader = charset.NewReaderLabel
	for depth := 0; ; {
		t, err := d.RawToken()
		switch {
		case err != nil && bounded.N <= 0:
			return fault(Bomb, err)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fault(Broken, err)
		}
		switch t.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
		if depth > maxDepth {
			return fault(Broken, fmt.Errorf("more than %d elements in one another", maxDepth))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := token(t); err != nil {
			return err
		}
	}
}

// attribute returns the value of an attribute, whatever its name space.
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// styleLevels notes the levels of the styles of headings, by their ids.
func styleLevels(levels map[string]int) func(xml.Token) error {
	id := ""
	return func(t xml.Token) error {
		e, ok := t.(xml.StartElement)
		if !ok {
			return nil
		}
		switch e.Name.Local {
		case "style":
			id = attribute(e, "styleId")
		case "name": // Word writes it in English in all languages
			if n, ok := strings.CutPrefix(strings.ToLower(attribute(e, "val")), "heading "); ok {
				if level, err := strconv.Atoi(n); err == nil {
					levels[id] = level
				}
			} else if strings.EqualFold(attribute(e, "val"), "title") {
				levels[id] = 1
			}
		case "outlineLvl":
			if level, err := strconv.Atoi(attribute(e, "val")); err == nil && level >= 0 && level < 9 {
				levels[id] = level + 1
			}
		}
		return nil
	}
}

// coreTitle takes the title of the document.
func coreTitle(c *slicer) func(xml.Token) error {
	title := false
	return func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			title = t.Name.Local == "title"
		case xml.EndElement:
			title = false
		case xml.CharData:
			if title && len(c.title) < maxTitle {
				c.title += string(t)
			}
		}
		return nil
	}
}

// wordText collects the text of the body of a document.
type wordText struct {
	c      *slicer
	levels map[string]int // of styles of headings

	paragraph strings.Builder
	level     int  // of the paragraph; 0: no heading
	text      bool // within an element of text
	cells     int  // within how many cells of tables
	row       []string
	skip      int // within how many elements that repeat others
}

// maxParagraph bounds a paragraph, in bytes, so that one without end does not fill the memory.
const maxParagraph = MaxText + 1<<10

func (w *wordText) token(t xml.Token) error {
	switch t := t.(type) {
	case xml.StartElement:
		w.begin(t)
	case xml.EndElement:
		w.end(t.Name.Local)
	case xml.CharData:
		if w.text && w.skip == 0 && w.paragraph.Len() < maxParagraph {
			w.paragraph.Write(t)
		}
	}
	if w.c.full() {
		return errEnough
	}
	return nil
}

func (w *wordText) begin(e xml.StartElement) {
	switch name := e.Name.Local; {
	case name == "Fallback" && e.Name.Space == "mc":
		w.skip++
	case w.skip > 0:
	case name == "t":
		w.text = true
	case name == "tab":
		w.paragraph.WriteByte(' ')
	case name == "br", name == "cr":
		w.paragraph.WriteByte('\n')
	case name == "noBreakHyphen":
		w.paragraph.WriteByte('-')
	case name == "pStyle":
		w.level = w.levels[attribute(e, "val")]
	case name == "tc":
		w.cells++
	}
}

func (w *wordText) end(name string) {
	switch {
	case name == "Fallback" && w.skip > 0:
		w.skip--
	case w.skip > 0:
	case name == "t":
		w.text = false
	case name == "p":
		w.endParagraph()
	case name == "tc":
		w.cells = max(0, w.cells-1)
	case name == "tr" && w.cells == 0:
		w.c.add(strings.Join(w.row, " | "))
		w.row = w.row[:0]
	}
}

// endParagraph takes a paragraph: those of a table as the cells of a row.
func (w *wordText) endParagraph() {
	words := strings.TrimSpace(w.paragraph.String())
	w.paragraph.Reset()
	level := w.level
	w.level = 0
	switch {
	case words == "":
	case w.cells > 0:
		if len(w.row) < 1000 {
			w.row = append(w.row, words)
		} else {
			w.c.add(words)
		}
	case level > 0:
		w.c.setHeading(level, words)
	default:
		w.c.add(words)
	}
}
