package gateway

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/gateway/offer"
)

// people are accounts with tokens, which may be revoked and changed.
type people struct {
	acts   []string // that were kept
	mu     sync.Mutex
	tokens map[string]catalog.Token // by what is shown
}

func (p *people) find(_ context.Context, shown string) (*catalog.Token, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.tokens[shown]
	if !ok {
		return nil, nil
	}
	was := *t.Account
	of := was
	of.Holds = func(context.Context) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		now, ok := p.tokens[shown]
		return ok && slices.Equal(now.Account.Devices, was.Devices)
	}
	t.Account = &of
	return &t, nil
}

func (p *people) revoke(shown string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tokens, shown)
}

const (
	otherID     = "24:6f:28:bb:20:03"
	otherStream = "device-246f28bb2003"
)

// newPeopleRig has a kitchen of Ann, who owns nothing else, the speaker of somebody else, and tokens of Ann, of the
// owner, and of one who may look at counts only.
func newPeopleRig(t *testing.T) (*rig, *people) {
	t.Helper()
	ann := func(a catalog.Account) *catalog.Account {
		a.Person, a.Devices = "ann", []string{kitchenID}
		return &a
	}
	p := &people{tokens: map[string]catalog.Token{
		"ann-all":   {Name: "ann/all", Account: ann(catalog.Account{Read: true, Say: true, Tools: true})},
		"ann-admin": {Name: "ann/admin", Account: ann(catalog.Account{Read: true, Say: true, Tools: true, Admin: true})},
		"ann-read":  {Name: "ann/read", Account: ann(catalog.Account{Read: true})},
		"ann-say":   {Name: "ann/say", Account: ann(catalog.Account{Say: true})},
		"ann-tools": {Name: "ann/tools", Account: ann(catalog.Account{Tools: true})},
		"ann-time":  {Name: "ann/time", Streams: []string{"time"}, Account: ann(catalog.Account{Read: true, Say: true, Tools: true})},
		"viewer":    {Name: "vic/x", Account: &catalog.Account{Person: "vic", Read: true}},
		"owner":     {Name: "olga/x", Account: &catalog.Account{Person: "olga", Whole: true, Read: true, Say: true, Tools: true, Admin: true}},
		"owner-rd":  {Name: "olga/y", Account: &catalog.Account{Person: "olga", Whole: true, Read: true}},
	}}
	r := newRig(t, func(o *Options) {
		o.Access.Tokens = []catalog.Token{{Name: "file", Token: "of-the-settings"}}
		o.Access.Account = p.find
		o.Audit = func(_ context.Context, who catalog.Caller, tool string, done bool) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.acts = append(p.acts, fmt.Sprint(who.Name(), " ", tool, " ", done))
		}
		o.Offer.Acts.Say = func(_ context.Context, id, words string, _ bool) (offer.Said, error) {
			return offer.Said{Heard: id + " said " + words, Whole: true}, nil
		}
	})
	r.home.connect(otherID, "bedroom", nil)
	r.DeviceChanged(otherID)
	until(t, "the other speaker", func() bool {
		return strings.Contains(r.do("GET", "/api/mcp/tools/streams", "", bearerOf("of-the-settings")).body, otherStream)
	})
	return r, p
}

func bearerOf(token string) string { return "Authorization: Bearer " + token }

// newRecorder asks a handler with a token.
func newRecorder(h http.Handler, method, path, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(`{"name":"self.get_device_status"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestAccountSees: a token of a member shows their own devices, and nothing of the server's or of other people's; that
// of an owner shows all, that of a viewer no device.
func TestAccountSees(t *testing.T) {
	r, _ := newPeopleRig(t)
	for token, want := range map[string][3]bool{ // kitchen, the other one, the server's own
		"ann-all": {true, false, false}, "ann-admin": {true, false, false}, "ann-read": {true, false, false}, "ann-say": {true, false, false},
		"ann-time": {}, "viewer": {}, "owner": {true, true, true}, "of-the-settings": {true, true, true},
	} {
		a := r.do("GET", "/api/mcp/tools", "", bearerOf(token))
		if a.status != 200 {
			t.Fatalf("%s: %d %s", token, a.status, a.body)
		}
		all := names(t, field(t, a.body, "tools"))
		has := func(stream string) bool {
			return slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, stream+".") })
		}
		if got := [3]bool{has(kitchenStream), has(otherStream), has("system")}; got != want {
			t.Errorf("%s sees %v, want %v", token, got, want)
		}
		streams := r.do("GET", "/api/mcp/tools/streams", "", bearerOf(token)).body
		if strings.Contains(streams, otherStream) != want[1] {
			t.Errorf("%s: %s", token, streams)
		}
		resources := r.do("GET", "/api/mcp/resources", "", bearerOf(token)).body
		kitchen := want[0] && token != "ann-say" // who may only speak reads nothing
		if strings.Contains(resources, "246f28aa1002/transcript") != kitchen || strings.Contains(resources, "246f28bb2003") != want[1] || strings.Contains(resources, "xiaozhi://log") != want[2] {
			t.Errorf("%s: %s", token, resources)
		}
		devices := r.DeviceAPI(r.home)
		w := newRecorder(devices, "GET", "/api/devices", token)
		if token == "ann-say" {
			if w.Code != http.StatusForbidden {
				t.Errorf("%s lists devices: %d", token, w.Code)
			}
			continue
		}
		if strings.Contains(w.Body.String(), kitchenID) != want[0] || strings.Contains(w.Body.String(), otherID) != want[1] {
			t.Errorf("%s: %s", token, w.Body)
		}
	}
}

// TestAccountCalls: what a token may call follows from its scopes, and the devices of other people stay out of reach
// however they are named.
func TestAccountCalls(t *testing.T) {
	r, p := newPeopleRig(t)
	volume := func(stream string) string {
		return `{"name":"` + stream + `.self.audio_speaker.set_volume","arguments":{"volume":5}}`
	}
	say := func(device string) string {
		return `{"name":"device.say","arguments":{"device_id":"` + device + `","text":"hi","now":false}}`
	}
	const now = `{"name":"time.now","arguments":{}}`
	for _, c := range []struct {
		token, body string
		want        int
		ok          bool
	}{
		{"ann-all", volume(kitchenStream), 200, true},
		{"ann-all", volume(otherStream), 404, false},
		{"ann-admin", volume(otherStream), 404, false},
		{"ann-all", say("kitchen"), 200, true},
		{"ann-all", say("bedroom"), 200, false},
		{"ann-all", say(otherID), 200, false},
		{"ann-all", say(otherStream), 200, false},
		{"ann-admin", say(otherID), 200, false},
		{"ann-all", `{"name":"system.info","arguments":{}}`, 404, false},
		{"ann-read", volume(kitchenStream), 403, false},
		{"ann-read", say("kitchen"), 403, false},
		{"ann-read", now, 200, true},
		{"ann-say", say("kitchen"), 200, true},
		{"ann-say", volume(kitchenStream), 403, false},
		{"ann-say", now, 403, false},
		{"ann-tools", volume(kitchenStream), 200, true},
		{"ann-time", now, 200, true},
		{"ann-time", volume(kitchenStream), 404, false},
		{"viewer", volume(kitchenStream), 404, false},
		{"viewer", say("kitchen"), 403, false},
		{"owner", volume(otherStream), 200, true},
		{"owner", say("bedroom"), 200, true},
		{"owner-rd", volume(otherStream), 403, false},
	} {
		a := r.do("POST", "/api/mcp/tools/call", c.body, bearerOf(c.token))
		if a.status != c.want || strings.Contains(a.body, `"success":true`) != c.ok {
			t.Errorf("%s %s: %d %s", c.token, c.body, a.status, a.body)
		}
		if strings.Contains(a.body, "bedroom") && !c.ok && strings.Contains(c.body, otherID) {
			t.Errorf("%s is told of what is not theirs: %s", c.token, a.body)
		}
	}
	devices := r.DeviceAPI(r.home)
	for token, want := range map[string][2]int{"ann-all": {200, 404}, "ann-read": {403, 403}, "ann-say": {403, 403}, "viewer": {403, 403}, "owner": {200, 200}} {
		for i, id := range []string{kitchenID, otherID} {
			if w := newRecorder(devices, "POST", "/api/devices/"+id+"/tools/call", token); w.Code != want[i] {
				t.Errorf("%s %s: %d %s", token, id, w.Code, w.Body)
			}
		}
	}
	p.mu.Lock()
	kept := strings.Join(p.acts, "\n")
	p.mu.Unlock()
	for _, want := range []string{
		"ann/all " + kitchenStream + ".self.audio_speaker.set_volume true", "ann/all device.say true", "ann/all device.say false",
		"ann/read device.say false", "ann/all " + kitchenStream + ".self.get_device_status true",
	} {
		if !strings.Contains(kept, want) {
			t.Errorf("%q is not kept of\n%s", want, kept)
		}
	}
	if strings.Contains(kept, "time.now") || strings.Contains(kept, "hi") && strings.Contains(kept, `"hi"`) {
		t.Errorf("what changes nothing is kept, or words are:\n%s", kept)
	}
	owners := r.ForOwner(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for token, want := range map[string]int{"owner": 200, "owner-rd": 403, "ann-admin": 403, "of-the-settings": 403, "viewer": 403} {
		if w := newRecorder(owners, "GET", "/api/pairing", token); w.Code != want {
			t.Errorf("%s at what is the owner's: %d", token, w.Code)
		}
	}
}

// TestAccountStreamsEnd: all that a token has open ends when it is revoked, or when what it may do changes, and nothing
// that others have open.
func TestAccountStreamsEnd(t *testing.T) {
	for name, change := range map[string]func(*people){
		"revoked": func(p *people) { p.revoke("ann-all") },
		"a device less": func(p *people) {
			p.mu.Lock()
			defer p.mu.Unlock()
			now := *p.tokens["ann-all"].Account
			now.Devices = nil
			p.tokens["ann-all"] = catalog.Token{Name: "ann/all", Account: &now}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, p := newPeopleRig(t)
			ends := make(chan string, 3)
			open := func(what, path, token string) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+token)
				req.Header.Set("Accept", "text/event-stream")
				resp, err := http.DefaultTransport.RoundTrip(req)
				if err != nil || resp.StatusCode != 200 {
					t.Fatal(what, resp, err)
				}
				t.Cleanup(func() { resp.Body.Close() })
				go func() {
					for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
					}
					ends <- what
				}()
			}
			open("events", "/api/mcp/connect", "ann-all")
			open("others", "/api/mcp/connect", "ann-read")
			socket := r.dialSocket("?token=ann-all", nil)
			go func() {
				for {
					if _, _, err := socket.ReadMessage(); err != nil {
						ends <- "socket"
						return
					}
				}
			}()
			id := r.initialize("/api/mcp/jsonrpc", bearerOf("ann-all"))
			running, ended := r.waiting()
			call := make(chan answer, 1)
			until(t, "the tool", func() bool {
				return strings.Contains(r.do("GET", "/api/mcp/tools", "", bearerOf("ann-all")).body, "slow.waits")
			})
			go func() { call <- r.do("POST", "/api/mcp/tools/call", `{"name":"slow.waits"}`, bearerOf("ann-all")) }()
			<-running
			change(p)
			for over := map[string]bool{}; len(over) < 2; {
				what := <-ends
				if what == "others" {
					t.Fatal("what others have open ended")
				}
				over[what] = true
			}
			<-ended
			<-call
			until(t, "the session to end", func() bool {
				r.sessions.mu.Lock()
				defer r.sessions.mu.Unlock()
				return len(r.sessions.byID) == 0
			})
			list := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, bearerOf("ann-all"), "Mcp-Session-Id: "+id)
			if list.status == 200 {
				t.Errorf("the session goes on: %s", list.body)
			}
			if a := r.do("GET", "/api/mcp/tools", "", bearerOf("ann-all")); name == "revoked" && a.status != 401 {
				t.Errorf("a revoked token: %d", a.status)
			} else if strings.Contains(a.body, kitchenStream) {
				t.Errorf("a device that is not theirs any more is shown: %s", a.body)
			}
		})
	}
}

// TestAccountRate: all tokens of a person share a rate and places; nobody else's.
func TestAccountRate(t *testing.T) {
	r, _ := newPeopleRig(t)
	refused := 0
	for i := range 90 {
		token := []string{"ann-all", "ann-read", "ann-tools"}[i%3]
		if a := r.do("GET", "/api/mcp/tools/streams", "", bearerOf(token)); a.status == 429 {
			refused++
		}
	}
	if refused == 0 {
		t.Error("90 requests of one person at once")
	}
	for range 60 {
		if a := r.do("GET", "/api/mcp/tools/streams", "", bearerOf("of-the-settings")); a.status != 200 {
			t.Fatalf("another token: %d", a.status)
		}
	}
	of := catalog.Caller{Token: &catalog.Token{Name: "a", Account: &catalog.Account{Person: "ann"}}}
	places := newSessions()
	for i := range maxPersonSessions + 1 {
		if _, ok := places.open(of, func() {}); ok != (i < maxPersonSessions) {
			t.Errorf("stream %d: %v", i, ok)
		}
	}
}
