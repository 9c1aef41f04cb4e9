package websocket

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"

	"xiaozhi/connection/identity"
)

// begin sends a long text message but for its end, from one of the peers after the other: of those that send at once,
// some may be refused for the room of others that are refused and have not given it back.
func begin(peers []*peer, size int) {
	raw := frameUp(0x01, []byte(`{"type":"mcp"`+strings.Repeat(" ", size)))
	for _, p := range peers {
		_, _ = p.ws.NetConn().Write(raw)
		synctest.Wait()
	}
}

// turnedDown counts the peers that were told to try again later.
func turnedDown(peers []*peer) (n int) {
	for _, p := range peers {
		for _, closed := range p.of(websocket.CloseMessage) {
			if closed.code == websocket.CloseTryAgainLater {
				n++
			}
		}
	}
	return n
}

// TestBytesOfAllDevices: devices that all begin a long message hold no more than 64 MiB
// together; what others say every day has room, and all of it is given back.
func TestBytesOfAllDevices(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		well := r.greet("well")
		for round := range 2 {
			var peers []*peer
			for n := range 80 {
				peers = append(peers, r.greet(fmt.Sprintf("d%d-%d", round, n)))
			}
			begin(peers, 900<<10) // which takes 1 MiB
			if n := turnedDown(peers); n != 15 {
				t.Errorf("round %d: %d of 80 are told to come later", round, n)
			}
			well.send(`{"type":"abort","reason":"` + strings.Repeat("x", 7<<10) + `"}`)
			well.alive(r.talk(0))
			for _, p := range peers {
				p.ws.NetConn().Close()
				<-p.done
			}
			synctest.Wait()
		}
	})
}

// TestBytesOfStrangers: strangers leave room for the long messages of known devices.
func TestBytesOfStrangers(t *testing.T) {
	var book *identity.Book
	bubble(t, known(t, identity.Options{Mode: identity.Open}, &book), func(t *testing.T, r *rig) {
		own := token(t, book, mac, "client-1")
		var strangers []*peer
		for n := range 40 {
			strangers = append(strangers, hello(r, headers(mac, fmt.Sprint("stranger-", n), "")))
		}
		begin(strangers, 900<<10)
		if n := turnedDown(strangers); n != 24 {
			t.Errorf("%d of 40 are told to come later", n)
		}
		p := hello(r, headers(mac, "client-1", own))
		begin([]*peer{p}, 900<<10)
		if turnedDown([]*peer{p}) != 0 {
			t.Error("the known device has no room")
		}
	})
}

// anySize has room for every message.
func anySize(int) bool { return true }
