package bench

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/devicetest"
)

// figuresOf are figures by what they are called.
func figuresOf(all []Figure) map[string]Figure {
	out := make(map[string]Figure)
	for _, f := range all {
		out[f.Metric+" "+f.What] = f.judged()
	}
	return out
}

// A reply of two sentences as it should be: four packets at once, then one each
// 60 ms, the second sentence's subtitle 200 ms before its sound.
func TestJudgeLong(t *testing.T) {
	offsets := []int{0, 0, 0}
	for i := range 37 {
		offsets = append(offsets, 30+60*i)
	}
	arrivals := at(offsets...)
	reply := &devicetest.Reply{
		FirstFrame: arrivals[0], LastFrame: arrivals[len(arrivals)-1],
		Sentences: []devicetest.Sentence{{Text: "a", At: at(-100)[0]}, {Text: "b", At: at(1200)[0]}},
	}
	r := &rig{amounts: amounts{long: replyAmounts{length: 2 * time.Second}}}
	good := figuresOf(r.judgeLong(reply, arrivals, packet, 2))
	for _, name := range []string{"M4 underruns in 2s", "M4 overflows in 2s", "M4 lead at the receiver", "M5 jitter, 1 session", "M6 seam between sentences, voice 300 ms late"} {
		if f, ok := good[name]; !ok || f.Verdict != Pass {
			t.Errorf("%s: %+v", name, f)
		}
	}
	// The same with half a second of nothing before the second sentence.
	for i := range arrivals {
		if arrivals[i].After(at(1200)[0]) {
			arrivals[i] = arrivals[i].Add(500 * time.Millisecond)
		}
	}
	reply.Dropped = 3
	bad := figuresOf(r.judgeLong(reply, arrivals, packet, 3))
	for name, want := range map[string]float64{"M4 underruns in 2s": 1, "M4 overflows in 2s": 3} {
		if f := bad[name]; f.Verdict != Miss || *f.Value != want {
			t.Errorf("%s: %+v, want %g", name, f, want)
		}
	}
	seam := bad["M6 seam between sentences, voice 300 ms late"]
	if seam.Verdict != Miss || seam.Numbers.Max < 300 || seam.Note == "" { // 560 ms between two packets, of which the lead hides some
		t.Errorf("seam: %+v, %+v", seam, seam.Numbers)
	}
	reply.Sentences = reply.Sentences[:1]
	if f := figuresOf(r.judgeLong(reply, arrivals, packet, 2))["M6 seam between sentences"]; f.Verdict != None || f.Note == "" {
		t.Errorf("one subtitle: %+v", f)
	}
}

func TestStopAccuracy(t *testing.T) {
	reply := func(played, stopped int, cut bool) *devicetest.Reply {
		return &devicetest.Reply{PlayedOut: at(played)[0], Stopped: at(stopped)[0], Cut: cut}
	}
	f := stopAccuracy([]*devicetest.Reply{reply(1000, 1100, false), reply(1000, 1020, false), reply(1000, 400, true), {}}).judged()
	if f.N != 2 || f.Verdict != Pass || f.Numbers.Min != 20 || f.Numbers.Max != 100 {
		t.Errorf("%+v, %+v", f, f.Numbers)
	}
	for name, late := range map[string]int{"before the end": 999, "too late": 1121} {
		if f := stopAccuracy([]*devicetest.Reply{reply(1000, 1100, false), reply(1000, late, false)}).judged(); f.Verdict != Miss {
			t.Errorf("%s: %+v", name, f.Numbers)
		}
	}
}

// A gate lets nothing through while it is shut, and all of it afterwards.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(fakeConn{})
		g.open() // an open gate can be opened again
		if n, err := g.Read(make([]byte, 3)); n != 3 || err != nil {
			t.Errorf("open: %d, %v", n, err)
		}
		g.shut()
		read := make(chan int, 1)
		go func() {
			n, _ := g.Read(make([]byte, 3))
			read <- n
		}()
		synctest.Wait()
		if len(read) > 0 {
			t.Error("it reads though the gate is shut")
		}
		g.open()
		if n := <-read; n != 3 {
			t.Errorf("opened: %d", n)
		}
	})
}

type fakeConn struct{ net.Conn }

func (fakeConn) Read(p []byte) (int, error) { return len(p), nil }
