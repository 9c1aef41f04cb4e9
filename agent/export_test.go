package agent

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// SceneTape records a scene; package record makes one.
type SceneTape interface {
	Wrap(o Options, l router.Options) (Options, router.Options)
	Sources(sources ...mcp.Source) []mcp.Source
	Outbox(out wire.Outbox) wire.Outbox
	Event(ev wire.Event)
	Hear(p wire.Packet)
	Run(ctx context.Context) (end func(error))
}

// taped is a conversation whose events are recorded.
type taped struct {
	*Conversation
	tape SceneTape
}

func (t taped) Post(ev wire.Event) error {
	t.tape.Event(ev)
	return t.Conversation.Post(ev)
}

func (t taped) Hear(p wire.Packet) {
	t.tape.Hear(p)
	t.Conversation.Hear(p)
}

// RecordScene plays a scene of testdata/talk, in a bubble, onto a tape. change
// may be nil; it may change the options.
func RecordScene(t *testing.T, file string, change func(*Options), tapeOf func(wire.Session) SceneTape) {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := readScene(a)
	var detectors sync.WaitGroup
	o, session := s.options(t, &detectors)
	if change != nil {
		change(&o)
	}
	tape := tapeOf(session)
	b := &box{began: time.Now(), wake: make(chan struct{})}
	s.limits.Log = o.Log
	opts, limits := tape.Wrap(o, s.limits)
	tools := router.New(limits, tape.Sources(s.local(t), s.tools)...)
	enc, err := audio.NewEncoderOf(audio.Recognition, audio.Device())
	if err != nil {
		t.Fatal(err)
	}
	c := New(opts, session, tape.Outbox(b), tools)
	d := &talker{t: t, c: taped{c, tape}, box: b, enc: enc, seen: map[string]int{}, mute: make([]int16, 960), loud: make([]int16, 960)}
	for i := range d.loud {
		d.loud[i] = int16(12000 * math.Sin(2*math.Pi*300*float64(i)/16000))
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		end := tape.Run(ctx)
		err := c.Run(ctx)
		tools.Close()
		end(err)
	}()
	synctest.Wait()
	for _, line := range s.parts["script"] {
		d.do(line)
	}
	synctest.Wait()
	cancel()
	<-over
	tools.Close()
	o.Devices.Close()
	detectors.Wait()
}
