package websocket

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/connection"
	"xiaozhi/connection/identity"
)

// TestCrowdOfStrangers: one address that opens all the connections that it can leaves
// the places of known devices free, its own among them, and does not fill the log.
func TestCrowdOfStrangers(t *testing.T) {
	var book *identity.Book
	bubble(t, known(t, identity.Options{Mode: identity.Open}, &book), func(t *testing.T, r *rig) {
		own := token(t, book, mac, "client-1")
		open := 0
		for n := range 300 {
			ws, answer, err := r.upgrade("/xiaozhi/v1/", headers(mac, fmt.Sprint("stranger-", n), ""))
			if err == nil {
				open++
				defer ws.Close()
			} else if answer == nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
				t.Fatalf("%v, %v", answer, err)
			}
		}
		if open != 50 {
			t.Errorf("%d are open", open)
		}
		hello(r, headers(mac, "client-1", own)).alive(r.talk(0))
		hello(r, headers("24:6f:28:aa:10:03", "client-3", "")).alive(r.talk(1))
		if n := strings.Count(r.log.String(), "\n"); n > 300 {
			t.Errorf("%d lines", n)
		}
	})
}

// TestStrangersComeAndGo: places are given back, and who connects all the time is
// logged a few times only.
func TestStrangersComeAndGo(t *testing.T) {
	var book *identity.Book
	bubble(t, known(t, identity.Options{Mode: identity.Open}, &book), func(t *testing.T, r *rig) {
		token(t, book, mac, "client-1")
		for n := range 300 {
			ws, _, err := r.upgrade("/xiaozhi/v1/", headers(mac, fmt.Sprint("stranger-", n), ""))
			if err != nil {
				t.Fatalf("%d: %v", n, err)
			}
			ws.Close()
			synctest.Wait()
		}
		if n := len(r.log.lines("device connected")); n != 100 {
			t.Errorf("%d connections are logged", n)
		}
	})
}

// TestStrangersLeaveHalf: from however many addresses they come, strangers take at
// most half of all places.
func TestStrangersLeaveHalf(t *testing.T) {
	var book *identity.Book
	set := known(t, identity.Options{Mode: identity.Open}, &book)
	bubble(t, func(s *setup) { set(s); s.MaxDevices = 20 }, func(t *testing.T, r *rig) {
		token(t, book, mac, "client-1")
		var rooms []*connection.Room
		for n := range 30 {
			room, err := r.registry.Reserve(connection.Peer{Visit: identity.Visit{
				Address: mac, ClientID: fmt.Sprint("stranger-", n), From: fmt.Sprintf("192.168.1.%d", n),
			}})
			if err == nil {
				rooms = append(rooms, room)
			}
		}
		if len(rooms) != 10 {
			t.Errorf("%d have places", len(rooms))
		}
		for n := range 10 {
			hello(r, headers(fmt.Sprintf("24:6f:28:aa:20:%02x", n), "x", ""))
		}
		if n := r.registry.Connected(); n != 10 {
			t.Errorf("%d known devices are connected", n)
		}
		for _, room := range rooms {
			room.Cancel()
		}
		room, err := r.registry.Reserve(connection.Peer{Visit: identity.Visit{Address: mac, ClientID: "more"}})
		if err != nil {
			t.Fatal(err)
		}
		room.Cancel()
	})
}

// TestNamedVisitorsAreNone: a device that has named itself, and is known by it, is
// counted no more.
func TestNamedVisitorsAreNone(t *testing.T) {
	var book *identity.Book
	set := known(t, identity.Options{Mode: identity.Open}, &book)
	bubble(t, func(s *setup) { withLight(s); set(s) }, func(t *testing.T, r *rig) {
		for n := range 60 {
			p := r.dialWith(http.Header{"Client-Id": {fmt.Sprint("client-", n)}})
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"r1","method":"mcp/registerTools","params":{"mac_addr":"24:6f:28:aa:20:%02x","tools":[]}}`, n))
			synctest.Wait()
		}
		if n := r.registry.Connected(); n != 60 {
			t.Errorf("%d are connected", n)
		}
	})
}

// TestRegularsFindRoom: made-up devices that fill a server, which mode open takes for
// known, make room for a device that a person has accepted, the newest first, visitors
// before them. Regulars make room for nobody.
func TestRegularsFindRoom(t *testing.T) {
	var book *identity.Book
	set := known(t, identity.Options{Mode: identity.Open}, &book)
	bubble(t, func(s *setup) { set(s); s.MaxDevices = 4 }, func(t *testing.T, r *rig) {
		const other = "24:6f:28:aa:10:03"
		for id, client := range map[string]string{mac: "client-1", other: "client-3"} {
			token(t, book, id, client)
			if _, err := book.Accept(t.Context(), id, "owner"); err != nil {
				t.Fatal(err)
			}
		}
		var crowd []*peer
		for n := range 3 {
			crowd = append(crowd, hello(r, headers(fmt.Sprintf("02:00:00:00:00:%02x", n), "x", "")))
			time.Sleep(time.Millisecond)
		}
		crowd = append(crowd, hello(r, headers(mac, "stranger", "")))
		if _, answer, err := r.upgrade("/xiaozhi/v1/", headers("24:6f:28:aa:10:04", "client-4", "")); err == nil || answer.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a new device: %v", err)
		}
		first := hello(r, headers(mac, "client-1", token(t, book, mac, "client-1")))
		<-crowd[3].done // the visitor
		second := hello(r, headers(other, "client-3", token(t, book, other, "client-3")))
		<-crowd[2].done // the newest
		time.Sleep(time.Second)
		if n := r.registry.Connected(); n != 4 {
			t.Errorf("%d are connected", n)
		}
		first.alive(r.talk(4))
		second.alive(r.talk(5))
	})
	bubble(t, func(s *setup) { set(s); s.MaxDevices = 1 }, func(t *testing.T, r *rig) {
		for n := range 2 {
			id := fmt.Sprintf("24:6f:28:aa:10:%02x", n)
			token(t, book, id, "x")
			if _, err := book.Accept(t.Context(), id, "owner"); err != nil {
				t.Fatal(err)
			}
		}
		hello(r, headers("24:6f:28:aa:10:00", "x", "")).alive(r.talk(0))
		if _, answer, err := r.upgrade("/xiaozhi/v1/", headers("24:6f:28:aa:10:01", "x", "")); err == nil || answer.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("another regular: %v", err)
		}
	})
}
