// Package news tells headlines from RSS and Atom feeds, in the language of who asks, and what is behind one of them.
package news

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/lru"
	"xiaozhi/internal/text"
	"xiaozhi/mcp/local/web"
)

// feedsFile has a line for each feed that can be named: name, language, title, address.
//
//go:embed feeds.txt
var feedsFile string

const (
	keepFeed  = 10 * time.Minute
	keepStale = 6 * time.Hour // a feed that cannot be read is told as it was
	maxFeeds  = 6             // of a language
	maxItems  = 60            // of a feed
	maxAbout  = 1500          // bytes of what an item is about
	maxFeed   = 1 << 20       // bytes
	listeners = 256           // whose last headlines are known
)

// Options configure a [Service].
type Options struct {
	Feeds   map[string][]string // of each language the names or addresses of feeds, first to last
	Items   int                 // headlines that are told; 0: 5
	Timeout time.Duration       // of one feed; 0: 10 s
	Now     func() time.Time    // nil: time.Now
}

// Service tells news. All methods may be called at the same time.
type Service struct {
	options Options
	feeds   map[string][]*source
	told    *lru.Cache[string, []Headline] // last, by who was told
}

// source is a feed and what it said last.
type source struct {
	title  string // "": that of its host
	client *web.Client
	now    func() time.Time

	turn  chan struct{} // holds one while it is read, so that it is asked once; whoever reads owns what follows
	items []web.Item
	at    time.Time
}

// Headline is one of the news.
type Headline struct {
	Title string
	Site  string
	About string
}

var (
	// ErrNothing says that no news fit.
	ErrNothing = errors.New("no news fit")
	// ErrNoItem says that no headline is meant that was told.
	ErrNoItem = errors.New("no headline of those that were told")
)

// Names lists the feeds that can be named, for a language; "": for all.
func Names(lang string) (names []string) {
	for line := range strings.Lines(feedsFile) {
		if parts := strings.Split(line, "\t"); lang == "" || parts[1] == lang {
			names = append(names, parts[0])
		}
	}
	return names
}

// New checks the options.
func New(o Options) (*Service, error) {
	o.Items = cmp.Or(o.Items, 5)
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{options: o, feeds: map[string][]*source{}, told: lru.New[string, []Headline](listeners, 0)}
	for _, lang := range slices.Sorted(maps.Keys(o.Feeds)) {
		if text.TagOf(lang) == "" {
			return nil, fmt.Errorf("%q is no language", lang)
		}
		if len(o.Feeds[lang]) > maxFeeds {
			return nil, fmt.Errorf("%s has %d feeds, %d are read", lang, len(o.Feeds[lang]), maxFeeds)
		}
		for _, name := range o.Feeds[lang] {
			f, err := newSource(name, o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			s.feeds[lang] = append(s.feeds[lang], f)
		}
	}
	if len(s.feeds) == 0 {
		return nil, errors.New("there is no feed")
	}
	return s, nil
}

// newSource makes a feed of a name or an address.
func newSource(name string, o Options) (*source, error) {
	title, address := "", name
	if !strings.Contains(name, "://") {
		for line := range strings.Lines(feedsFile) {
			if parts := strings.Split(strings.TrimSpace(line), "\t"); parts[0] == name {
				title, address = parts[2], parts[3]
			}
		}
		if title == "" {
			return nil, fmt.Errorf("no feed of that name is known; known are %s, and any address", strings.Join(Names(""), ", "))
		}
	}
	client, err := web.NewClient(web.ClientOptions{Base: address, Timeout: o.Timeout, Most: maxFeed})
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(address); err == nil && title == "" {
		title = strings.TrimPrefix(u.Hostname(), "www.")
	}
	return &source{title: title, client: client, now: o.Now, turn: make(chan struct{}, 1)}, nil
}

// of returns the feeds for a language: its own, else those for English, else any.
func (s *Service) of(lang text.Lang) []*source {
	if own, ok := text.Find(s.feeds, lang); ok {
		return own
	}
	if other, ok := s.feeds[string(text.English)]; ok {
		return other
	}
	return s.feeds[slices.Sorted(maps.Keys(s.feeds))[0]]
}

// Headlines returns the newest headlines of all feeds for a language, those that hold the words of query if there is one, and
// remembers that who was told them. It fails only if no feed can be read; [ErrNothing] says that none fits.
func (s *Service) Headlines(ctx context.Context, who, query string, lang text.Lang) ([]Headline, error) {
	feeds := s.of(lang)
	items, errs := make([][]web.Item, len(feeds)), make([]error, len(feeds))
	var wg sync.WaitGroup
	for i, f := range feeds {
		wg.Go(func() { items[i], errs[i] = f.read(ctx) })
	}
	wg.Wait()
	if !slices.Contains(errs, nil) {
		return nil, errs[0]
	}
	var all []Headline
	seen := map[string]bool{}
	for n := range maxItems { // the first of each feed, then the second
		for i, f := range feeds {
			if n >= len(items[i]) || len(all) == s.options.Items {
				continue
			}
			h := Headline{Title: cmp.Or(items[i][n].Title, items[i][n].About), Site: f.title, About: items[i][n].About}
			if key := text.Bare(h.Title); !seen[key] && h.fits(query) {
				seen[key] = true
				all = append(all, h)
			}
		}
	}
	if len(all) == 0 {
		return nil, ErrNothing
	}
	s.told.Put(who, all, 1)
	return all, nil
}

// fits reports whether a headline holds all words of a query.
func (h Headline) fits(query string) bool {
	whole := strings.ToLower(h.Title + " " + h.About)
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if !strings.Contains(whole, word) {
			return false
		}
	}
	return true
}

// Item returns the headline of a number, from 1 on, or with these words, of those that who was told last. [ErrNoItem] says that there is none.
func (s *Service) Item(who string, number int, words string) (Headline, error) {
	told, _ := s.told.Get(who)
	if number >= 1 && number <= len(told) {
		return told[number-1], nil
	}
	if number == 0 && words != "" {
		for _, h := range told {
			if h.fits(words) || strings.Contains(text.Bare(h.Title), text.Bare(words)) {
				return h, nil
			}
		}
	}
	return Headline{}, ErrNoItem
}

// read returns the items of a feed. It asks every ten minutes at most; what cannot be read now is as it was lately.
func (f *source) read(ctx context.Context) ([]web.Item, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	age := f.now().Sub(f.at)
	if len(f.items) > 0 && age >= 0 && age < keepFeed {
		return f.items, nil
	}
	a, err := f.client.Do(ctx, web.Request{Accept: "application/rss+xml, application/atom+xml, application/xml;q=0.9, */*;q=0.5"})
	var items []web.Item
	if err == nil {
		items, err = web.Feed(a.Body, a.Type, maxItems, maxAbout)
	}
	switch {
	case err == nil:
		f.items, f.at = items, f.now()
	case len(f.items) > 0 && age >= 0 && age < keepStale:
		return f.items, nil
	default:
		return nil, err
	}
	return f.items, nil
}
