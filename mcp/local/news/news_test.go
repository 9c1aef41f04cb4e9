package news

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/feeds"
	"xiaozhi/internal/text"
)

func item(title, about string) feeds.Item { return feeds.Item{Title: title, About: about} }

func titles(all []Headline) (t []string) {
	for _, h := range all {
		t = append(t, h.Title)
	}
	return t
}

// TestHeadlines: news are told in the language of who asks, of all feeds in turn, each once, and what is behind one of them on demand.
func TestHeadlines(t *testing.T) {
	english, chinese := feeds.New(t, item("Rain & sun", "<p>It <b>rains</b>.</p>"), item("Markets", "Up."), item("Third", "")), feeds.New(t, item("下雨了", "到处都在下雨。"), item("股市", "涨了。"))
	other := feeds.New(t, item("Rain & Sun!", "The same."), item("Football", "Two to one."))
	s, err := New(Options{Feeds: map[string][]string{"en": {english.URL() + "/rss", other.URL() + "/atom"}, "zh": {chinese.URL() + "/rdf"}}, Items: 3})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Headlines(t.Context(), "a", "", text.English)
	if want := []string{"Rain & sun", "Markets", "Football"}; err != nil || !slices.Equal(titles(got), want) || got[0].About != "It rains." || got[0].Site != "127.0.0.1" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Headlines(t.Context(), "b", "", "zh-TW"); err != nil || !slices.Equal(titles(got), []string{"下雨了", "股市"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Headlines(t.Context(), "c", "", "ja"); err != nil || titles(got)[0] != "Rain & sun" {
		t.Errorf("a language without feeds: %+v, %v", got, err)
	}
	if h, err := s.Item("a", 2, ""); err != nil || h.About != "Up." {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := s.Item("b", 0, "股市"); err != nil || h.About != "涨了。" {
		t.Errorf("%+v, %v", h, err)
	}
	for _, who := range []string{"a", "nobody"} {
		if h, err := s.Item(who, 7, ""); !errors.Is(err, ErrNoItem) {
			t.Errorf("%s: %+v, %v", who, h, err)
		}
	}
	if got, err := s.Headlines(t.Context(), "a", "two football", text.English); err != nil || !slices.Equal(titles(got), []string{"Football"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Headlines(t.Context(), "a", "chess", text.English); !errors.Is(err, ErrNothing) {
		t.Errorf("%v", err)
	}
	for i := range 2 * listeners {
		s.told.Put(fmt.Sprint(i), nil, 1)
	}
	if s.told.Len() > listeners {
		t.Errorf("%d are known", s.told.Len())
	}
}

// TestKept: a feed is asked once in ten minutes, whoever asks, and is told as it was lately when it cannot be read.
func TestKept(t *testing.T) {
	now := time.Date(2026, 11, 24, 7, 4, 0, 0, time.UTC)
	var mu sync.Mutex
	f := feeds.New(t, item("Old", ""))
	s, err := New(Options{Feeds: map[string][]string{"en": {f.URL() + "/rss"}}, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }, Timeout: 700 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { _, _ = s.Headlines(t.Context(), "a", "", text.English) })
	}
	wg.Wait()
	f.Publish(item("New", ""))
	for _, step := range []struct {
		after time.Duration
		fault servicetest.Fault
		want  string
		asked int
	}{
		{0, servicetest.None, "Old", 1}, {9 * time.Minute, servicetest.None, "Old", 1}, {2 * time.Minute, servicetest.Broken, "Old", 2}, {0, servicetest.None, "New", 3}, {5 * time.Hour, servicetest.WrongKey, "New", 4}, {2 * time.Hour, servicetest.WrongKey, "", 5},
	} {
		mu.Lock()
		now = now.Add(step.after)
		mu.Unlock()
		f.Fail(step.fault)
		got, err := s.Headlines(t.Context(), "a", "", text.English)
		if strings.Join(titles(got), " ") != step.want || (err == nil) != (step.want != "") || len(f.Requests()) != step.asked {
			t.Errorf("%+v: %+v, %v, asked %d times", step, got, err, len(f.Requests()))
		}
	}
}

// TestFaults: one feed that fails costs no other; if all fail, the error tells.
func TestFaults(t *testing.T) {
	good := feeds.New(t, item("Fine", ""))
	for fault := servicetest.None; fault < servicetest.Last; fault++ {
		bad := feeds.New(t, item("Other", ""))
		if !bad.Knows(fault) {
			continue
		}
		bad.Fail(fault)
		works := fault == servicetest.None || fault == servicetest.Slow || fault == servicetest.Odd
		s, err := New(Options{Feeds: map[string][]string{"en": {bad.URL() + "/rss", good.URL() + "/rss"}, "zh": {bad.URL() + "/rss"}}, Timeout: 700 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Headlines(t.Context(), "a", "", text.English)
		if err != nil || slices.Contains(titles(got), "Other") != works || !slices.Contains(titles(got), "Fine") {
			t.Errorf("%s: %+v, %v", fault, got, err)
		}
		if got, err := s.Headlines(t.Context(), "a", "", text.Chinese); (err == nil) != works {
			t.Errorf("%s: %+v, %v", fault, got, err)
		}
	}
	page := feeds.New(t)
	s, err := New(Options{Feeds: map[string][]string{"en": {page.URL() + "/page"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Headlines(t.Context(), "a", "", text.English); err == nil {
		t.Errorf("a page for people: %+v", got)
	}
}

// TestNew: every feed that can be named can be made, in its language.
func TestNew(t *testing.T) {
	for _, lang := range []string{"zh", "en"} {
		for _, name := range Names(lang) {
			s, err := New(Options{Feeds: map[string][]string{lang: {name}}})
			if err != nil || s.of(text.Lang(lang))[0].title == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, bad := range []map[string][]string{nil, {"en": {"nowhere"}}, {"xx-yy-zz-1": {"bbc"}}, {"en": {"ftp://x/"}}, {"en": {"bbc", "bbc", "bbc", "bbc", "bbc", "bbc", "bbc"}}, {"en": {"http://a:b@x/"}}} {
		if _, err := New(Options{Feeds: bad}); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
