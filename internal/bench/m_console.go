package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"xiaozhi/internal/devicetest"
)

const (
	lookAgain     = 5 * time.Second // a browser asks for its page again
	watcherMemory = 20              // MiB that all browsers may add to the process (M20)
)

// watchedPages are the pages that browsers have open, in turn.
var watchedPages = []string{"overview", "devices", "conversations", "doctor", "services"}

var (
	setupCode = regexp.MustCompile(`setup(?: code: |#)([0-9a-f]{10})`)
	topicOf   = regexp.MustCompile(`data-topic="([^"]+)"`)
)

// watching is M20: the jitter of devices that are being spoken to, among others that are only connected, while browsers
// have live pages of the console open and while they have not, in the order off, on, on, off.
func watching(ctx context.Context, r *rig) ([]Figure, error) {
	const what = "the console, watched and not"
	if r.own == nil {
		return []Figure{unmeasured("M20", what, "only of a server that the bench starts")}, nil
	}
	r.stubs.Set(r.endless())
	cookie, err := r.own.setUp(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := r.fleet(ctx, r.watch.devices-r.watch.speakers, devicetest.Options{Mode: devicetest.Manual, NoMCP: true}); err != nil {
		return nil, err
	}
	speakers, err := r.speaking(ctx, r.watch.speakers, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return nil, err
	}
	var on, off []Figure
	var events, sent int64
	base, more := 0, 0
	for _, watched := range []bool{false, true, true, false} {
		open := 0
		if watched {
			open = r.watch.browsers
		}
		crowd := openBrowsers(ctx, r.own.base, cookie, open)
		// A server lets no sentence last for longer than a minute: each window has its own.
		_, err := together(len(speakers), 4, func(i int) (*client, error) { return speakers[i], speakers[i].ask(ctx, aStory) })
		settled := errors.Join(err, pause(ctx, 3*time.Second)) // all that come at once, and pages that are made for the first time
		control := r.target.watch(ctx)
		heard, err := listenTo(ctx, speakers, r.watch.window)
		seen := control()
		memory, _ := r.target.pid.memory()
		failed := crowd.close()
		if err := errors.Join(settled, err, failed); err != nil {
			return nil, err
		}
		if n := len(heard.deaf); n > 0 {
			return nil, fmt.Errorf("%d of %d speakers were told nothing any more", n, len(speakers))
		}
		f := sampled("M20", fmt.Sprintf("jitter, %d of %d devices speaking", r.watch.speakers, r.watch.devices), ms(heard.jitter)).noted("%d underruns", heard.underruns).asJitter()
		f.Control = seen
		if watched {
			on, events, sent, more = append(on, f), events+crowd.events.Load(), sent+crowd.bytes.Load(), max(more, memory)
		} else {
			off = append(off, f)
			if base == 0 {
				base = memory
			}
		}
	}
	a, b := combine(on), combine(off)
	a.What, b.What = a.What+fmt.Sprintf(", %d browsers", r.watch.browsers), b.What+", no browser"
	figures := []Figure{a, b, noise("M20", "jitter", P50, on, off), noise("M20", "jitter", P99, on, off)}
	seconds := 2 * r.watch.window.Seconds()
	return append(figures,
		single("M20", "what browsers add to the process", "MiB", r.watch.browsers, float64(more-base)/1024, most(Value, watcherMemory)).untimed(),
		single("M20", "live parts that a browser is sent a second", "", int(events), float64(events)/seconds/float64(r.watch.browsers), least(Value, 0.01)).untimed(),
		single("M20", "KiB that a browser is sent a second", "KiB", int(events), float64(sent)/1024/seconds/float64(r.watch.browsers)).untimed()), nil
}

// setUp makes the first owner of our own server by the code in its log, and returns the cookie of the session.
func (o *own) setUp(ctx context.Context) (*http.Cookie, error) {
	found := setupCode.FindStringSubmatch(o.log())
	if found == nil {
		return nil, fmt.Errorf("no code for the console in\n%s", o.logged())
	}
	order, err := json.Marshal(map[string]string{"code": found[1], "name": "bench", "password": "a password of the bench"})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.base+"/api/v1/setup", bytes.NewReader(order))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) == 0 {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return nil, fmt.Errorf("setup of the console: %s: %s", resp.Status, body)
	}
	return resp.Cookies()[0], nil
}

// browsers have live pages of the console open. Close ends them.
type browsers struct {
	events atomic.Int64 // that all were sent
	bytes  atomic.Int64
	stop   context.CancelFunc
	group  *errgroup.Group
	client *http.Client
}

// openBrowsers lets n browsers with the cookie of a session look at pages, one at each in turn.
func openBrowsers(ctx context.Context, base string, cookie *http.Cookie, n int) *browsers {
	ctx, stop := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	b := &browsers{stop: stop, group: group, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * n}}}
	for i := range n {
		group.Go(func() error {
			first := lookAgain * time.Duration(i+1) / time.Duration(n) // people do not look in step
			if err := b.look(ctx, base, watchedPages[i%len(watchedPages)], cookie, first); ctx.Err() == nil {
				return err
			}
			return nil
		})
	}
	return b
}

func (b *browsers) close() error {
	b.stop()
	err := b.group.Wait()
	b.client.CloseIdleConnections()
	return err
}

// look loads a page, follows its live parts, and loads it again after first and then from time to time, until ctx ends.
func (b *browsers) look(ctx context.Context, base, page string, cookie *http.Cookie, first time.Duration) error {
	content, err := b.load(ctx, base+"/console/"+page, cookie)
	if err != nil {
		return err
	}
	var topics []string
	for _, found := range topicOf.FindAllStringSubmatch(content, -1) {
		topics = append(topics, found[1])
	}
	slices.Sort(topics)
	resp, err := b.get(ctx, base+"/console/events?lang=en&on="+url.QueryEscape(strings.Join(slices.Compact(topics), ",")), cookie)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		lines := bufio.NewReaderSize(resp.Body, 64<<10)
		for {
			line, err := lines.ReadString('\n')
			b.bytes.Add(int64(len(line)))
			if strings.HasPrefix(line, "data:") {
				b.events.Add(1)
			}
			if err != nil {
				return fmt.Errorf("the live parts of %s ended: %w", page, err)
			}
		}
	})
	group.Go(func() error {
		for wait := first; ; wait = lookAgain {
			if err := pause(ctx, wait); err != nil {
				return err
			}
			if _, err := b.load(ctx, base+"/console/"+page, cookie); err != nil {
				return err
			}
		}
	})
	return group.Wait()
}

func (b *browsers) load(ctx context.Context, address string, cookie *http.Cookie) (string, error) {
	resp, err := b.get(ctx, address, cookie)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return string(content), err
}

// get asks for what a session may see. The answer's body is to be closed.
func (b *browsers) get(ctx context.Context, address string, cookie *http.Cookie) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.AddCookie(cookie)
	req.Header.Set("Accept", "text/html, text/event-stream")
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", address, resp.Status), resp.Body.Close())
	}
	return resp, nil
}
