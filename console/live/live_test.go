package live

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
)

var anybody = account.Need{Role: account.Viewer}

// page is the browser's end of a stream.
type page struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ResponseRecorder.Write(b)
}

func (p *page) FlushError() error                    { return nil }
func (p *page) SetWriteDeadline(time.Time) error     { return nil }
func (p *page) Unwrap() http.ResponseWriter          { return nil }
func (p *page) WriteString(text string) (int, error) { return p.Write([]byte(text)) }

func (p *page) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Body.String()
}

// open begins a stream of a viewer.
func open(ctx context.Context, h *Hub, on string) (*page, *sync.WaitGroup) {
	p := &page{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodGet, "/console/events?on="+on, nil).WithContext(ctx)
	r = access.As(r, account.Person{Name: "ann", Role: account.Viewer})
	var done sync.WaitGroup
	done.Go(func() { h.serve(p, r) })
	return p, &done
}

// TestTimeChangesPages: what time alone changes arrives at the next heartbeat, and nothing else is looked at for that.
func TestTimeChangesPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rendered := 0
		old := func(*http.Request, string) ([]Part, error) {
			rendered++
			return []Part{{"e", strconv.Itoa(rendered)}}, nil
		}
		h := New(access.New(access.Options{}), atOnce, unwatched, Topic{Name: "x", Need: anybody, Ages: true, Parts: old}, Topic{Name: "y", Need: anybody, Parts: func(*http.Request, string) ([]Part, error) {
			return []Part{{"f", strconv.Itoa(rendered)}}, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		p, done := open(ctx, h, "x:key,y")
		time.Sleep(2*heartbeat + time.Second)
		cancel()
		done.Wait()
		if got := p.all(); rendered != 3 || !strings.Contains(got, `"id":"e","html":"3"`) || strings.Count(got, `"id":"f"`) != 1 {
			t.Errorf("rendered %d times:\n%s", rendered, got)
		}
	})
}

// TestChangesArriveOnce: a hundred changes within a moment are two writings, the same content is one.
func TestChangesArriveOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rendered, words := 0, "a"
		h := New(access.New(access.Options{}), atOnce, unwatched, Topic{Name: "x", Need: anybody, Parts: func(*http.Request, string) ([]Part, error) {
			rendered++
			return []Part{{"e", words}}, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		p, done := open(ctx, h, "x,unknown")
		synctest.Wait()
		words = "b"
		for range 100 {
			h.Changed("x", "")
		}
		time.Sleep(time.Second)
		h.Changed("x", "") // nothing differs
		time.Sleep(time.Second)
		cancel()
		done.Wait()
		if rendered > 3 || strings.Count(p.all(), `"html":"a"`) != 1 || strings.Count(p.all(), `"html":"b"`) != 1 {
			t.Errorf("rendered %d times:\n%s", rendered, p.all())
		}
	})
}

// TestOnlyWhatPersonMaySee: a topic that needs a role shows nothing to who has none, and neither does a failed one.
func TestOnlyWhatPersonMaySee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		part := func(*http.Request, string) ([]Part, error) { return []Part{{"e", "secret"}}, nil }
		h := New(access.New(access.Options{}), atOnce, unwatched,
			Topic{Name: "owners", Need: account.Need{Role: account.Owner}, Parts: part},
			Topic{Name: "gone", Need: anybody, Owner: func(*http.Request, string) (string, error) { return "", errors.New("no") }, Parts: part},
			Topic{Name: "broken", Need: anybody, Parts: func(*http.Request, string) ([]Part, error) { return nil, errors.New("no") }})
		ctx, cancel := context.WithCancel(t.Context())
		p, done := open(ctx, h, "owners,gone:1,broken")
		time.Sleep(time.Second)
		cancel()
		done.Wait()
		if strings.Contains(p.all(), "secret") {
			t.Error(p.all())
		}
	})
}

// TestKeys: a change of one object reaches who follows it or all of them, and no other.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := map[string]int{}
		h := New(access.New(access.Options{}), atOnce, unwatched, Topic{Name: "d", Need: anybody, Parts: func(_ *http.Request, key string) ([]Part, error) {
			n[key]++
			return nil, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		_, done := open(ctx, h, "d:1,d:2,d")
		time.Sleep(time.Second)
		h.Changed("d", "1")
		time.Sleep(time.Second)
		cancel()
		done.Wait()
		if n["1"] != 2 || n["2"] != 1 || n[""] != 2 {
			t.Error(n)
		}
	})
}

// TestCloseEndsStreams: the server's end is the streams' end, and a later one is refused.
func TestCloseEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(access.New(access.Options{}), atOnce, unwatched)
		_, done := open(t.Context(), h, "x")
		synctest.Wait()
		h.Close()
		done.Wait()
		p, done := open(t.Context(), h, "x")
		done.Wait()
		if p.Code != http.StatusServiceUnavailable {
			t.Error(p.Code)
		}
	})
}

// atOnce lets parts be made at once.
func atOnce(context.Context) func() { return func() {} }

// unwatched takes no note of streams.
func unwatched() func() { return func() {} }

// TestStreamsAreWatched: whoever wants to know is told of each stream, and of its end.
func TestStreamsAreWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watched := 0 // at most one stream begins or ends at a time
		h := New(access.New(access.Options{}), atOnce, func() func() { watched++; return func() { watched-- } })
		ctx, cancel := context.WithCancel(t.Context())
		_, first := open(ctx, h, "x")
		synctest.Wait()
		_, second := open(t.Context(), h, "x")
		synctest.Wait()
		if watched != 2 {
			t.Errorf("%d of 2 streams", watched)
		}
		cancel()
		first.Wait()
		if watched != 1 {
			t.Errorf("%d of the one that is left", watched)
		}
		h.Close()
		second.Wait()
		if watched != 0 {
			t.Errorf("%d of none", watched)
		}
	})
}
