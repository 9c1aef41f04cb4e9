package reader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	pdfium "github.com/klippa-app/go-pdfium"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// pdfMemory bounds what the reader of PDFs may use, in pages of 64 KiB.
const pdfMemory = 256 << 20 / (64 << 10)

// startTime limits the time of making ready what reads a PDF.
const startTime = time.Minute

// readPDF reads a PDF by PDFium, which runs as WebAssembly: it sees neither files nor network, its memory is bounded, and it
// ends with ctx.
func (r *Reader) readPDF(ctx context.Context, f io.ReadSeeker) (*slicer, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fault(Broken, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pool, err := r.pdfium(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	reader, err := pool.GetInstance(startTime)
	if err != nil {
		return nil, fmt.Errorf("start the reader of PDFs: %w", err)
	}
	doc, err := reader.OpenDocument(&requests.OpenDocument{FileReader: f, FileReaderSize: size})
	switch {
	case errors.Is(err, pdferrors.ErrPassword):
		return nil, fault(Encrypted, err)
	case err != nil:
		return nil, fault(Broken, err)
	}
	count, err := reader.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc.Document})
	if err != nil {
		return nil, fault(Broken, err)
	}
	c := &slicer{}
	if meta, err := reader.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: doc.Document, Tag: "Title"}); err == nil {
		c.title = meta.Value
	}
	var bad error // of the first page that could not be read
	for i := range min(count.PageCount, MaxPages) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		page, err := reader.GetPageText(&requests.GetPageText{Page: requests.Page{ByIndex: &requests.PageByIndex{Document: doc.Document, Index: i}}})
		if err != nil { // one page may be damaged, and others not
			bad, c.lacks = cmp.Or(bad, err), true
			if aborted(err) {
				break
			}
			continue
		}
		c.setPage(i + 1)
		for paragraph := range paragraphs(page.Text) {
			c.add(paragraph)
		}
		if c.full() {
			break
		}
	}
	c.flush()
	switch {
	case len(c.pieces) > 0 || bad == nil:
		c.lacks = c.lacks || count.PageCount > MaxPages
		return c, nil
	case aborted(bad):
		return nil, fault(Heavy, bad)
	}
	return nil, fault(Broken, bad)
}

// aborted reports whether PDFium has ended itself, which it does when its memory is full: it can read nothing more.
func aborted(err error) bool { return strings.Contains(err.Error(), "wasm error: ") }

// pdfium starts PDFium.
func (r *Reader) pdfium(ctx context.Context) (pdfium.Pool, error) {
	config := wazero.NewRuntimeConfig()
	if r.o.Interpret {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	config = config.WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).WithCloseOnContextDone(true).WithMemoryLimitPages(pdfMemory)
	if r.translated == nil {
		r.translated = wazero.NewCompilationCache()
		if r.o.Cache != "" {
			// Without files reading takes longer, and nothing else.
			if cache, err := wazero.NewCompilationCacheWithDir(r.o.Cache); err == nil {
				r.translated = cache
			}
		}
	}
	config = config.WithCompilationCache(r.translated)
	pool, err := webassembly.Init(webassembly.Config{
		Context: ctx, MaxIdle: 1, MaxTotal: 1, RuntimeConfig: config, FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("make the reader of PDFs ready: %w", err))
	}
	return pool, nil
}

// paragraphs joins the lines of a page that belong together: a PDF has lines as they are printed.
func paragraphs(page string) func(yield func(string) bool) {
	var lines []string
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x02", "\u00AD").Replace(page), "\n") {
		lines = append(lines, strings.TrimRightFunc(line, unicode.IsSpace))
	}
	usual := usualLength(lines)
	return func(yield func(string) bool) {
		var now strings.Builder
		before := "" // the line before
		give := func() bool {
			s := now.String()
			now.Reset()
			return strings.TrimSpace(s) == "" || yield(s)
		}
		for _, line := range lines {
			if before == "" || ends(before, usual) || begins(line) || strings.TrimSpace(line) == "" {
				if !give() {
					return
				}
				now.WriteString(line)
			} else {
				joinLines(&now, before, strings.TrimSpace(line))
			}
			before = strings.TrimSpace(line)
		}
		give()
	}
}

// joinLines adds a line to those before it: with a space between words of Latin letters, and without the hyphen of a word that
// was divided.
func joinLines(now *strings.Builder, before, line string) {
	last, _ := utf8.DecodeLastRuneInString(before)
	first, _ := utf8.DecodeRuneInString(line)
	switch {
	case last == '\u00AD' || last == '\uFFFE': // which PDFium puts at the end of a divided word
	case last < 0x2E80 || first < 0x2E80:
		now.WriteByte(' ')
	}
	now.WriteString(line)
}

// usualLength is that of the lines of a page that are full.
func usualLength(lines []string) int {
	var all []int
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 0 {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*3/4]
}

// ends reports whether a paragraph ends with a line: it is short, or ends a sentence well before the margin.
func ends(line string, usual int) bool {
	n := utf8.RuneCountInString(line)
	last, _ := utf8.DecodeLastRuneInString(line)
	return n*10 < usual*6 || n*10 < usual*9 && strings.ContainsRune(".!?:;。！？：；", last)
}

// begins reports whether a paragraph begins with a line: it has a bullet or a number.
func begins(line string) bool {
	line = strings.TrimSpace(line)
	first, n := utf8.DecodeRuneInString(line)
	if strings.ContainsRune("•●■◆○·▪–—*-→※①②③④⑤⑥⑦⑧⑨⑩", first) {
		return true
	}
	rest := strings.TrimLeft(line, "0123456789.")
	return first >= '0' && first <= '9' && n == 1 && len(rest) < len(line) && len(line)-len(rest) <= 6 && strings.HasPrefix(strings.TrimLeft(rest, ")、）"), " ")
}
