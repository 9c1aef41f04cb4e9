package websocket

import (
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// spokenTo sends a device a frame of sound every 60 ms until the connection
// ends or that time is over, and says how long it took.
func spokenTo(talk *fakeTalk, limit time.Duration) time.Duration {
	began := time.Now()
	for time.Since(began) < limit && !talk.isOver() {
		talk.out.Audio(1, make([]byte, 150))
		time.Sleep(60 * time.Millisecond)
	}
	return time.Since(began)
}

// TestLivenessStoppedReading: a device whose program hangs, while its system goes on
// taking what comes, is let go within 5 s of its last read, also when it goes on
// sending; one that hangs for less, and one that never answers pings, are not.
func TestLivenessStoppedReading(t *testing.T) {
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
				c := r.talk(0)
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

// TestLivenessStandstill: a network that is away, and a server that stands still, do not
// make a device one that hangs, for as long as one likes. When they are back it
// may take as long for its answer as before.
func TestLivenessStandstill(t *testing.T) {
	const step = 100 * time.Millisecond
	for name, tc := range map[string]struct {
		away    time.Duration // the network, from the ping on
		frozen  time.Duration // the server, from the ping on
		answers time.Duration // after both are back
		stalled time.Duration // from the ping on; 0: never
	}{
		"answers":                 {answers: 3 * time.Second},
		"hangs":                   {answers: time.Hour, stalled: answerWithin},
		"network back, answers":   {away: 20 * time.Second, answers: 3 * time.Second},
		"network back, hangs":     {away: 20 * time.Second, answers: time.Hour, stalled: 20*time.Second + answerWithin},
		"network never back":      {away: time.Hour, answers: time.Hour},
		"network gone for 3.2 s":  {away: 3200 * time.Millisecond, answers: 500 * time.Millisecond},
		"server thaws, answers":   {frozen: 20 * time.Second, answers: 3 * time.Second},
		"server thaws, hangs":     {frozen: 20 * time.Second, answers: time.Hour, stalled: 20*time.Second + answerWithin},
		"answers as late as most": {answers: answerWithin - step},
	} {
		t.Run(name, func(t *testing.T) {
			var l waiting
			began, pong := 10*time.Second, time.Second
			if !l.ask(began, pong) || l.ask(began+time.Minute, pong) {
				t.Fatal("not asked, or twice")
			}
			over := time.Duration(0)
			next := began + probeEvery
			for now := began; now < began+time.Minute && over == 0 && pong < began; now += step {
				at := now - began
				if at >= max(tc.away, tc.frozen)+tc.answers {
					pong = now
				}
				if now < next || at < tc.frozen {
					continue
				}
				reachable := at >= tc.away || at < ackedWithin // what is not acknowledged is known a second later
				again, stalled := l.probe(now, pong, reachable)
				if stalled {
					over = at
				}
				next = now + again
			}
			// It is looked at twice a second, so the answer is waited for by so much longer.
			if over < tc.stalled-probeEvery || over > tc.stalled+probeEvery || tc.stalled == 0 && over != 0 {
				t.Errorf("given up after %v, want %v", over, tc.stalled)
			}
		})
	}
}

// TestLivenessBehindProxy: a proxy takes and acknowledges everything, so that nothing is
// known of the device behind it.
func TestLivenessBehindProxy(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.dialWith(http.Header{"Device-Id": {"d1"}, "X-Forwarded-For": {"192.0.2.5"}})
		p.send(`{"type":"hello","version":1,"transport":"websocket"}`)
		synctest.Wait()
		c := r.talk(0)
		spokenTo(c, 5*time.Second)
		p.hang(20 * time.Second)
		if took := spokenTo(c, 20*time.Second); took < 20*time.Second {
			t.Errorf("gone after %v", took)
		}
	})
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
