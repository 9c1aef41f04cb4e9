package connection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
)

// memory is a transport in memory, as MQTT with UDP would be one: it has no
// frames, no pings and no close codes.
type memory struct {
	mu      sync.Mutex
	written []string
	closed  []*Reason
	gone    chan struct{}
	err     error         // of writes
	hang    chan struct{} // writes wait until it is closed; nil: they do not
}

func (m *memory) write(s string) error {
	if m.hang != nil {
		<-m.hang
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written = append(m.written, s)
	return m.err
}

func (m *memory) WriteText(text []byte) error { return m.write(string(text)) }

func (m *memory) WriteAudio(packet []byte, stamp uint32) error {
	if stamp == 0 {
		return errors.New("a packet without a stamp")
	}
	return m.write(fmt.Sprintf("sound %x", packet))
}

func (m *memory) Close(reason *Reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed = append(m.closed, reason); len(m.closed) == 1 {
		close(m.gone)
	}
}

// Greet adds what a device needs to send sound.
func (m *memory) Greet(h Hello, answer *HelloAnswer) (stamps bool) {
	answer.UDP = []byte(`{"port":8884}`)
	return h.AEC
}

func (m *memory) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.written)
}

// echoTalk says what it hears, until it is hung up on.
type echoTalk struct {
	out    wire.Outbox
	events chan wire.Event
	heard  []string
}

func (e *echoTalk) Post(ev wire.Event) error { e.events <- ev; return nil }
func (e *echoTalk) Hear(p wire.Packet) {
	e.heard = append(e.heard, fmt.Sprintf("%x@%d", p.Data, p.Stamp))
}

func (e *echoTalk) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev := <-e.events:
			switch ev := ev.(type) {
			case wire.Detect:
				e.out.Send(wire.Message{Kind: wire.MessageTTSStart, Turn: 1})
				e.out.Audio(1, []byte{0xca, 0xfe})
				e.out.Send(wire.Message{Kind: wire.MessageTTSStop, Turn: 1})
			case wire.Abort:
				e.out.HangUp(errors.New(ev.Reason))
			case wire.Drain:
				e.out.HangUp(ev.Cause)
			}
		}
	}
}

// inMemory connects a device over a transport in memory.
func inMemory(t *testing.T, m *memory, f func(r *Registry, s *Session, talk *echoTalk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m.gone = make(chan struct{})
		talk := &echoTalk{events: make(chan wire.Event, 8)}
		var session wire.Session
		r := New(Options{NewConversation: func(s wire.Session, out wire.Outbox, _ []mcp.Source) (Conversation, error) {
			session, talk.out = s, out
			return talk, nil
		}})
		room, err := r.Reserve(Peer{Visit: identity.Visit{Address: "d1"}, Transport: "udp", Protocol: "3"})
		if err != nil {
			t.Fatal(err)
		}
		sessions := make(chan *Session, 1)
		room.Admit(t.Context(), m, readerFunc(func(s *Session) { sessions <- s; <-m.gone }))
		s := <-sessions
		s.Text([]byte(`{"type":"hello","version":3,"transport":"udp","features":{"aec":true}}`))
		synctest.Wait()
		if session.DeviceID != "d1" || !session.AEC {
			t.Errorf("session %+v", session)
		}
		f(r, s, talk)
		synctest.Wait()
		if err := r.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestSessionOverAnyTransport: a talk needs nothing of a transport but its three
// methods, and the two of the session.
func TestSessionOverAnyTransport(t *testing.T) {
	m := &memory{}
	inMemory(t, m, func(r *Registry, s *Session, talk *echoTalk) {
		s.Text([]byte(`{"type":"listen","state":"start","mode":"auto"}`))
		s.Audio([]byte{1, 2, 3}, 7)
		s.Text([]byte(`{"type":"listen","state":"detect","text":"hello"}`))
		synctest.Wait()
		if !slices.Equal(talk.heard, []string{"010203@7"}) {
			t.Errorf("heard %v", talk.heard)
		}
		got := m.all()
		if len(got) != 4 || !strings.Contains(got[0], `"transport":"udp"`) || !strings.Contains(got[0], `"udp":{"port":8884}`) ||
			!strings.Contains(got[1], `"start"`) || got[2] != "sound cafe" || !strings.Contains(got[3], `"stop"`) {
			t.Errorf("written: %q", got)
		}
		s.Text([]byte(`{"type":"abort","reason":"enough"}`))
		<-m.gone
		if len(m.closed) != 1 || m.closed[0].Text != "conversation hung up" || m.closed[0].Gone {
			t.Errorf("closed by %+v", m.closed)
		}
		synctest.Wait()
		if r.Connected() != 0 || !s.Ended() {
			t.Error("the session is still there")
		}
	})
}

func TestSessionWriteFails(t *testing.T) {
	m := &memory{}
	inMemory(t, m, func(_ *Registry, s *Session, _ *echoTalk) {
		m.mu.Lock()
		m.err = errors.New("no route")
		m.mu.Unlock()
		s.Text([]byte(`{"type":"listen","state":"detect","text":"hello"}`))
		<-m.gone
		if len(m.closed) != 1 || !m.closed[0].Gone {
			t.Errorf("closed by %+v", m.closed)
		}
	})
}

// A transport whose writes hang is closed without a goodbye, in good time.
func TestSessionWriteHangs(t *testing.T) {
	m := &memory{}
	inMemory(t, m, func(_ *Registry, s *Session, _ *echoTalk) {
		m.hang = make(chan struct{})
		s.Text([]byte(`{"type":"listen","state":"detect","text":"hello"}`))
		synctest.Wait()
		began := time.Now()
		s.Text([]byte(`{"type":"abort"}`))
		<-m.gone
		if took := time.Since(began); took > lastWords+flushTimeout || !m.closed[0].Gone {
			t.Errorf("closed after %v by %+v", took, m.closed[0])
		}
		close(m.hang)
	})
}

func TestSessionWriterRests(t *testing.T) {
	m := &memory{}
	inMemory(t, m, func(_ *Registry, s *Session, talk *echoTalk) {
		working := func() bool {
			synctest.Wait()
			s.down.queue.mu.Lock()
			defer s.down.queue.mu.Unlock()
			return s.down.queue.working
		}
		for _, pause := range []time.Duration{writerRest / 2, writerRest, 10 * time.Second} {
			time.Sleep(pause)
			n := len(m.all())
			talk.out.Send(wire.Message{Kind: wire.MessageKeepAlive})
			if !working() || len(m.all()) != n+1 {
				t.Errorf("after %v: nothing is written", pause)
			}
		}
		time.Sleep(2 * writerRest)
		if working() {
			t.Error("the writer does not rest")
		}
	})
}

func TestLimitsWarn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		l := newLimits(func() {}, func(error) {})
		for _, after := range []time.Duration{0, 0, 999 * time.Millisecond, time.Millisecond, time.Minute} {
			time.Sleep(after)
			l.warn(slog.New(slog.NewTextHandler(&log, nil)), "again")
		}
		if got := strings.Count(log.String(), "again"); got != 3 || strings.Count(log.String(), "suppressed=2") != 1 {
			t.Errorf("log:\n%s", log.String())
		}
	})
}

func TestLimitsAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended error
		dropped := 0
		l := newLimits(func() { dropped++ }, func(err error) { ended = err })
		for range textBurst {
			if !l.allowText(0) {
				t.Fatal("a message of the burst was dropped")
			}
		}
		if l.allowText(0) || dropped != 1 {
			t.Errorf("one message more; %d were dropped", dropped)
		}
		time.Sleep(time.Second)
		for range textRate {
			if !l.allowText(0) {
				t.Fatal("a message of the second after was dropped")
			}
		}
		for range textBurst/4 + 2 {
			l.allowText(0)
		}
		if !errors.Is(ended, errFlooding) {
			t.Errorf("ended by %v", ended)
		}
	})
}

// readerFunc is a [Reader] of a function.
type readerFunc func(*Session)

func (f readerFunc) Read(s *Session) { f(s) }
