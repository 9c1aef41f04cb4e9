package servicetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Trouble says what a memory service does wrong, beside the faults of its server.
type Trouble struct {
	Stall   time.Duration // everything comes so late
	Delay   time.Duration // what is kept shows so late
	Fails   bool          // what changes something is refused: by the state of an event or by status 200, where the service does so
	Foreign bool          // what is known of others is told, too
	Keeps   bool          // what is to be deleted stays, and the answer says that it is gone
}

// Item is a text that a [Mind] keeps for a user.
type Item struct {
	ID, User, Text, Run string
	Meta                map[string]any
	Shows               time.Time
}

// Mind owns the texts that the fakes of memory services keep. Its zero value is ready; it may be used by any
// number of goroutines at once.
type Mind struct {
	mu      sync.Mutex
	trouble Trouble
	items   []Item
}

// Behave has the service do something wrong from now on. The zero value: nothing.
func (m *Mind) Behave(t Trouble) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trouble = t
}

// Trouble returns what it does wrong.
func (m *Mind) Trouble() Trouble {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trouble
}

// Late waits as long as the service stalls. It reports false if the client or the server ended before.
func (m *Mind) Late(ctx context.Context, s *Server) bool {
	stall := m.Trouble().Stall
	return stall <= 0 || s.Wait(ctx, stall)
}

// Keep keeps items, unless the same is known of their user, and returns those that are new.
func (m *Mind) Keep(items ...Item) (kept []Item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range items {
		if !slices.ContainsFunc(m.items, func(k Item) bool { return k.User == i.User && k.Text == i.Text }) {
			i.Shows = time.Now().Add(m.trouble.Delay)
			m.items, kept = append(m.items, i), append(kept, i)
		}
	}
	return kept
}

// Of lists what shows of a user.
func (m *Mind) Of(user string) (all []Item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.items {
		if (i.User == user || m.trouble.Foreign) && !time.Now().Before(i.Shows) {
			all = append(all, i)
		}
	}
	return all
}

// All lists everything, whether it shows or not.
func (m *Mind) All() []Item {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.items)
}

// Edit changes the text of an item; false: there is none.
func (m *Mind) Edit(id, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.items {
		if m.items[i].ID == id {
			m.items[i].Text = text
			return true
		}
	}
	return false
}

// Delete deletes items, unless the service keeps them, and returns how many it says that it has deleted.
func (m *Mind) Delete(meant func(i Item) bool) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(m.items), meant)
	n = len(m.items) - len(rest)
	if !m.trouble.Keeps {
		m.items = rest
	}
	return n
}

// Found lists what shows of a user and is like words, the best first.
func (m *Mind) Found(user, words string, most int, threshold float64) []Item {
	type like struct {
		Item
		score float64
	}
	const dims = 256
	asked := Vector(words, dims)
	var found []like
	for _, i := range m.Of(user) {
		score := 0.0
		for n, v := range Vector(i.Text, dims) {
			score += float64(v) * float64(asked[n])
		}
		if score >= threshold {
			found = append(found, like{i, score})
		}
	}
	slices.SortStableFunc(found, func(a, b like) int {
		if a.score > b.score {
			return -1
		}
		return 1
	})
	var all []Item
	for _, f := range found[:min(len(found), most)] {
		all = append(all, f.Item)
	}
	return all
}

// Told returns what somebody says of themselves: each sentence that asks nothing.
func Told(words string) (told []string) {
	for _, sentence := range strings.FieldsFunc(words, func(r rune) bool { return strings.ContainsRune(".!。！\n", r) }) {
		if sentence = strings.TrimSpace(sentence); sentence != "" && !strings.ContainsAny(sentence, "?？") {
			told = append(told, sentence)
		}
	}
	return told
}

// Direct returns a client of a server that asks it without a socket, for tests in fake time.
func (s *Server) Direct() *http.Client { return &http.Client{Transport: direct{s.http.Config.Handler}} }

type direct struct{ http.Handler }

// RoundTrip implements [http.RoundTripper].
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// Object writes an object of JSON with a status.
func (s *Server) Object(w http.ResponseWriter, status int, v any) {
	s.Refuse(w, status, string(JSON(v).Data))
}
