package transport

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// unpack lets the body of a response be read as it was before a server, or a proxy before
// it, has packed it by gzip: we do not ask for that, but some do it all the same.
func unpack(resp *http.Response) {
	if how := strings.ToLower(resp.Header.Get("Content-Encoding")); how != "gzip" && how != "x-gzip" {
		return
	}
	resp.Body = &unpacked{packed: resp.Body}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
}

// unpacked reads what a packed body holds, as far as it has come. It is for one goroutine,
// but for Close.
type unpacked struct {
	packed io.ReadCloser
	reader *gzip.Reader // nil: nothing was read
}

// Read reads the beginning of the packed body, too, when it is called first. A body that is empty stays so.
func (u *unpacked) Read(p []byte) (int, error) {
	if u.reader == nil {
		var err error
		if u.reader, err = gzip.NewReader(u.packed); err != nil {
			u.reader = nil
			return 0, err
		}
	}
	return u.reader.Read(p)
}

// Close closes the packed body.
func (u *unpacked) Close() error { return u.packed.Close() }
