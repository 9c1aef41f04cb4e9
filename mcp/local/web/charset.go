package web

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// errBinary says that what came is a picture, an archive or the like.
var errBinary = errors.New("the page is no text")

// plainText is the body in UTF-8. The charset is that of the Content-Type; an
// XML page may name its own in its first line. One that is not known is an error.
func plainText(body []byte, contentType string) ([]byte, error) {
	_, parameters, err := mime.ParseMediaType(contentType)
	if name := parameters["charset"]; err == nil && name != "" {
		known, err := decoder(name)
		switch {
		case err != nil:
			return nil, err
		case known != nil && !utf8.Valid(body): // some say gbk and send UTF-8
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

// decoder is the encoding of a charset, nil for UTF-8.
func decoder(charset string) (encoding.Encoding, error) {
	switch strings.ToLower(strings.TrimSpace(charset)) {
	case "utf-8", "utf8", "us-ascii", "ascii":
		return nil, nil
	case "gbk", "gb2312", "gb18030", "gb_2312-80", "x-gbk":
		return simplifiedchinese.GB18030, nil
	case "iso-8859-1", "latin1", "windows-1252":
		return charmap.Windows1252, nil
	}
	return nil, fmt.Errorf("the page is in %q, which is not known", cut(charset, 40))
}

// xmlReader reads a feed that names its charset; what is UTF-8 already stays.
func xmlReader(body []byte) *xml.Decoder {
	d := xml.NewDecoder(bytes.NewReader(body))
	d.CharsetReader = func(charset string, r io.Reader) (io.Reader, error) {
		known, err := decoder(charset)
		if err != nil || known == nil || utf8.Valid(body) {
			return r, err
		}
		return known.NewDecoder().Reader(r), nil
	}
	return d
}
