// Package readertest makes documents for tests.
package readertest

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"crypto/md5" //nolint:gosec // of the format, which is what is tested
	"crypto/rc4" //nolint:gosec // of the format, which is what is tested
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf16"
)

// Zip packs files, by pairs of name and content.
func Zip(pairs ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i+1 < len(pairs); i += 2 {
		w, err := z.Create(pairs[i])
		if err == nil {
			_, err = w.Write([]byte(pairs[i+1]))
		}
		if err != nil { // memory takes everything
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

const (
	wordHead   = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><w:body>`
	wordTail   = `</w:body></w:document>`
	wordStyles = `<w:styles xmlns:w="x"><w:style w:type="paragraph" w:styleId="1"><w:name w:val="heading 1"/></w:style><w:style w:type="paragraph" w:styleId="2"><w:name w:val="heading 2"/></w:style></w:styles>`
)

// Word is a DOCX with the XML of a body.
func Word(body string) []byte {
	return Zip("[Content_Types].xml", `<Types/>`, "word/styles.xml", wordStyles, "word/document.xml", wordHead+body+wordTail)
}

// DOCX is a document of Word with paragraphs; one that begins with "# " is a heading.
func DOCX(paragraphs ...string) []byte {
	var body strings.Builder
	for _, p := range paragraphs {
		style := ""
		if rest, ok := strings.CutPrefix(p, "# "); ok {
			p, style = rest, `<w:pPr><w:pStyle w:val="1"/></w:pPr>`
		}
		body.WriteString("<w:p>" + style + "<w:r><w:t>" + escaped(p) + "</w:t></w:r></w:p>")
	}
	return Word(body.String())
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // memory takes everything
	return b.String()
}

// PDFOptions say how a PDF is made.
type PDFOptions struct {
	Title    string
	Password string // that opens it; "": it is open
}

// PDF is a document with pages of lines: those of ASCII in Helvetica, others in a font of simplified Chinese that is not
// embedded.
func PDF(o PDFOptions, pages ...string) []byte {
	p := &pdfWriter{}
	id := []byte("0123456789abcdef")
	encrypt := ""
	if o.Password != "" {
		owner, user, key := lock(o.Password, id)
		p.key = key
		encrypt = fmt.Sprintf("<</Filter/Standard/V 1/R 2/P -4/O<%x>/U<%x>>>", owner, user)
	}
	p.add("<</Type/Catalog/Pages 2 0 R>>")
	kids := ""
	for i := range pages {
		kids += fmt.Sprintf("%d 0 R ", 7+2*i)
	}
	p.add(fmt.Sprintf("<</Type/Pages/Count %d/Kids[%s]>>", len(pages), kids))
	p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	p.add("<</Type/Font/Subtype/Type0/BaseFont/STSong-Light/Encoding/UniGB-UCS2-H/DescendantFonts[5 0 R]>>")
	p.add("<</Type/Font/Subtype/CIDFontType0/BaseFont/STSong-Light/CIDSystemInfo<</Registry" + p.text("Adobe") + "/Ordering" + p.text("GB1") + "/Supplement 2>>/DW 1000/FontDescriptor 6 0 R>>")
	p.add("<</Type/FontDescriptor/FontName/STSong-Light/Flags 4/FontBBox[-25 -254 1000 880]/ItalicAngle 0/Ascent 880/Descent -120/CapHeight 880/StemV 93>>")
	for i, page := range pages {
		p.add(fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R/F2 4 0 R>>>>/Contents %d 0 R>>", 8+2*i))
		p.stream(content(page))
	}
	info := fmt.Sprintf("/Info %d 0 R", p.add("<</Title"+p.text(o.Title)+">>"))
	if encrypt != "" {
		p.key = nil
		info += fmt.Sprintf("/Encrypt %d 0 R/ID[<%x><%x>]", p.add(encrypt), id, id)
	}
	return p.finish(info)
}

// PDFBomb is a document with a page that is some kilobytes packed, and so many million bytes of commands unpacked.
func PDFBomb(millions int) []byte {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	line := strings.Repeat("BT /F1 10 Tf 1 0 0 1 5 5 Tm (word) Tj ET\n", 25_000)
	for range millions {
		if _, err := z.Write([]byte(line)); err != nil { // memory takes everything
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	p := &pdfWriter{}
	p.add("<</Type/Catalog/Pages 2 0 R>>")
	p.add("<</Type/Pages/Count 1/Kids[3 0 R]>>")
	p.add("<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 4 0 R>>>>/Contents 5 0 R>>")
	p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	p.add(fmt.Sprintf("<</Length %d/Filter/FlateDecode>>\nstream\n%s\nendstream", packed.Len(), packed.Bytes()))
	return p.finish("")
}

// content draws the lines of a page.
func content(page string) string {
	var b strings.Builder
	b.WriteString("BT 14 TL 40 800 Td\n")
	for line := range strings.SplitSeq(page, "\n") {
		ascii := !strings.ContainsFunc(line, func(r rune) bool { return r >= 0x80 })
		if ascii {
			fmt.Fprintf(&b, "/F1 10 Tf (%s) Tj T*\n", strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(line))
			continue
		}
		b.WriteString("/F2 10 Tf <")
		for _, u := range utf16.Encode([]rune(line)) {
			fmt.Fprintf(&b, "%04X", u)
		}
		b.WriteString("> Tj T*\n")
	}
	b.WriteString("ET")
	return b.String()
}

// pdfWriter writes the objects of a PDF, encrypted by a key if there is one (ISO 32000-1, 7.6, revision 2).
type pdfWriter struct {
	out bytes.Buffer
	at  []int // offsets of the objects
	key []byte
}

func (p *pdfWriter) add(object string) (number int) {
	if len(p.at) == 0 {
		p.out.WriteString("%PDF-1.4\n")
	}
	p.at = append(p.at, p.out.Len())
	fmt.Fprintf(&p.out, "%d 0 obj\n%s\nendobj\n", len(p.at), object)
	return len(p.at)
}

func (p *pdfWriter) stream(data string) {
	data = p.encrypted(data, len(p.at)+1)
	p.add(fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(data), data))
}

// text is a string of the object that is added next.
func (p *pdfWriter) text(s string) string {
	return "<" + hex.EncodeToString([]byte(p.encrypted(s, len(p.at)+1))) + ">"
}

func (p *pdfWriter) encrypted(s string, object int) string {
	if p.key == nil {
		return s
	}
	sum := md5.Sum(append(append([]byte(nil), p.key...), byte(object), byte(object>>8), byte(object>>16), 0, 0))
	return string(cipher(sum[:10], []byte(s)))
}

func (p *pdfWriter) finish(trailer string) []byte {
	xref := p.out.Len()
	fmt.Fprintf(&p.out, "xref\n0 %d\n0000000000 65535 f \n", len(p.at)+1)
	for _, at := range p.at {
		fmt.Fprintf(&p.out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&p.out, "trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n", len(p.at)+1, trailer, xref)
	return p.out.Bytes()
}

// lock makes what a PDF has of its password (7.6.3), and the key.
func lock(password string, id []byte) (owner, user, key []byte) {
	pad := []byte("\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A")
	padded := append([]byte(password), pad...)[:32]
	sum := md5.Sum(padded)
	owner = cipher(sum[:5], padded)
	sum = md5.Sum(bytes.Join([][]byte{padded, owner, {0xFC, 0xFF, 0xFF, 0xFF}, id}, nil))
	key = sum[:5]
	return owner, cipher(key, pad), key
}

func cipher(key, data []byte) []byte {
	c, err := rc4.NewCipher(key)
	if err != nil { // of a length that cannot be
		panic(err)
	}
	out := make([]byte, len(data))
	c.XORKeyStream(out, data)
	return out
}
