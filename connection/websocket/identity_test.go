package websocket

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"

	"xiaozhi/connection"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/wire"
)

// known has devices identified by a book, all of them from a private network.
func known(t *testing.T, o identity.Options, book **identity.Book) func(*setup) {
	t.Helper()
	return func(s *setup) {
		o.Records, o.Log = identity.NewMemory(), s.Log
		b, err := identity.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		s.Identify = func(v identity.Visit) identity.Guest {
			v.Near = true
			return b.Arrive(v)
		}
		s.NewFarewell = func(w wire.Session, out wire.Outbox, cause error) connection.Conversation {
			return &fakeFarewell{fakeTalk{session: w, out: out, over: make(chan error, 1)}, cause}
		}
		*book = b
	}
}

// fakeFarewell says why the device is turned away, and hangs up.
type fakeFarewell struct {
	fakeTalk
	why error
}

func (f *fakeFarewell) Post(ev wire.Event) error {
	f.out.Send(wire.Message{Kind: wire.MessageSTT, Text: f.why.Error()})
	f.out.HangUp(f.why)
	return nil
}

const mac = "24:6f:28:aa:10:02"

func headers(id, client, token string) http.Header {
	h := http.Header{"Device-Id": {id}, "Client-Id": {client}}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h
}

func hello(r *rig, h http.Header) *peer {
	r.t.Helper()
	p := r.dialWith(h)
	p.send(`{"type":"hello","version":1,"transport":"websocket"}`)
	synctest.Wait()
	return p
}

// token is that of a device, which it has used.
func token(t *testing.T, b *identity.Book, id, client string) string {
	t.Helper()
	v := identity.Visit{Address: id, ClientID: client, Near: true}
	v.Token = b.Provision(t.Context(), v, identity.Description{Keeps: true}).Token
	if g := b.Arrive(v); !g.Proven {
		t.Fatalf("%+v", g)
	}
	return v.Token
}

// TestStrangerBesideTheFirst: whoever says the name of a device that talks, in any
// spelling, gets a place and a record of its own.
func TestStrangerBesideTheFirst(t *testing.T) {
	var book *identity.Book
	bubble(t, known(t, identity.Options{Mode: identity.Open}, &book), func(t *testing.T, r *rig) {
		first := hello(r, headers(mac, "client-1", token(t, book, mac, "client-1")))
		for n, said := range []string{mac, "24-6F-28-AA-10-02", "246f28aa1002", "246F.28AA.1002"} {
			hello(r, headers(said, "client-2", ""))
			talk := r.talk(n + 1)
			if id := talk.session.DeviceID; id == mac || !strings.HasPrefix(id, mac+"~") || !talk.session.Unknown {
				t.Errorf("%s is %+v", said, talk.session)
			}
		}
		first.alive(r.talk(0))
		if n := r.registry.Connected(); n != 2 {
			t.Errorf("%d connected", n)
		}
	})
}

// TestOnlyTheSamePairReplaces: a live device that has shown its token makes room only
// for one that shows it too.
func TestOnlyTheSamePairReplaces(t *testing.T) {
	var book *identity.Book
	bubble(t, known(t, identity.Options{Mode: identity.Open}, &book), func(t *testing.T, r *rig) {
		own := token(t, book, mac, "client-1")
		first := hello(r, headers(mac, "client-1", own))
		for _, shown := range []string{"", "wrong", own[:len(own)-1]} {
			p := hello(r, headers("246F28AA1002", "client-1", shown))
			p.send(`{"type":"listen","state":"start","mode":"auto"}`)
			<-p.done
			if texts := p.texts(); !strings.Contains(texts[len(texts)-1], "another connection has proven") {
				t.Errorf("with %q: %q", shown, texts)
			}
			if closed := p.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != 1000 {
				t.Errorf("closed by %v", closed)
			}
		}
		first.alive(r.talk(0))
		second := hello(r, headers(mac, "client-1", own))
		<-first.done
		if !errors.Is(r.talk(0).cause, connection.ErrReplaced) {
			t.Errorf("the first ended by %v", r.talk(0).cause)
		}
		second.alive(r.talk(1))
	})
}

// TestUnpairedIsTold: the socket of a device that must be paired is accepted, it is
// told its code, and it is closed. It takes nobody's place.
func TestUnpairedIsTold(t *testing.T) {
	var book *identity.Book
	bubble(t, known(t, identity.Options{Mode: identity.Ask}, &book), func(t *testing.T, r *rig) {
		p := hello(r, headers(mac, "client-1", "of another server"))
		if len(r.talks) != 0 || r.registry.Connected() != 1 {
			t.Fatalf("%d conversations", len(r.talks))
		}
		p.send(`{"type":"listen","state":"start","mode":"auto"}`)
		<-p.done
		if texts := p.texts(); len(texts) != 2 || !strings.Contains(texts[1], "must be paired first") {
			t.Errorf("%q", texts)
		}
		list := book.List()
		if len(list) != 1 || len(list[0].Code) != 6 {
			t.Fatalf("%+v", list)
		}
		if _, err := book.Accept(t.Context(), list[0].Code, "anna"); err != nil {
			t.Fatal(err)
		}
		hello(r, headers(mac, "client-1", ""))
		if s := r.talk(0).session; s.DeviceID != mac || s.Unknown {
			t.Errorf("%+v", s)
		}
	})
}

// A device that names itself by its registration is judged as any other.
func TestNamelessIsIdentified(t *testing.T) {
	var book *identity.Book
	set := known(t, identity.Options{Mode: identity.Open}, &book)
	bubble(t, func(s *setup) { withLight(s); set(s) }, func(t *testing.T, r *rig) {
		register := func(client, address string) *peer {
			p := r.dialWith(http.Header{"Client-Id": {client}})
			p.send(`{"jsonrpc":"2.0","id":"r1","method":"mcp/registerTools","params":{"mac_addr":"` + address + `","tools":[]}}`)
			synctest.Wait()
			return p
		}
		register("client-1", "24-6F-28-AA-10-02")
		register("client-2", "246f28aa1002")
		if s := r.talk(0).session; s.DeviceID != mac || s.Unknown {
			t.Errorf("the first is %+v", s)
		}
		if s := r.talk(1).session; s.DeviceID == mac || !s.Unknown {
			t.Errorf("the second is %+v", s)
		}
		if err := book.Refuse(t.Context(), mac, "anna"); err != nil {
			t.Fatal(err)
		}
		p := register("client-1", mac)
		if texts := p.texts(); len(texts) == 0 || !strings.Contains(texts[0], "refused by a person") {
			t.Errorf("%q", texts)
		}
	})
}

// TestBrowserOrigins: a web page of somebody else may not be a device.
func TestBrowserOrigins(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		for origin, want := range map[string]int{
			"https://evil.example": 403, "null": 403, "http://localhost:8006": 101, "http://127.0.0.1": 101, "http://server": 403, "": 101,
		} {
			h := http.Header{"Device-Id": {"page"}}
			if origin != "" {
				h.Set("Origin", origin)
			}
			_, answer, err := r.upgrade("/xiaozhi/v1/", h)
			if answer == nil || answer.StatusCode != want {
				t.Errorf("%q: %v, %v", origin, answer, err)
			}
		}
		if !strings.Contains(r.log.String(), "server.origins") {
			t.Errorf("the log does not say so: %s", r.log)
		}
	})
}
