// Package songs fetches the songs that somebody has devices play by a URL, and keeps them for a while.
package songs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/audio/track"
	"xiaozhi/internal/nearby"
	"xiaozhi/internal/outbound"
)

// Limits of what is fetched.
const (
	maxSong      = 64 << 20 // bytes of one
	maxAll       = 256 << 20
	maxKept      = 32
	keepFor      = time.Hour
	fetchTime    = 60 * time.Second
	headerTime   = 15 * time.Second
	maxRedirects = 3
	maxURL       = 2000 // bytes
	fetchAtOnce  = 4
)

// Errors of songs. Others are of the connection.
var (
	ErrURL      = errors.New("it is no http or https URL without a password")
	ErrHere     = errors.New("addresses of this machine, and those at which machines find their own settings, are not asked")
	ErrTooLarge = errors.New("it is over 64 MiB")
	ErrNoSound  = errors.New("it is no mp3, wav, flac or opus file")
	ErrGone     = errors.New("it is not kept any more")
)

// StatusError says that the server answered, but not with 200.
type StatusError = outbound.StatusError

// prefix begins the ids of songs.
const prefix = "fetched:"

// Is reports whether an id is one of a song that was fetched.
func Is(id string) bool { return strings.HasPrefix(id, prefix) }

// IsURL reports whether a song is named by its URL.
func IsURL(song string) bool {
	low := strings.ToLower(strings.TrimSpace(song))
	return strings.HasPrefix(low, "http://") || strings.HasPrefix(low, "https://")
}

// Cache fetches songs into a folder of its own, which is emptied before the first. Its methods may be called at the same time.
type Cache struct {
	dir    string
	ready  func() error // empties the folder, once
	client *http.Client
	slots  chan struct{} // size fetchAtOnce: who fetches holds one

	mu   sync.Mutex
	kept map[string]*song // by URL
}

// song is one that was fetched, or is being.
type song struct {
	mu    sync.Mutex // held while it is fetched
	id    string
	title string
	bytes int64
	at    time.Time // when it was asked for last; zero: it is not there
}

// New returns a cache in a folder. here allows addresses of this machine, for tests.
func New(dir string, here bool) *Cache {
	return &Cache{
		dir: dir, ready: sync.OnceValue(func() error { return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)) }),
		slots: make(chan struct{}, fetchAtOnce), kept: map[string]*song{},
		client: outbound.NewClient(outbound.Options{
			Timeout: headerTime, Packed: true,
			Check: func(at netip.Addr) error { return check(at, here) },
			Redirect: func(req *http.Request, via []*http.Request) error {
				if len(via) > maxRedirects {
					return errors.New("there are too many redirects")
				}
				return checkURL(req.URL)
			},
		}),
	}
}

// check looks at an address right before it is asked, after its name was resolved.
func check(a netip.Addr, here bool) error {
	if nearby.IsDoor(a) || a.IsUnspecified() || a.IsLoopback() && !here {
		return ErrHere
	}
	return nil
}

func checkURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return ErrURL
	}
	return nil
}

// Fetch fetches the song of a URL, unless it is kept already, and returns the id by which it is opened, with its title.
func (c *Cache) Fetch(ctx context.Context, address string) (id, title string, err error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || len(address) > maxURL {
		return "", "", ErrURL
	}
	if err := checkURL(u); err != nil {
		return "", "", err
	}
	if err := c.ready(); err != nil {
		return "", "", err
	}
	s := c.song(u.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) > keepFor {
		ctx, stop := context.WithTimeout(ctx, fetchTime)
		defer stop()
		if err := c.fetch(ctx, u, s); err != nil {
			c.set(u.String(), nil)
			return "", "", err
		}
		c.set(u.String(), s)
	}
	s.at = time.Now()
	return s.id, s.title, nil
}

// song returns the place of a URL, and makes room for it.
func (c *Cache) song(address string) *song {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.kept[address]; s != nil {
		return s
	}
	sum := sha256.Sum256([]byte(address))
	s := &song{id: prefix + hex.EncodeToString(sum[:16])}
	c.kept[address] = s
	return s
}

// set keeps the song of a URL; nil: there is none.
func (c *Cache) set(address string, s *song) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[address] = s; s == nil {
		delete(c.kept, address)
	}
}

// fetch writes a song into its file. s.mu is held.
func (c *Cache) fetch(ctx context.Context, u *url.URL, s *song) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return ErrURL
	}
	req.Header.Set("User-Agent", "xiaozhi")
	req.Header.Set("Accept", "audio/*, application/ogg, */*;q=0.5")
	resp, err := c.client.Do(req)
	if err != nil {
		return outbound.Plain(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode != http.StatusOK:
		return StatusError(resp.StatusCode)
	case resp.ContentLength > maxSong:
		return ErrTooLarge
	}
	n, err := c.write(s.id, resp.Body)
	if err != nil {
		return err
	}
	s.bytes, s.title = n, titleOf(u)
	c.makeRoom(s)
	return nil
}

// write writes what comes into the file of an id, if it is sound.
func (c *Cache) write(id string, from io.Reader) (n int64, err error) {
	f, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // it has another name by then
	n, err = io.Copy(f, io.LimitReader(from, maxSong+1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	switch {
	case err != nil:
		return 0, outbound.Plain(err)
	case n > maxSong:
		return 0, ErrTooLarge
	}
	t, err := open(f.Name())
	if err != nil {
		return 0, ErrNoSound
	}
	if err := t.Close(); err != nil {
		return 0, err
	}
	return n, os.Rename(f.Name(), c.file(id))
}

func (c *Cache) file(id string) string { return filepath.Join(c.dir, strings.TrimPrefix(id, prefix)) }

func open(name string) (*track.Track, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return track.Open(f)
}

// makeRoom drops the songs that were asked for longest ago while there are too many beside the new one. What plays stays open.
func (c *Cache) makeRoom(fresh *song) {
	c.mu.Lock()
	defer c.mu.Unlock()
	type other struct {
		address string
		song    *song
		at      time.Time
		bytes   int64
	}
	var all []other
	total := fresh.bytes
	for _, address := range slices.Collect(maps.Keys(c.kept)) {
		s := c.kept[address]
		if s == fresh || !s.mu.TryLock() { // it is being fetched
			continue
		}
		all = append(all, other{address, s, s.at, s.bytes})
		total += s.bytes
		s.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b other) int { return a.at.Compare(b.at) })
	for _, o := range all {
		if total <= maxAll && len(c.kept) <= maxKept && time.Since(o.at) <= keepFor {
			break
		}
		delete(c.kept, o.address)
		total -= o.bytes
		_ = os.Remove(c.file(o.song.id)) // it may be gone
	}
}

// titleOf is the name of the file that a URL leads to.
func titleOf(u *url.URL) string {
	name := path.Base(u.Path)
	title := strings.TrimSpace(strings.ReplaceAll(strings.TrimSuffix(name, path.Ext(name)), "_", " "))
	return cmp.Or(strings.Trim(title, "./"), u.Hostname())
}

// Open opens a song that was fetched. The caller closes it.
func (c *Cache) Open(id string) (*track.Track, error) {
	name := strings.TrimPrefix(id, prefix)
	if _, err := hex.DecodeString(name); !Is(id) || err != nil {
		return nil, ErrGone
	}
	t, err := open(c.file(id))
	if errors.Is(err, os.ErrNotExist) {
		err = ErrGone
	}
	return t, err
}
