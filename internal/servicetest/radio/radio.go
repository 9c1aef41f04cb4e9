// Package radio is a fake of a web server with sound: a radio station, files, playlists of both kinds, and what is none of these.
package radio

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// Words are those whose sound the files are.
const Words = "one two three four five six seven eight nine ten"

// Fake is the server. Its methods may be called at the same time.
//
//	/live      an endless stream of MP3 from a radio server, which is joined within a frame
//	/chunked   the same, chunked and without the headers of a radio server
//	/song.mp3  a file of which parts can be asked for     /song.opus, /song.wav   the same
//	/whole.mp3 a file of which no parts can be asked for
//	/NAME.m3u, /NAME.pls   a playlist that leads to [Fake.List], whatever its name; /typed   the same by its Content-Type
//	/hls.m3u8  segments     /aac   a kind that nobody here plays     /page   a page for people
//	/to?at=ADDRESS   leads there
type Fake struct {
	*servicetest.Server
	opus, wav []byte

	mu      sync.Mutex
	list    []string
	cuts    int  // connections that are cut in their middle, from the next on
	blocked bool // the station sends nothing
}

// New starts the server.
func New(t testing.TB) *Fake {
	t.Helper()
	pcm := servicetest.Speech(Words, 16000)
	f := &Fake{opus: servicetest.OggOpus(t, Words, 48000), wav: append(servicetest.WAV(16000, uint32(len(pcm))), pcm...)}
	f.Server = servicetest.New(t, f.serve, servicetest.RateLimited, servicetest.Silent, servicetest.Broken, servicetest.Huge)
	return f
}

// List has the playlists lead to these addresses.
func (f *Fake) List(addresses ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = addresses
}

// Cut has so many of the connections that come next end in the middle.
func (f *Fake) Cut(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts = n
}

// Block has the station send nothing, or go on.
func (f *Fake) Block(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blocked = on
}

func (f *Fake) isBlocked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.blocked
}

// cut reports whether this connection is to be cut.
func (f *Fake) cut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts--
	return f.cuts >= 0
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()})
	switch f.Fault() {
	case servicetest.RateLimited: // too many listeners
		f.Refuse(w, http.StatusServiceUnavailable, "full", "Content-Type", "text/plain")
		return
	case servicetest.Silent:
		f.Wait(r.Context(), time.Hour)
		return
	case servicetest.Broken:
		w.Header().Set("Content-Type", "audio/mpeg")
		_, _ = w.Write(bytes.Repeat([]byte{0xFF, 0xFB, 0x12, 0x00}, 20000))
		return
	case servicetest.Huge:
		f.flood(w, r)
		return
	default:
	}
	f.page(w, r)
}

// flood answers with a playlist without an end.
func (f *Fake) flood(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "audio/x-mpegurl")
	for range 10000 {
		if _, err := io.WriteString(w, strings.Repeat(f.URL()+"/none\n", 100)); err != nil || r.Context().Err() != nil {
			return
		}
	}
}

func (f *Fake) page(w http.ResponseWriter, r *http.Request) {
	switch at := r.URL.Path; {
	case at == "/live":
		w.Header().Set("Icy-Name", "Radio Fake")
		w.Header().Set("Connection", "close")
		f.station(w, r, "audio/mpeg")
	case at == "/chunked":
		f.station(w, r, "audio/mpeg")
	case at == "/song.mp3":
		f.file(w, r, "audio/mpeg", servicetest.MP3(Words), true)
	case at == "/whole.mp3":
		f.file(w, r, "audio/mpeg", servicetest.MP3(Words), false)
	case at == "/song.opus":
		f.file(w, r, "audio/ogg", f.opus, true)
	case at == "/song.wav":
		f.file(w, r, "audio/wav", f.wav, true)
	case strings.HasSuffix(at, ".m3u"):
		f.file(w, r, "application/octet-stream", f.m3u(), false)
	case at == "/typed":
		f.file(w, r, "audio/x-mpegurl; charset=utf-8", f.m3u(), false)
	case strings.HasSuffix(at, ".pls"):
		f.file(w, r, "audio/x-scpls", f.pls(), false)
	case at == "/hls.m3u8":
		f.file(w, r, "application/vnd.apple.mpegurl", []byte("#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nsegment1.ts\n"), false)
	case at == "/aac":
		f.file(w, r, "audio/aac", bytes.Repeat([]byte{0xFF, 0xF1, 0x50, 0x80, 0x02, 0x1F, 0xFC}, 1000), false)
	case at == "/page":
		f.file(w, r, "text/html", []byte("<!doctype html><html><body>Radio</body></html>"), false)
	case at == "/to":
		http.Redirect(w, r, r.URL.Query().Get("at"), http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}

// station sends MP3 as fast as it is taken until the client leaves. It begins within a frame.
func (f *Fake) station(w http.ResponseWriter, r *http.Request, kind string) {
	w.Header().Set("Content-Type", kind)
	sound, cut := servicetest.MP3(Words), f.cut()
	flush := http.NewResponseController(w).Flush
	for n := 0; r.Context().Err() == nil; n++ {
		if f.isBlocked() {
			if !f.Wait(r.Context(), 10*time.Millisecond) {
				return
			}
			continue
		}
		part := sound
		if n == 0 {
			part = sound[50:]
		}
		if _, err := w.Write(part); err != nil || flush() != nil {
			return
		}
		if cut {
			servicetest.DropRequest(w)
		}
	}
}

// file sends a file, or the part of it that is asked for.
func (f *Fake) file(w http.ResponseWriter, r *http.Request, kind string, content []byte, parts bool) {
	w.Header().Set("Content-Type", kind)
	from := 0
	if parts {
		w.Header().Set("Accept-Ranges", "bytes")
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil && from < len(content) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
			w.Header().Set("Content-Length", fmt.Sprint(len(content)-from))
			w.WriteHeader(http.StatusPartialContent)
		}
	}
	content = content[from:]
	if from == 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	}
	if f.cut() {
		_, _ = w.Write(content[:len(content)/3])
		servicetest.DropRequest(w)
	}
	_, _ = w.Write(content)
}

func (f *Fake) m3u() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b bytes.Buffer
	b.WriteString("\ufeff#EXTM3U\r\n")
	for i, at := range f.list {
		fmt.Fprintf(&b, "#EXTINF:-1,Entry %d\r\n%s\r\n\r\n", i, at)
	}
	return b.Bytes()
}

func (f *Fake) pls() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b bytes.Buffer
	b.WriteString("[playlist]\n")
	for i, at := range f.list {
		fmt.Fprintf(&b, "File%d=%s\nTitle%d=Entry\nLength%d=-1\n", i+1, at, i+1, i+1)
	}
	fmt.Fprintf(&b, "NumberOfEntries=%d\nVersion=2\n", len(f.list))
	return b.Bytes()
}

// NewICY starts an old radio server, which answers with ICY in place of HTTP, and sends a file.
func NewICY(t testing.TB) *servicetest.Server {
	t.Helper()
	return servicetest.NewTCP(t, func(c net.Conn) {
		buffer := make([]byte, 4096)
		if _, err := c.Read(buffer); err != nil {
			return
		}
		_, _ = io.WriteString(c, "ICY 200 OK\r\nicy-name:Old\r\ncontent-type:audio/mpeg\r\n\r\n")
		_, _ = c.Write(servicetest.MP3(Words)) // a client that has left is none of its
	})
}
