package reader

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf16"
)

// headSize is how much of a document is looked at to tell its kind, in bytes.
const headSize = 4096

// container says how a document is packed.
type container int

const (
	kindPlain container = iota
	kindPDF
	kindZip
	kindOLE
	kindOther
)

// signatures are how other kinds of files begin, which people put beside documents.
var signatures = []struct{ begins, name string }{
	{"\x89PNG", "PNG"},
	{"\xFF\xD8\xFF", "JPEG"},
	{"GIF8", "GIF"},
	{"RIFF", "RIFF"},
	{"ID3", "MP3"},
	{"OggS", "Ogg"},
	{"fLaC", "FLAC"},
	{"\x7FELF", "ELF"},
	{"MZ", "EXE"},
	{"Rar!", "RAR"},
	{"7z\xBC\xAF", "7-Zip"},
	{"\x1F\x8B", "gzip"},
	{"BZh", "bzip2"},
	{"\xFD7zXZ", "xz"},
	{"SQLite format 3", "SQLite"},
	{"{\\rtf", "RTF"},
	{"%!PS", "PostScript"},
	{"II*\x00", "TIFF"},
	{"MM\x00*", "TIFF"},
	{"\x28\xB5\x2F\xFD", "zstd"},
}

// sniff tells how a document is packed by its first bytes, and names a kind that is not read.
func sniff(head []byte) (c container, name string) {
	switch {
	case bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-")): // readers take what stands before it
		return kindPDF, ""
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return kindZip, ""
	case bytes.HasPrefix(head, []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")):
		return kindOLE, ""
	}
	for _, s := range signatures {
		if strings.HasPrefix(string(head), s.begins) && (s.begins != "MZ" || bytes.IndexByte(head, 0) >= 0) {
			return kindOther, s.name
		}
	}
	if len(head) > 12 && string(head[4:8]) == "ftyp" {
		return kindOther, "MP4"
	}
	return kindPlain, ""
}

// oleFault says what is wrong with a document of the older container of Office: a DOCX with a password is packed in one.
func oleFault(f io.Reader) error {
	const most = 1 << 20 // its directory is near the beginning in all that Office writes
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return fault(Broken, err)
	}
	has := func(name string) bool {
		var wide []byte
		for _, u := range utf16.Encode([]rune(name)) {
			wide = append(wide, byte(u), byte(u>>8))
		}
		return bytes.Contains(data, wide)
	}
	switch {
	case has("EncryptedPackage"):
		return fault(Encrypted, nil)
	case has("WordDocument"):
		return &FaultError{Fault: OtherKind, Detail: "DOC"}
	case has("Workbook"):
		return &FaultError{Fault: OtherKind, Detail: "XLS"}
	}
	return &FaultError{Fault: OtherKind, Detail: "OLE"}
}
