package reader_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"

	"xiaozhi/internal/testall"
	"xiaozhi/knowledge/reader"
	"xiaozhi/knowledge/readertest"
)

// check reads any bytes and looks at what must hold of what is read.
func check(t *testing.T, name string, data []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	d, err := quick.Read(ctx, bytes.NewReader(data), int64(len(data)), name)
	if err != nil {
		if _, ok := errors.AsType[*reader.FaultError](err); !ok {
			t.Fatalf("%v is no fault", err)
		}
		return
	}
	size := 0
	for i, p := range d.Pieces {
		if size += len(p.Text); p.Text == "" || !utf8.ValidString(p.Text) || !utf8.ValidString(p.Heading) || len(p.Text) > 4000 || i > 0 && p.At < d.Pieces[i-1].At {
			t.Fatalf("piece %d: %+v", i, p)
		}
	}
	if len(d.Pieces) == 0 || size > reader.MaxText+len(d.Pieces) {
		t.Fatalf("%d pieces, %d bytes", len(d.Pieces), size)
	}
}

func FuzzText(f *testing.F) {
	gbk, _ := simplifiedchinese.GBK.NewEncoder().String("洗衣机使用说明")
	for _, s := range []string{"a\n\nb", "# a\n## b\n```\nc", "\xff\xfea\x00", "\xfe\xff\x00a", gbk, "---\ntitle: x\n---\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, "a.md", data)
		check(t, "a.txt", data)
	})
}

func FuzzHTML(f *testing.F) {
	f.Add([]byte("<p>a<b>c</p><nav>x</nav><h1>t</h1><pre> a\n b</pre><title>t"))
	f.Add([]byte("<html><main><table><tr><td>a</td></tr>"))
	f.Fuzz(func(t *testing.T, data []byte) { check(t, "a.html", append([]byte("<html>"), data...)) })
}

func FuzzWord(f *testing.F) {
	f.Add("<w:p><w:r><w:t>abc</w:t></w:r></w:p>")
	f.Add("<w:tbl><w:tr><w:tc><w:p><w:t>a</w:t></w:p></w:tc></w:tr></w:tbl><mc:Fallback>x</mc:Fallback>")
	f.Fuzz(func(t *testing.T, body string) { check(t, "", readertest.Word(body)) })
}

func FuzzArchive(f *testing.F) {
	f.Add(readertest.DOCX("abc"))
	f.Fuzz(func(t *testing.T, data []byte) { check(t, "", append([]byte("PK\x03\x04"), data...)) })
}

func FuzzPDF(f *testing.F) {
	testall.Arithmetic(f)
	f.Add(readertest.PDF(readertest.PDFOptions{Title: "t"}, "abc", "中文"))
	f.Add(readertest.PDF(readertest.PDFOptions{Password: "x"}, "abc"))
	f.Fuzz(func(t *testing.T, data []byte) { check(t, "", append([]byte("%PDF-"), data...)) })
}
