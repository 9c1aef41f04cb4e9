package reader_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"

	"xiaozhi/internal/testall"
	"xiaozhi/knowledge/reader"
	"xiaozhi/knowledge/readertest"
)

var quick = reader.New(reader.Options{Interpret: true})

func read(t *testing.T, name string, data []byte) reader.Document {
	t.Helper()
	d, err := quick.Read(t.Context(), bytes.NewReader(data), int64(len(data)), name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// all writes pieces as lines: page, heading, text.
func all(d reader.Document) string {
	var b strings.Builder
	for _, p := range d.Pieces {
		fmt.Fprintf(&b, "%d|%s|%s\n", p.Page, p.Heading, strings.ReplaceAll(p.Text, "\n", "/"))
	}
	return b.String()
}

func TestKinds(t *testing.T) {
	for _, test := range []struct {
		name string
		data string
		kind reader.Kind
		want string
	}{
		{"plain text", "First line.\nSecond line.\n\nAnother paragraph.", reader.Text, "0||First line./Second line./Another paragraph.\n"},
		{"not what its name says.pdf", "Just text.", reader.Text, "0||Just text.\n"},
		{
			"a.md", "---\ntitle: \"Fridge\"\n---\nIntro with a [link](http://x.y/z).\n\n# Care\n\nClean it.\n\n## Filter ##\nEvery **month**.\n\nTable\n-----\n| a | b |\n|---|---|\n| 1 | 2 |\n```\n# no heading\n```\n", reader.Markdown,
			"0||Intro with a link.\n0|Care|Clean it.\n0|Care > Filter|Every month.\n0|Care > Table|| a | b |/| 1 | 2 |/# no heading\n",
		},
		{
			"a.html", "<!doctype html><title>Recipes</title><nav>Home <a href=x>About</a></nav><main><h1>Soup</h1><p>Boil <b>wa</b>ter\n  and salt.<p>Serve.<ul><li>one<li>two</ul><table><tr><td>a<td>b</table></main><script>alert(1)</script><footer>Imprint</footer>", reader.HTML,
			"0|Soup|Boil water and salt./Serve./- one/- two/a | b\n",
		},
		{"no name", "  <?xml version='1.0'?><!-- x --><HTML><body>Hello", reader.HTML, "0||Hello\n"},
		{"all around.html", "<p></p><nav>Only links, and nothing else that could be read.</nav>", reader.HTML, "0||Only links, and nothing else that could be read.\n"},
	} {
		d := read(t, test.name, []byte(test.data))
		if got := all(d); d.Kind != test.kind || got != test.want {
			t.Errorf("%s: %s\n%s\nwant %s\n%s", test.name, d.Kind, got, test.kind, test.want)
		}
	}
	if d := read(t, "a.md", []byte("---\ntitle: \"Fridge\"\n---\nx")); d.Title != "Fridge" {
		t.Errorf("title %q", d.Title)
	}
}

func TestDOCX(t *testing.T) {
	d := read(t, "manual", readertest.DOCX("Preface", "# 安装", "把冰箱放平。", "# Use", "Close the door."))
	if got, want := all(d), "0||Preface\n0|安装|把冰箱放平。\n0|Use|Close the door.\n"; d.Kind != reader.DOCX || got != want {
		t.Errorf("%s:\n%s\nwant\n%s", d.Kind, got, want)
	}
	table := `<w:tbl><w:tr><w:tc><w:p><w:r><w:t>E05</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Door</w:t></w:r><w:r><w:tab/><w:t>open</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`
	twice := `<w:p><mc:AlternateContent><mc:Choice><w:r><w:t>box</w:t></w:r></mc:Choice><mc:Fallback><w:r><w:t>box</w:t></w:r></mc:Fallback></mc:AlternateContent><w:r><w:delText>gone</w:delText><w:instrText>PAGE</w:instrText></w:r></w:p>`
	if got, want := all(read(t, "x", readertest.Word(table+twice))), "0||E05 | Door open/box\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDOCXBody: the part with the body is the one that the relations name.
func TestDOCXBody(t *testing.T) {
	body := `<w:document xmlns:w="x"><w:body><w:p><w:r><w:t>abc</w:t></w:r></w:p></w:body></w:document>`
	relations := `<Relationships><Relationship Type="x/officeDocument" Target="/word/document2.xml"/></Relationships>`
	if got := all(read(t, "x", readertest.Zip("_rels/.rels", relations, "word/document2.xml", body))); got != "0||abc\n" {
		t.Errorf("got %q", got)
	}
}

// TestHeadingsAlone: what is written in headings alone is found, and long ones are not cut.
func TestHeadingsAlone(t *testing.T) {
	long := strings.Repeat("很长的标题", 20)
	for words, want := range map[string]string{
		"# The key is under the mat\n# The lamp is red": "0|The key is under the mat|The key is under the mat\n0|The lamp is red|The lamp is red\n",
		"# A\n## B\nText\n## C\n# D\n":                  "0|A > B|Text\n0|A > C|C\n0|D|D\n",
		"# " + long + "\nText":                          "0|很长的标题很长的标题很长的标题很长的标题很长的标题很…|" + long + "/Text\n",
	} {
		d := read(t, "a.md", []byte(words))
		if got := all(d); got != want {
			t.Errorf("%q: got\n%swant\n%s", words, got, want)
		}
		if n := utf8.RuneCountInString(strings.NewReplacer("#", "", "\n", "").Replace(words)); d.Chars < n-3 || d.Chars > n+4 {
			t.Errorf("%q has %d characters", words, d.Chars)
		}
	}
}

// TestCut: pieces end between signs, also of those that stand for what no sign is.
func TestCut(t *testing.T) {
	for _, sign := range []string{"\uFFFD", "长", "𠮷", "é"} {
		d := read(t, "a.txt", []byte("a"+strings.Repeat(sign, 4000)))
		for _, p := range d.Pieces {
			if !utf8.ValidString(p.Text) || len(p.Text) > 1800 {
				t.Errorf("%q: a piece of %d bytes ends with %q", sign, len(p.Text), p.Text[len(p.Text)-5:])
			}
		}
	}
}

func TestPDF(t *testing.T) {
	testall.Arithmetic(t)
	data := readertest.PDF(readertest.PDFOptions{Title: "Fridge"}, "Keep the door closed, for else the food\nin it gets warm. Clean the filter once\na month.\nNew paragraph.", "", "故障代码E05表示门没有关好，请把\n门关紧。")
	d := read(t, "fridge", data)
	want := "1||Keep the door closed, for else the food in it gets warm. Clean the filter once a month./New paragraph.\n3||故障代码E05表示门没有关好，请把门关紧。\n"
	if got := all(d); d.Kind != reader.PDF || d.Title != "Fridge" || got != want {
		t.Errorf("%s %q:\n%s\nwant\n%s", d.Kind, d.Title, got, want)
	}
}

func TestEncodings(t *testing.T) {
	const chinese = "洗衣机使用说明\r\n第一次使用之前，请先清洗滚筒。水温不要超过六十度。\r\n"
	traditional := "洗衣機使用說明：第一次使用之前，請先清洗滾筒。水溫不要超過六十度。"
	kana := "洗濯機の使い方：はじめて使うまえに、ドラムを洗ってください。"
	for name, test := range map[string]struct {
		e    encoding.Encoding
		text string
	}{
		"GBK":                    {simplifiedchinese.GBK, chinese},
		"GB18030":                {simplifiedchinese.GB18030, chinese + "𠮷"},
		"Big5":                   {traditionalchinese.Big5, traditional},
		"Shift-JIS":              {japanese.ShiftJIS, kana},
		"UTF-16 LE":              {unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), chinese},
		"UTF-16 BE":              {unicode.UTF16(unicode.BigEndian, unicode.UseBOM), chinese},
		"UTF-16 LE without mark": {unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), chinese},
		"UTF-16 BE without mark": {unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), chinese},
		"UTF-8 with mark":        {unicode.UTF8BOM, chinese},
		"UTF-8":                  {unicode.UTF8, chinese},
		"Windows-1252":           {charmap.Windows1252, "Das Gerät läuft. Öffnen Sie die Tür nicht. Crème brûlée"},
		"short GBK":              {simplifiedchinese.GBK, "密码是三五七"},
	} {
		data, err := test.e.NewEncoder().Bytes([]byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		want := "0||" + strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(test.text, "\r\n", "\n")), "\n", "/") + "\n"
		if got := all(read(t, "a.txt", data)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	page, err := simplifiedchinese.GBK.NewEncoder().String(`<html><head><meta charset="gb2312"><title>菜谱</title></head><body><p>红烧肉</p></body></html>`)
	if err != nil {
		t.Fatal(err)
	}
	if d := read(t, "a", []byte(page)); d.Title != "菜谱" || all(d) != "0||红烧肉\n" {
		t.Errorf("a page in GBK: %q, %q", d.Title, all(d))
	}
}

// unread is a document that cannot be read, and why.
type unread struct {
	data   []byte
	fault  reader.Fault
	detail string
}

// test checks that reading the document has its cause, and nothing else happens.
func (u unread) test(t *testing.T, name string) {
	t.Helper()
	d, err := quick.Read(t.Context(), bytes.NewReader(u.data), int64(len(u.data)), name)
	if f, detail := reader.FaultOf(err); err == nil || f != u.fault || detail != u.detail {
		t.Errorf("%s: %v (%+v), want %s %s", name, err, d, u.fault, u.detail)
	}
}

// TestPDFFaults: a PDF that cannot be read has one cause.
func TestPDFFaults(t *testing.T) {
	testall.Arithmetic(t)
	pdf := readertest.PDF(readertest.PDFOptions{}, "text")
	for name, u := range map[string]unread{
		"a password":    {readertest.PDF(readertest.PDFOptions{Password: "secret"}, "text"), reader.Encrypted, ""},
		"half of it":    {[]byte("%PDF-1.4\nnothing more"), reader.Broken, ""},
		"pictures":      {readertest.PDF(readertest.PDFOptions{}, "", ""), reader.Scanned, ""},
		"its beginning": {pdf[:60], reader.Broken, ""},
	} {
		u.test(t, name)
	}
}

// TestFaults: what cannot be read has one cause, and nothing crashes.
func TestFaults(t *testing.T) {
	word := readertest.DOCX("text")
	ole := "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1" + strings.Repeat("\x00", 600)
	wide := func(s string) string { return strings.Join(strings.Split(s, ""), "\x00") + "\x00" }
	for name, u := range map[string]unread{
		"nothing":              {nil, reader.Empty, ""},
		"spaces":               {[]byte(" \r\n\t "), reader.Empty, ""},
		"a page without text":  {[]byte("<html><script>x</script></html>"), reader.Empty, ""},
		"binary.txt":           {[]byte("abc\x00\x01\x02" + strings.Repeat("\x03\x80\xff", 100)), reader.Binary, ""},
		"noise.txt":            {[]byte(strings.Repeat("\x80\x81\xfe\xff\x90", 400)), reader.Encoding, ""},
		"a picture":            {[]byte("\x89PNG\r\n\x1a\n0000"), reader.OtherKind, "PNG"},
		"a table":              {readertest.Zip("xl/workbook.xml", "x"), reader.OtherKind, "XLSX"},
		"an archive":           {readertest.Zip("a.txt", "x"), reader.OtherKind, "ZIP"},
		"an old document":      {[]byte(ole + wide("WordDocument")), reader.OtherKind, "DOC"},
		"a locked DOCX":        {[]byte(ole + wide("EncryptedPackage")), reader.Encrypted, ""},
		"half a DOCX":          {word[:len(word)/2], reader.Broken, ""},
		"XML that ends":        {readertest.Word("<w:p><w:r><w:t>abc</w:r>&nope;"), reader.Broken, ""},
		"depth":                {readertest.Word(strings.Repeat("<w:p>", 1000)), reader.Broken, ""},
		"depth of a page":      {[]byte("<html>" + strings.Repeat("<b><div>", 2000)), reader.Broken, ""},
		"a bomb":               {readertest.Word("<w:p><w:r><w:t>" + strings.Repeat("a", 20<<20) + "</w:t></w:r></w:p>"), reader.Bomb, ""},
		"an entity of its own": {readertest.Zip("word/document.xml", `<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><w:document><w:p><w:t>&b;</w:t></w:p></w:document>`), reader.Broken, ""},
	} {
		u.test(t, name)
	}
	if _, err := quick.Read(t.Context(), endless{}, 500<<20, "large.txt"); err == nil || !strings.Contains(err.Error(), string(reader.Large)) {
		t.Errorf("a large file: %v", err)
	}
}

// endless is a file of any size.
type endless struct{}

func (endless) ReadAt(p []byte, _ int64) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// unreadable is a file that a disk fails to give.
type unreadable struct{}

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestDiskFails(t *testing.T) {
	if _, err := quick.Read(t.Context(), unreadable{}, 100, "a.txt"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// TestLong: of what is very long the beginning is read, be it a line without end.
func TestLong(t *testing.T) {
	testall.Arithmetic(t)
	for name, d := range map[string]reader.Document{
		"lines": read(t, "a.txt", []byte(strings.Repeat("A sentence that is said again. ", 200<<10))),
		"Word":  read(t, "a", readertest.DOCX(strings.Repeat("A line. ", 20000), strings.Repeat("长", 1<<20))),
		"page":  read(t, "a", []byte("<html><p>"+strings.Repeat("some words ", 300<<10))),
	} {
		size := 0
		for i, p := range d.Pieces {
			size += len(p.Text)
			if len(p.Text) > 2000 || i > 0 && p.At <= d.Pieces[i-1].At {
				t.Fatalf("%s: piece %d has %d bytes at %d, after %d", name, i, len(p.Text), p.At, d.Pieces[i-1].At)
			}
		}
		if !d.Cut || size > reader.MaxText || size < reader.MaxText*9/10 {
			t.Errorf("%s: cut: %v, %d bytes", name, d.Cut, size)
		}
	}
	f := endless{}
	d, err := quick.Read(t.Context(), f, 50<<20, "a.txt")
	if err != nil || !d.Cut {
		t.Errorf("a line without end: %v, cut: %v", err, d.Cut)
	}
}

func TestReadEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all := map[string][]byte{"text": []byte("abc"), "Word": readertest.DOCX("abc")}
	if !testall.Race() { // under which PDFs take seconds
		all["PDF"] = readertest.PDF(readertest.PDFOptions{}, "abc")
	}
	for name, data := range all {
		began := time.Now()
		if _, err := quick.Read(ctx, bytes.NewReader(data), int64(len(data)), ""); !errors.Is(err, context.Canceled) || time.Since(began) > 30*time.Second {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlaces: each piece stands where it says.
func TestPlaces(t *testing.T) {
	words := strings.Repeat("冰箱的门要关好。", 300) + "\n\n" + strings.Repeat("Close the door. ", 300)
	runes := []rune(words)
	d := read(t, "a.txt", []byte(words))
	if len(d.Pieces) < 5 || d.Cut || d.Pieces[len(d.Pieces)-1].At >= d.Chars {
		t.Fatalf("%d pieces of %d characters, cut: %v", len(d.Pieces), d.Chars, d.Cut)
	}
	for _, p := range d.Pieces {
		if beginning := []rune(p.Text)[:8]; !strings.Contains(string(runes[max(0, p.At-4):min(len(runes), p.At+16)]), string(beginning)) {
			t.Errorf("%q does not stand at %d", string(beginning), p.At)
		}
	}
}
