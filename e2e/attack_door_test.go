package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/devicetest"
)

// behindProxy are settings by which a test says where a device comes from.
const behindProxy = "server: {trust_proxy: true, max_devices: 120}\nauth: {pairing: open}\nmcp: {tokens: [{name: a, token: t0ken-of-the-laptop}]}\n"

// TestAttackBeforeHello: who has not said hello can have only small messages read, and is told so; of known
// devices that have, a message of the same size is read.
func TestAttackBeforeHello(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := plainServer.use(t)
	long := `{"type":"mcp","payload":{"jsonrpc":"2.0","method":"x","params":{"x":"` + strings.Repeat("x", 200<<10) + `"}}}`
	r := dialRaw(t, s, newDeviceID(), "Client-Id: own")
	r.text(long)
	if code, _ := r.awaitClose(ctx); code != websocket.CloseMessageTooBig {
		t.Errorf("a long message before hello: closed with %d", code)
	}
	r = dialRaw(t, s, newDeviceID(), "Client-Id: own")
	r.hello(hello242)
	r.text(long)
	r.text(typed("what time is it"))
	r.await(`"type":"stt"`, "what time is it")
}

// TestAttackAllBytes: devices that each begin a long message and never end it hold 64 MiB together and 16 KiB each, strangers 16 MiB;
// a speaker talks on meanwhile, and when they have left there is room again.
func TestAttackAllBytes(t *testing.T) {
	t.Parallel()
	s := start(t, setup{config: behindProxy})
	well := dialRaw(t, s, "24:6f:28:ab:20:01", "Client-Id: own", "X-Forwarded-For: 192.168.1.40")
	well.hello(hello242)
	begun := maskedFrame(opText, bytes.Repeat([]byte(" "), 900<<10)) // whose reading takes 1 MiB
	for _, c := range []struct {
		what, client string
		n, fit       int
	}{{"strangers", "of another", 30, 16}, {"known devices", "own", 80, 65}} {
		var crowd []*raw
		for n := range c.n {
			id, client := fmt.Sprintf("24:6f:28:ab:21:%02x", n), c.client
			if client != "own" {
				id, client = "24:6f:28:ab:20:01", fmt.Sprint(client, n)
			}
			r := dialRaw(t, s, id, "Client-Id: "+client, "X-Forwarded-For: 192.168.1.40")
			r.hello(hello242)
			crowd = append(crowd, r)
		}
		var away atomic.Int32
		var wg sync.WaitGroup
		for _, r := range crowd {
			wg.Go(func() {
				r.bytes(begun)
				r.patience(time.Minute)
				for op, payload := byte(0), []byte(nil); ; {
					var err error
					if op, payload, err = r.read(); err != nil {
						return
					}
					if op != opClose || len(payload) < 2 {
						continue
					}
					if code := int(payload[0])<<8 | int(payload[1]); code != websocket.CloseTryAgainLater {
						t.Errorf("%s: closed with %d", c.what, code)
					}
					away.Add(1)
				}
			})
		}
		for end := time.Now().Add(20 * time.Second); int(away.Load()) < c.n-c.fit && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second) // nor is any more closed
		for _, r := range crowd {
			r.patience(0)
		}
		wg.Wait()
		held := c.n - int(away.Load())
		if held > c.fit || held < c.fit-2 {
			t.Errorf("the messages of %d %s are held, not of %d", held, c.what, c.fit)
		}
		well.text(typed("what time is it"))
		well.await(`"type":"stt"`, "what time is it")
		for _, r := range crowd {
			r.conn.Close()
		}
	}
}

// TestAttackPlaces: strangers of one address get 50 places, of all addresses half of them; known devices
// come in, also from that address, and places are given back.
func TestAttackPlaces(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: behindProxy})
	const mac, near = "24:6f:28:ab:22:01", "X-Forwarded-For: 192.168.1.40"
	s.boots(ctx, t, mac, "own", near)
	s.boots(ctx, t, "24:6f:28:ab:22:02", "own", near)
	var open []*raw
	strangers := func(from string, n int) (places int) {
		for i := range n {
			r := dialTCP(t, s)
			switch got := r.upgrade("/xiaozhi/v1/", "Device-Id: "+mac, fmt.Sprint("Client-Id: ", from, i), "X-Forwarded-For: "+from); got {
			case http.StatusSwitchingProtocols:
				places++
				open = append(open, r)
			case http.StatusServiceUnavailable:
			default:
				t.Fatalf("%s: %d", from, got)
			}
		}
		return places
	}
	if got := strangers("192.168.1.40", 60); got != 50 {
		t.Errorf("one address: %d places", got)
	}
	if got := strangers("192.168.1.41", 20); got != 10 { // half of 120 in all
		t.Errorf("another address: %d places", got)
	}
	known := dialRaw(t, s, mac, "Client-Id: own", near)
	known.hello(hello242)
	known.text(typed("what time is it"))
	known.await(`"type":"stt"`, "what time is it")
	dialRaw(t, s, "24:6f:28:ab:22:02", "Client-Id: own", near).hello(hello242)
	for _, r := range open {
		r.conn.Close()
	}
	for strangers("192.168.1.40", 1) == 0 {
		if ctx.Err() != nil {
			t.Fatal("no place is given back")
		}
	}
}

// TestAttackRecords: made-up devices from thousands of addresses fill no more than the records that there are, and
// drive out neither a device that a person has accepted nor one that has shown its token.
func TestAttackRecords(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: behindProxy + "store: {driver: none}\n"})
	accepted := devicetest.Options{DeviceID: "24:6f:28:ab:23:01", ClientID: "own", Mode: devicetest.Manual, NoMCP: true}
	used := accepted
	used.DeviceID = "24:6f:28:ab:23:02"
	s.provision(ctx, t, accepted)
	if out, err := s.order(ctx, "pair", accepted.DeviceID); err != nil {
		t.Fatal(err, out)
	}
	s.dial(ctx, t, used)
	var crowd sync.WaitGroup
	const workers, each = 8, 530
	for w := range workers {
		crowd.Go(func() {
			for n := range each {
				s.boots(ctx, t, fmt.Sprintf("02:00:00:%02x:%02x:%02x", w, n>>8, n&0xff), "x", fmt.Sprintf("X-Forwarded-For: 10.%d.%d.%d", w, n>>8, n&0xff))
			}
		})
	}
	crowd.Wait()
	list, err := s.order(ctx, "--json")
	if n := strings.Count(list, `"id"`); err != nil || n > 4096 || n < 4000 {
		t.Errorf("%d records, %v", n, err)
	}
	for _, id := range []string{accepted.DeviceID, used.DeviceID} {
		if !strings.Contains(list, id) {
			t.Errorf("%s is forgotten", id)
		}
	}
	if n := strings.Count(s.log.String(), "\n"); n > 150 {
		t.Errorf("%d lines in the log", n)
	}
}
