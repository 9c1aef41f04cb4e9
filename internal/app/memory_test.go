package app

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"math"
	"net"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/world"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/secret"
	"xiaozhi/prompts"
	"xiaozhi/providers/providertest"
)

// harness is the program with fake engines, in memory
// and in fake time: strict devices connect to it over pipes.
type harness struct {
	t   *testing.T
	app *App
	ln  pipes
	log *lockedBuffer

	vad *providertest.VAD
	asr *providertest.ASR
	llm *providertest.LLM
	tts *providertest.TTS
}

// script tells the engines of a harness what to do.
type script struct {
	asr     []providertest.Hearing
	llm     []providertest.Step
	tts     []providertest.Speech
	replace func(h *harness, o *agent.Options) // puts other engines in the place of the fakes; nil: none
	data    string                             // folder of a store; "": nothing outlives the program
	papers  bool                               // there are documents
}

// inMemory runs f with a harness in a bubble, which ends only when all goroutines have.
func inMemory(t *testing.T, e script, f func(ctx context.Context, t *testing.T, h *harness)) {
	t.Helper()
	data := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := &harness{
			t: t, log: &lockedBuffer{}, ln: pipes{make(chan net.Conn), make(chan struct{})},
			vad: &providertest.VAD{}, asr: &providertest.ASR{Script: e.asr}, llm: &providertest.LLM{Script: e.llm}, tts: &providertest.TTS{Script: e.tts},
		}
		log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		h.app = newApp(config.Default(), Options{PasswordCost: cheap, Data: cmp.Or(e.data, filepath.Join(data, "data")), Log: log})
		defer h.app.Close()
		if e.data != "" {
			if err := h.app.openStore(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		h.build(e)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		served := make(chan error, 1)
		go func() { served <- h.app.serve(ctx, []net.Listener{h.ln}) }()
		defer func() {
			cancel()
			if err := <-served; err != nil {
				t.Errorf("serve: %v", err)
			}
			if t.Failed() {
				t.Logf("log:\n%s", h.log)
			}
		}()
		f(ctx, t, h)
	})
}

// build is assemble without the finding of engines.
func (h *harness) build(e script) {
	h.t.Helper()
	cfg, log := h.app.cfg, h.app.log
	set, err := prompts.Load("")
	if err != nil {
		h.t.Fatal(err)
	}
	records := agent.NewDevices()
	h.app.life.atEnd(records.Close)
	o := agent.Options{
		VAD: h.vad, ASR: h.asr, LLM: h.llm, TTS: h.tts, Prompts: set, Devices: records, Zone: time.UTC,
		IdleClose: cfg.Voice.IdleClose, Endpoint: endpointOptions(cfg.Voice), Lead: leadFrames(cfg.Voice), Log: log,
	}
	if h.app.outside.letters, err = officeOf(h.t.Context(), h.app.stored, h.app.life, mail.Options{Log: log}); err != nil {
		h.t.Fatal(err)
	}
	if e.replace != nil {
		e.replace(h, &o)
	}
	if h.app.crew, err = openCrew(h.t.Context(), h.app.cfg, h.app.stored, set, h.app.log); err != nil {
		h.t.Fatal(err)
	}
	h.app.cast = newCast(castOf(cfg, set, nil))
	own, err := localTools(cfg, h.app.crew.roles(h.app.cast.now.Load()))
	if err != nil {
		h.t.Fatal(err)
	}
	own.Music = local.NewMusic(world.MusicDir(cfg.Tools.Music, h.app.options.Data))
	if e.papers {
		if err := openLibrary(h.t.Context(), h.app, &own); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := h.app.join(h.t.Context(), o, own, secret.Sources{}, &pictures{texts: set, log: log}); err != nil {
		h.t.Fatal(err)
	}
}

// atHome is a pipe's end to a device in a private network.
type atHome struct{ net.Conn }

// RemoteAddr is where the device is.
func (atHome) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 168, 1, 40), Port: 5000} }

// dial connects a strict device.
func (h *harness) dial(ctx context.Context, o devicetest.Options) *devicetest.Device {
	h.t.Helper()
	near, far := net.Pipe()
	h.ln.come <- atHome{far}
	o.URL, o.NetConn = "ws://memory/xiaozhi/v1/", near
	d, err := devicetest.Dial(ctx, o)
	if err != nil {
		h.t.Fatalf("dial: %v; log:\n%s", err, h.log)
	}
	h.t.Cleanup(d.Close)
	return d
}

// pipes is a listener in memory.
type pipes struct {
	come chan net.Conn
	over chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.over); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 10), Port: 8000} }

// lockedBuffer is a log that is written by many.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// goroutines are the stacks of all goroutines of the bubble.
func goroutines(t *testing.T) []string {
	t.Helper()
	synctest.Wait()
	buf := make([]byte, 1<<20)
	own := regexp.MustCompile(`synctest bubble \d+`).FindString(string(buf[:runtime.Stack(buf, false)]))
	if own == "" {
		t.Fatal("a stack does not name its bubble")
	}
	var stacks []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, own+"]") || strings.Contains(head, own+",") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// speech is sound that the fake detector takes for voice.
func speech(length time.Duration) []int16 {
	pcm := make([]int16, int(length.Seconds()*16000))
	for i := range pcm {
		pcm[i] = int16(12000 * math.Sin(2*math.Pi*300*float64(i)/16000))
	}
	return pcm
}

// sayAll speaks, and is silent for a second.
func sayAll(ctx context.Context, t *testing.T, d *devicetest.Device, length time.Duration) {
	t.Helper()
	if err := d.Say(ctx, speech(length)); err != nil {
		t.Fatal(err)
	}
	if err := d.Silence(ctx, time.Second); err != nil {
		t.Fatal(err)
	}
}

func noViolations(t *testing.T, d *devicetest.Device) {
	t.Helper()
	for _, v := range d.Violations() {
		t.Errorf("violation: %v", v)
	}
}
