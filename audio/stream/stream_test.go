package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/nearby"
	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/radio"
)

// fast is an opener that does not wait for long.
func fast(o Options) *Opener {
	o.Timeout, o.Stall, o.Backoff, o.Hold = 2*time.Second, 300*time.Millisecond, time.Millisecond, 100*time.Millisecond
	return NewOpener(o)
}

// heard reads a stream until it ends, or until so much was heard.
func heard(t *testing.T, s *Stream, most time.Duration) (time.Duration, error) {
	t.Helper()
	pcm, n := make([]int16, Rate/10), 0
	for begun := time.Now(); time.Duration(n)*time.Second/Rate < most; {
		got, err := s.Read(pcm)
		if n += got; err != nil {
			return time.Duration(n) * time.Second / Rate, err
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatal("it does not go on")
		}
	}
	return time.Duration(n) * time.Second / Rate, nil
}

// length is how long the files of the fake are.
const length = 50 * 40 * time.Millisecond

// TestPlay: everything that can be played is, to its end.
func TestPlay(t *testing.T) {
	f, icy := radio.New(t), radio.NewICY(t)
	f.List("/song.mp3", "/song.wav")
	o := fast(Options{Resources: resources{"songs": {"file:///a%20b.wav": {"audio/wav", wav(t, f)}, "list": {"audio/x-mpegurl", []byte("mcp://songs/file:///a%20b.wav\nmcp://others/x\n")}}}})
	for address, want := range map[string]time.Duration{
		f.URL() + "/song.mp3": length, f.URL() + "/song.opus": length, f.URL() + "/song.wav": length, f.URL() + "/whole.mp3": length,
		f.URL() + "/x.m3u": 2 * length, f.URL() + "/x.pls": 2 * length, f.URL() + "/typed": 2 * length,
		f.URL() + "/to?at=/song.wav": length, "http" + strings.TrimPrefix(icy.URL(), "tcp"): length,
		"mcp://songs/file:///a%20b.wav": length, "mcp://songs/list": length,
	} {
		if err := o.Check(t.Context(), address, true); err != nil {
			t.Errorf("check %s: %v", address, err)
		}
		s := o.Open(t.Context(), address, true)
		most := time.Hour
		if old := strings.TrimPrefix(icy.URL(), "tcp"); strings.HasSuffix(address, old) { // a station has no end
			most = want
		}
		got, err := heard(t, s, most)
		if most > want && !errors.Is(err, io.EOF) || (got-want).Abs() > 150*time.Millisecond || s.Rate() != Rate {
			t.Errorf("%s: %s, %v, want %s", address, got, err, want)
		}
		if n, err := s.Read(make([]int16, 10)); most > want && (n > 0 || err == nil) {
			t.Errorf("%s: after its end %d, %v", address, n, err)
		}
		s.Close()
	}
}

func wav(t *testing.T, f *radio.Fake) []byte {
	t.Helper()
	resp, err := http.Get(f.URL() + "/song.wav") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// resources are those of servers by name, by URI.
type resources map[string]map[string]struct {
	mime    string
	content []byte
}

func (r resources) ReadResource(_ context.Context, server, uri string) (string, []byte, error) {
	c, ok := r[server][uri]
	if !ok {
		return "", nil, fmt.Errorf("no resource %s", uri)
	}
	return c.mime, c.content, nil
}

// TestEndless: a station plays on after its connection broke, for as long as somebody listens.
func TestEndless(t *testing.T) {
	f := radio.New(t)
	f.Cut(3)
	s := fast(Options{}).Open(t.Context(), f.URL()+"/live", true)
	got, err := heard(t, s, 8*time.Second)
	if err != nil || len(f.Requests()) != 4 {
		t.Errorf("%s, %v over %d connections", got, err, len(f.Requests()))
	}
	begun := time.Now()
	s.Close()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("closing took %s", took)
	}
	if got, err := heard(t, s, time.Hour); err == nil || got > 3*time.Second {
		t.Errorf("after it was closed: %s, %v", got, err)
	}
}

// TestSilence: while nothing comes reading gives nothing, and does not wait for it.
func TestSilence(t *testing.T) {
	f := radio.New(t)
	f.Block(true)
	o := fast(Options{Retries: 2})
	o.options.Stall = 400 * time.Millisecond
	s := o.Open(t.Context(), f.URL()+"/live", true)
	defer s.Close()
	for range 3 {
		begun := time.Now()
		if n, err := s.Read(make([]int16, 100)); n > 0 || err != nil || time.Since(begun) > time.Second {
			t.Errorf("%d, %v after %s", n, err, time.Since(begun))
		}
	}
	if got, err := heard(t, s, time.Hour); got > 0 || !errors.Is(err, ErrStalled) {
		t.Errorf("a station that gives nothing: %s, %v", got, err)
	}
}

// TestPause: an endless stream that nobody reads is let go of, and is there anew when somebody does.
func TestPause(t *testing.T) {
	f := radio.New(t)
	s := fast(Options{}).Open(t.Context(), f.URL()+"/live", true)
	defer s.Close()
	if _, err := heard(t, s, time.Second); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); f.Open() > 0; time.Sleep(time.Millisecond) { // real sockets know no fake time
		if time.Since(begun) > 10*time.Second {
			t.Fatal("the station is still connected")
		}
	}
	if got, err := heard(t, s, 4*time.Second); err != nil || len(f.Requests()) < 2 {
		t.Errorf("%s, %v over %d connections", got, err, len(f.Requests()))
	}
}

// TestResume: a file whose connection breaks goes on where it was, if parts of it can be asked for.
func TestResume(t *testing.T) {
	for path, whole := range map[string]bool{"/song.wav": true, "/song.mp3": true, "/whole.mp3": false} {
		f := radio.New(t)
		f.Cut(2)
		s := fast(Options{}).Open(t.Context(), f.URL()+path, true)
		got, err := heard(t, s, time.Hour)
		if (got-length).Abs() < 150*time.Millisecond != whole || whole && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %s, %v", path, got, err)
		}
		s.Close()
	}
}

// TestUnplayable: what is no sound is an error, for who asks before and for who listens.
func TestUnplayable(t *testing.T) {
	f := radio.New(t)
	f.List("/loop.m3u")
	closed := httptest.NewServer(nil)
	closed.Close()
	o := fast(Options{Resources: resources{}})
	for address, want := range map[string]error{
		f.URL() + "/page": ErrKind, f.URL() + "/aac": ErrKind, f.URL() + "/hls.m3u8": ErrKind, f.URL() + "/none": StatusError(404), f.URL() + "/loop.m3u": ErrPlaylist,
		"ftp://example.org/x": ErrAddress, "file:///etc/passwd": ErrAddress, "http://": ErrAddress, "nothing": ErrAddress, "http://a:b@127.0.0.1/": ErrAddress,
		f.URL() + "/to?at=file:///etc/passwd": ErrAddress, closed.URL: nil, "mcp://songs/none": nil,
		"http://169.254.169.254/latest": nearby.ErrDoor, f.URL() + "/to?at=http://169.254.169.254/": nearby.ErrDoor, "http://[fe80::1]/": nearby.ErrDoor,
	} {
		if err := o.Check(t.Context(), address, true); err == nil || want != nil && !errors.Is(err, want) || strings.Contains(err.Error(), "passwd") {
			t.Errorf("check %s: %v, want %v", address, err, want)
		}
		s := o.Open(t.Context(), address, true)
		if got, err := heard(t, s, time.Hour); got > 0 || err == nil || errors.Is(err, io.EOF) || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %s, %v, want %v", address, got, err, want)
		}
		s.Close()
	}
	for fault, want := range map[servicetest.Fault]error{servicetest.RateLimited: StatusError(503), servicetest.Broken: ErrKind, servicetest.Huge: nil, servicetest.Silent: nil} {
		f.Fail(fault)
		if err := o.Check(t.Context(), f.URL()+"/live", true); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", fault, err)
		}
	}
}

// TestPublic: an address that somebody else has said leads to no place at home, whatever stands between.
func TestPublic(t *testing.T) {
	f := radio.New(t)
	o := fast(Options{})
	u, err := url.Parse(f.URL())
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{f.URL() + "/song.mp3", "http://localhost:" + u.Port() + "/song.mp3", "http://[::ffff:127.0.0.1]:" + u.Port() + "/song.mp3", "http://0.0.0.0:" + u.Port() + "/song.mp3"} {
		if err := o.Check(t.Context(), address, false); !errors.Is(err, ErrPublic) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for host, want := range map[string]scope{"http://nas/x": atHome, "http://192.168.1.2/x": atHome, "http://radio.local/x": atHome, "http://radio.example.org/x": inPublic} {
		if got := o.scope(host, true); got != want || o.scope(host, false) != inPublic {
			t.Errorf("%s: %v", host, got)
		}
	}
	f.List(f.URL() + "/song.mp3") // the playlist of a public station
	entries, err := o.resolve(t.Context(), f.URL()+"/x.m3u", atHome, 0)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	entries[0].scope = inPublic
	if _, err := o.connect(t.Context(), &entries[0]); !errors.Is(err, ErrPublic) {
		t.Errorf("an entry that leads home: %v", err)
	}
}

// TestEnds: closing ends whatever a stream is at, and leaves no goroutine.
func TestEnds(t *testing.T) {
	before := runtime.NumGoroutine()
	f := radio.New(t)
	f.Fail(servicetest.Silent)
	ctx, cancel := context.WithCancel(t.Context())
	o := fast(Options{})
	o.options.Stall, o.options.Timeout = time.Minute, time.Minute
	o.home.Transport.(*http.Transport).ResponseHeaderTimeout = time.Minute //nolint:forcetypeassert // it is ours
	a, b := o.Open(t.Context(), f.URL()+"/live", true), o.Open(ctx, f.URL()+"/live", true)
	for len(f.Requests()) < 2 {
		runtime.Gosched()
	}
	cancel()
	begun := time.Now()
	if got, err := heard(t, b, time.Hour); got > 0 || err == nil {
		t.Errorf("%s, %v", got, err)
	}
	a.Close()
	b.Close()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	for begun := time.Now(); runtime.NumGoroutine() > before+4; runtime.Gosched() {
		if time.Since(begun) > 5*time.Second {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// TestFrameSize knows the frames of MP3 by their heads.
func TestFrameSize(t *testing.T) {
	for head, want := range map[[4]byte]int{{0xFF, 0xFB, 0x90, 0x00}: 417, {0xFF, 0xFB, 0x92, 0x00}: 418, {0xFF, 0xF3, 0x64, 0x00}: 144, {0xFF, 0xE3, 0x40, 0x00}: 208} {
		if got, ok := frameSize(head[:]); !ok || got != want {
			t.Errorf("%x: %d, %v, want %d", head, got, ok, want)
		}
	}
	for _, head := range [][4]byte{{}, {0xFF, 0xF1, 0x50, 0x80}, {0xFF, 0xFB, 0xF0, 0}, {0xFF, 0xFB, 0x9C, 0}, {0xFF, 0xFB, 0x00, 0}} {
		if got, ok := frameSize(head[:]); ok {
			t.Errorf("%x: %d", head, got)
		}
	}
}

func FuzzPlaylist(f *testing.F) {
	for _, s := range []string{"#EXTM3U\nhttp://x/a\n", "[playlist]\nFile1=http://x/a\n", "\ufeff a\r\nb", strings.Repeat("a\n", 100)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		all := playlist(content)
		if len(all) > maxEntries {
			t.Errorf("%d entries", len(all))
		}
		for _, line := range all {
			if line == "" || strings.ContainsAny(line, "\n\r\x00") {
				t.Errorf("%q", line)
			}
		}
		looksLikePlaylist(content)
	})
}
