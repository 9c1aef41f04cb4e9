package connection

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// spokenTo sends a device a frame of sound every 60 ms until the connection
// ends or that time is over, and says how long it took.
func spokenTo(c *conn, limit time.Duration) time.Duration {
	began := time.Now()
	for time.Since(began) < limit && !c.out.isClosed() {
		c.Audio(1, make([]byte, 150))
		time.Sleep(60 * time.Millisecond)
	}
	return time.Since(began)
}

func (r *rig) conn(id string) *conn {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	return r.server.conns[id]
}

// TestStoppedReading: a device whose program hangs, while its system goes on
// taking what comes, is let go within 5 s of its last read, also when it goes on
// sending; one that hangs for less, and one that never answers pings, are not.
func TestStoppedReading(t *testing.T) {
	const long = 20 * time.Second
	for name, tc := range map[string]struct {
		deaf  bool // no ping is ever answered
		hangs time.Duration
		talks bool // its microphone goes on
		gone  bool
	}{
		"hangs":              {hangs: long, gone: true},
		"hangs a while":      {hangs: 3 * time.Second},
		"hangs but talks":    {hangs: long, talks: true, gone: true},
		"answers no pings":   {deaf: true},
		"is as it should be": {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				p := r.dial("d1")
				p.deaf = tc.deaf
				p.send(`{"type":"hello","version":1,"transport":"websocket"}`)
				p.send(`{"type":"listen","state":"start","mode":"realtime"}`)
				synctest.Wait()
				c := r.conn("d1")
				spokenTo(c, 5*time.Second) // it has answered, if it ever does
				p.hang(tc.hangs)
				if tc.talks {
					go func() {
						for range int(long / time.Second) {
							_ = p.ws.WriteMessage(websocket.BinaryMessage, opusFrame()) // it is cut off in the middle
							time.Sleep(time.Second)
						}
					}()
				}
				took := spokenTo(c, long)
				if gone := took < long; gone != tc.gone || gone && took > 5*time.Second {
					t.Errorf("gone: %v, after %v; log:\n%s", gone, took, r.log)
				}
				if n := len(r.log.lines("WARN", "device left", "device does not read", "device_id=d1")); (n == 1) != tc.gone {
					t.Errorf("log:\n%s", r.log)
				}
				if n := len(p.of(websocket.PingMessage)); n < 3 && !tc.gone {
					t.Errorf("only %d pings", n)
				}
				time.Sleep(long)
			})
		})
	}
}

// TestServerStoodStill: a server that did nothing for long, and has not read yet
// the answer that waits for it, does not take the device for one that hangs.
func TestServerStoodStill(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		c := r.conn("d1")
		spokenTo(c, 5*time.Second)
		const hang = 6 * time.Second
		p.hang(hang)
		asked, again := len(p.of(websocket.PingMessage)), time.Now().Add(hang-100*time.Millisecond)
		for len(p.of(websocket.PingMessage)) == asked {
			spokenTo(c, 60*time.Millisecond)
		}
		time.Sleep(time.Until(again))
		if took := spokenTo(c, 10*time.Second); took < 10*time.Second {
			t.Errorf("gone after %v; log:\n%s", took, r.log)
		}
	})
}

// TestNetworkStoodStill: a network that is away for as long as one likes does not
// make a device one that hangs, and when it is back the device may take as long
// for its answer as before.
func TestNetworkStoodStill(t *testing.T) {
	const frame = 60 * time.Millisecond
	for name, tc := range map[string]struct {
		away    time.Duration // from the ping on
		answers time.Duration // after the network is back
		stalled time.Duration // from the ping on; 0: never
	}{
		"back and answers":  {20 * time.Second, 3 * time.Second, 0},
		"back and hangs":    {20 * time.Second, time.Hour, 20*time.Second + answerWithin},
		"never away":        {0, 3 * time.Second, 0},
		"never away, hangs": {0, time.Hour, answerWithin},
		"never back":        {time.Hour, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var l lifeline
			now, pong := 10*time.Second, time.Second
			if ping, stalled := l.next(now, pong, func() bool { return true }); !ping || stalled {
				t.Fatalf("ping %t, stalled %t", ping, stalled)
			}
			began, over := now, time.Duration(0)
			for now < began+time.Minute && over == 0 && pong < began {
				now += frame
				at := now - began
				if at >= tc.away+tc.answers {
					pong = now
				}
				// What is not acknowledged is known a second later.
				away := at < tc.away && at >= ackedWithin
				if ping, stalled := l.next(now, pong, func() bool { return !away }); stalled {
					over = at
				} else if ping && pong < began {
					t.Error("pinged again before the answer")
				}
			}
			if over < tc.stalled || over > tc.stalled+frame || tc.stalled == 0 && over != 0 {
				t.Errorf("given up after %v, want %v", over, tc.stalled)
			}
		})
	}
}

// TestAcknowledged: what a peer's system takes is acknowledged, whether or not
// its program reads.
func TestAcknowledged(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	peer, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	ours, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if _, err := ours.Write(make([]byte, 200)); err != nil {
		t.Fatal(err)
	}
	if tcp, ok := ours.(*net.TCPConn); !ok || !acknowledged(tcp, ackedWithin) {
		t.Error("not acknowledged on the same machine")
	}
}
