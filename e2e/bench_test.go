package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// These benchmarks run the built program with engines that answer at once, so
// that what is measured is the server's own part. Each prints how many samples
// there were, the machine and its load; none judges. One claim is one command:
//
//	go test -tags nolibopusfile -run '^$' -bench BenchmarkHello ./e2e

// guard is what the server waits between tts start and the first frame, so
// that the device has changed its state.
const guard = 105 * time.Millisecond

// BenchmarkHello measures from before the TCP connection to the server's hello,
// on an idle server and on one that is loading its speech recogniser.
func BenchmarkHello(b *testing.B) {
	b.Run("idle", func(b *testing.B) {
		s := startFast(b, instant(startCloud(b)))
		s.waitReady(b.Context(), b)
		var took timings
		for i := range 500 {
			took = append(took, hello(b, s, i))
		}
		took.report(b, "hello")
		about(b, len(took))
	})
	b.Run("recogniser_loading", func(b *testing.B) {
		var took timings
		for range 5 {
			s := startFast(b, setup{})
			for i := 0; !s.ready(b.Context()); i++ {
				took = append(took, hello(b, s, i))
			}
			s.stop(b)
		}
		took.report(b, "hello")
		about(b, len(took))
	})
}

// hello is how long one device waits for its hello.
func hello(b *testing.B, s *server, i int) time.Duration {
	b.Helper()
	began := time.Now()
	d := loader(b.Context(), b, s, i, devicetest.Options{NoMCP: true})
	took := time.Since(began)
	d.Close()
	return took
}

// ready asks once whether all engines are loaded.
func (s *server) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.ota, "/xiaozhi/ota/")+"/readyz", nil)
	if err != nil {
		return true
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return true
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// BenchmarkTurn measures push-to-talk turns that are cut. added: from listen
// stop being written to the first frame being read, less the guard. think: to
// tts start. abort: from abort being written to tts stop being read. last: to
// the last frame. late-frames: frames read after a tts stop.
func BenchmarkTurn(b *testing.B) {
	cloud := startCloud(b)
	cloud.Reply(openaitest.Chat, openaitest.Text("This is one ", "whole sentence."))
	cloud.Reply(openaitest.Speak, openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, 3*time.Second), 4800))
	s := startFast(b, instant(cloud))
	s.waitReady(b.Context(), b)
	d := loader(b.Context(), b, s, 1, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
	packets := tone(b, 300, time.Second)
	var m turnFigures
	for i := range 220 {
		if i == 20 { // of warming up
			m = turnFigures{}
		}
		m.turn(b, d, packets)
	}
	m.added.report(b, "added")
	m.think.report(b, "think")
	m.abort.report(b, "abort")
	m.last.report(b, "last")
	b.ReportMetric(float64(m.lateFrames), "late-frames")
	about(b, len(m.added))
}

// turnFigures are the samples of BenchmarkTurn.
type turnFigures struct {
	added, think, abort, last timings
	lateFrames                int
	stopped                   bool // a tts stop was the last word
}

// turn says something, hears the beginning of the answer, and cuts it.
func (m *turnFigures) turn(b *testing.B, d *devicetest.Device, packets [][]byte) {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	must(d.ListenStart(devicetest.Manual))
	must(d.SendFrames(packets...))
	time.Sleep(50 * time.Millisecond) // the button is let go within the next frame
	must(d.ListenStop())
	stop := m.await(b, d, isSent("listen", "stop"))
	start := m.await(b, d, isReceived("tts", "start"))
	m.stopped = false
	first := m.await(b, d, func(e devicetest.Event) bool { return e.Kind == devicetest.KindFrame })
	m.think = append(m.think, start.At.Sub(stop.At))
	m.added = append(m.added, first.At.Sub(stop.At)-guard)
	time.Sleep(rand.N(150 * time.Millisecond)) // the button is pressed at any moment
	must(d.Abort(""))
	abort := m.await(b, d, isSent("abort", ""))
	last := abort
	end := m.await(b, d, func(e devicetest.Event) bool {
		if e.Kind == devicetest.KindFrame {
			last = e
		}
		return isReceived("tts", "stop")(e)
	})
	m.stopped = true
	m.abort = append(m.abort, end.At.Sub(abort.At))
	m.last = append(m.last, last.At.Sub(abort.At))
}

// await waits for an event, and counts frames that nobody should have sent.
func (m *turnFigures) await(b *testing.B, d *devicetest.Device, match func(devicetest.Event) bool) devicetest.Event {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	e, err := d.Wait(ctx, func(e devicetest.Event) bool {
		if m.stopped && e.Kind == devicetest.KindFrame {
			m.lateFrames++
		}
		return match(e)
	})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func isSent(kind, state string) func(devicetest.Event) bool {
	return func(e devicetest.Event) bool {
		return e.Kind == devicetest.KindSent && e.Type == kind && e.State == state
	}
}

func isReceived(kind, state string) func(devicetest.Event) bool {
	return func(e devicetest.Event) bool {
		return e.Kind == devicetest.KindReceived && e.Type == kind && e.State == state
	}
}

// tone is a sine as a device's packets.
func tone(tb testing.TB, hz float64, length time.Duration) [][]byte {
	tb.Helper()
	enc, err := audio.NewEncoder(audio.Format{Rate: 16000, Frame: 60 * time.Millisecond})
	if err != nil {
		tb.Fatal(err)
	}
	pcm := samples(openaitest.Tone(16000, hz, length))
	var packets [][]byte
	for ; len(pcm) >= 960; pcm = pcm[960:] {
		packet := make([]byte, 1500)
		n, err := enc.Encode(pcm[:960], packet)
		if err != nil {
			tb.Fatal(err)
		}
		packets = append(packets, packet[:n])
	}
	return packets
}

// BenchmarkMemory measures the resident memory of the process: at its start,
// for each of 1000 devices that are connected and have listed their tools, for
// each of 100 that are being listened to after a turn, and for each of 100 that
// are being spoken to. The runtime is left to itself, so
// what it has not collected yet counts too.
func BenchmarkMemory(b *testing.B) {
	b.Run("idle", func(b *testing.B) {
		const n = 1000
		s, base := baseline(b, time.Minute)
		for i := range n {
			d := loader(b.Context(), b, s, i, devicetest.Options{Tools: devicetest.NewBoard().Tools()})
			listed(b.Context(), b, d)
		}
		reportMemory(b, s, base, n)
	})
	b.Run("talked", func(b *testing.B) { // they have had a turn, and their microphones are open
		const n = 100
		s, base := baseline(b, 300*time.Millisecond)
		for i := range n {
			d := loader(b.Context(), b, s, i, devicetest.Options{Tools: devicetest.NewBoard().Tools(), OpenListen: true})
			listed(b.Context(), b, d)
			if err := errors.Join(d.SendFrames(tone(b, 300, 300*time.Millisecond)...), d.Detect("tell me something")); err != nil {
				b.Fatal(err)
			}
			if _, err := d.WaitReply(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		reportMemory(b, s, base, n)
	})
	b.Run("speaking", func(b *testing.B) {
		const n = 100
		s, base := baseline(b, time.Minute)
		for i := range n {
			d := loader(b.Context(), b, s, i, devicetest.Options{Tools: devicetest.NewBoard().Tools()})
			listed(b.Context(), b, d)
			if err := d.Detect("tell me a long story"); err != nil {
				b.Fatal(err)
			}
		}
		reportMemory(b, s, base, n)
	})
}

// baseline is a server that nobody has connected to yet, whose replies are so long.
func baseline(b *testing.B, length time.Duration) (*server, memory) {
	b.Helper()
	cloud := startCloud(b)
	cloud.Reply(openaitest.Chat, openaitest.Text("This is one ", "whole sentence."))
	cloud.Reply(openaitest.Speak, openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, length), 4800))
	s := startFast(b, instant(cloud))
	s.waitReady(b.Context(), b)
	time.Sleep(time.Second) // what the start has left over is given back
	return s, s.memory(b)
}

// reportMemory reports what n devices have added.
func reportMemory(b *testing.B, s *server, base memory, n int) {
	b.Helper()
	time.Sleep(5 * time.Second) // the runtime gives back what it does not need
	now := s.memory(b)
	b.ReportMetric(float64(base.rss)/1024, "base-MiB")
	b.ReportMetric(float64(now.rss-base.rss)/float64(n), "KiB/device")
	b.ReportMetric(float64(now.peak-base.rss)/float64(n), "peak-KiB/device")
	about(b, n)
}

// BenchmarkSpeakers measures n replies at once, with the server on one
// processor and the load on another where the machine lets us: jitter is how
// far the distance of two frames is from 60 ms once the lead is built up, cpu
// the processor time of a minute of speech, control the jitter of a goroutine
// that does nothing.
func BenchmarkSpeakers(b *testing.B) {
	moveAway(b)
	for _, n := range []int{1, 20, 50, 80, 100} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) { speakers(b, n) })
	}
}

func speakers(b *testing.B, n int) { //nolint:thelper // it is the benchmark itself
	const length = 10 * time.Second
	cloud := startCloud(b)
	cloud.Reply(openaitest.Chat, openaitest.Text("This is one ", "whole sentence."))
	cloud.Reply(openaitest.Speak, openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, length+5*time.Second), 48000))
	o := instant(cloud)
	o.pinned = true
	s := startFast(b, o)
	s.waitReady(b.Context(), b)
	devices := make([]*devicetest.Device, n)
	for i := range n {
		devices[i] = loader(b.Context(), b, s, i, devicetest.Options{NoMCP: true})
		if err := devices[i].Detect("tell me a long story"); err != nil {
			b.Fatal(err)
		}
		time.Sleep(rand.N(2 * time.Second / time.Duration(n))) // so that not all are due at once
	}
	time.Sleep(time.Second) // until the last has its lead
	began, before := time.Now(), s.cpu(b)
	ctx, cancel := context.WithTimeout(b.Context(), length)
	defer cancel()
	controls := make(chan timings, 1)
	go func() { controls <- control(ctx) }()
	idle := <-controls
	used := s.cpu(b) - before
	ended := time.Now()
	var jitter timings
	underruns := 0
	for _, d := range devices {
		jitter = append(jitter, jitterOf(d, began, ended)...)
		underruns += d.Stats().Underruns
	}
	jitter.report(b, "jitter")
	idle.report(b, "control")
	b.ReportMetric(float64(underruns), "underruns")
	b.ReportMetric(used.Seconds()/(ended.Sub(began).Minutes()*float64(n)), "cpu-s/min")
	about(b, len(jitter))
}

// jitterOf is how far apart from 60 ms the frames came between two moments.
func jitterOf(d *devicetest.Device, from, to time.Time) timings {
	var jitter timings
	var last time.Time
	for _, e := range d.Events() {
		if e.Kind != devicetest.KindFrame || e.At.Before(from) || e.At.After(to) {
			continue
		}
		if !last.IsZero() {
			jitter = append(jitter, (e.At.Sub(last) - 60*time.Millisecond).Abs())
		}
		last = e.At
	}
	return jitter
}

// moveAway leaves the first processor to the server.
func moveAway(b *testing.B) {
	b.Helper()
	if err := exec.Command("taskset", "-acp", "1", fmt.Sprint(os.Getpid())).Run(); err != nil {
		b.Logf("server and load share all processors: %v", err)
		return
	}
	b.Cleanup(func() {
		if err := exec.Command("taskset", "-acp", "0-1023", fmt.Sprint(os.Getpid())).Run(); err != nil {
			b.Logf("the processors were not given back: %v", err)
		}
	})
}
