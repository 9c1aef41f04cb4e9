package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

const (
	stallPatience = 15 * time.Second // a server has to close a device that does not read (M16)
	leavePatience = 15 * time.Second // a server has to free devices that are gone (M14)
	firstLimit    = 12               // Han characters that a first segment may have (M17)
)

// hello is M15: from opening the socket to the server's hello, while a server of ours loads its recogniser, and idle.
func hello(ctx context.Context, r *rig) ([]Figure, error) {
	var loading []time.Duration
	for r.own != nil && !r.own.ready(ctx) && len(loading) < r.hellos {
		took, err := r.greeted(ctx)
		if err != nil {
			return nil, err
		}
		loading = append(loading, took)
	}
	if r.own != nil {
		if err := r.own.await(ctx, readyLimit, "is not ready", r.own.ready); err != nil {
			return nil, err
		}
	}
	idle, err := times(r.hellos, func() (time.Duration, error) { return r.greeted(ctx) })
	if err != nil {
		return nil, err
	}
	busy := sampled("M15", "hello while the recogniser loads", ms(loading), most(P99, 50))
	if len(loading) == 0 {
		busy = unmeasured("M15", "hello while the recogniser loads", "only of a server that the bench starts, with pocketsphinx installed")
	}
	return []Figure{busy, sampled("M15", "hello, idle", ms(idle), most(P99, 50))}, nil
}

func (r *rig) greeted(ctx context.Context) (time.Duration, error) {
	from := time.Now()
	c, err := r.dial(ctx, devicetest.Options{NoMCP: true})
	took := time.Since(from)
	if err == nil {
		r.drop(c)
	}
	return took, err
}

// fairness is M16: one device stops reading what it is sent; the others must not notice, and it must be hung up on.
func fairness(ctx context.Context, r *rig) ([]Figure, error) {
	u, err := url.Parse(r.target.ws)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "ws" || u.Port() == "" {
		return []Figure{unmeasured("M16", "one device that stops reading", "the address must be ws:// with a port")}, nil
	}
	r.stubs.Set(r.endless())
	healthy, err := r.speaking(ctx, r.healthy, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return nil, err
	}
	stalled, gate, err := r.stallable(ctx, u.Host)
	if err != nil {
		return nil, err
	}
	defer func() { // what has piled up is not looked at any more
		stalled.CloseTCP()
		gate.open()
		r.drop(stalled)
	}()
	err1 := pause(ctx, time.Second)
	before, err2 := listenTo(ctx, healthy, r.window)
	gate.shut()
	closed := make(chan time.Duration, 1)
	go func() { closed <- stalled.hungUp(ctx) }()
	during, err3 := listenTo(ctx, healthy, r.window)
	took := <-closed
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, err
	}
	a, b := describe(ms(before.jitter)), describe(ms(during.jitter))
	if a == nil || b == nil {
		return nil, errors.New("the healthy devices hear nothing")
	}
	figures := []Figure{
		sampled("M16", fmt.Sprintf("jitter of %d healthy devices", len(healthy)), ms(before.jitter)).asJitter(),
		sampled("M16", "the same beside one that does not read", ms(during.jitter)).noted("%d underruns, %d heard nothing", during.underruns, len(during.deaf)).asJitter(),
		single("M16", "change of p99", "ms", len(during.jitter), b.P99-a.P99, most(Value, 2)),
	}
	if took == 0 {
		return append(figures, unmeasured("M16", "the stalled device is hung up on", fmt.Sprintf("not within %v", stallPatience))), nil
	}
	return append(figures, single("M16", "the stalled device is hung up on", "s", 1, took.Seconds(), most(Value, 5)).
		noted("from its last read; what the system buffers is included")), nil
}

// stallable connects a device that is spoken to and whose reading can be stopped.
func (r *rig) stallable(ctx context.Context, host string) (*client, *gate, error) {
	d := net.Dialer{Control: smallBuffer}
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, nil, err
	}
	g := newGate(conn)
	c, err := r.dial(ctx, devicetest.Options{NetConn: g, Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return c, g, c.ask(ctx, aStory)
}

// gate is a connection whose reading can be stopped. Pass holds a token while it goes on.
type gate struct {
	net.Conn
	pass chan struct{}
}

func newGate(conn net.Conn) *gate {
	g := &gate{Conn: conn, pass: make(chan struct{}, 1)}
	g.open()
	return g
}

func (g *gate) shut() { <-g.pass }

func (g *gate) open() {
	select {
	case g.pass <- struct{}{}:
	default: // it is open
	}
}

func (g *gate) Read(p []byte) (int, error) {
	<-g.pass
	g.open()
	return g.Conn.Read(p)
}

// hungUp keeps sending silence and says after how long the connection was found closed; 0 if it never was.
func (c *client) hungUp(ctx context.Context) time.Duration {
	from := time.Now()
	for time.Since(from) < stallPatience {
		if pause(ctx, uplink.Frame) != nil {
			return 0
		}
		if c.SendFrames(pauses(uplink.Frame)...) != nil {
			return time.Since(from)
		}
	}
	return 0
}

// firstSegment is M17: how soon the voice is asked after the model's first
// word, and how much text it is given, in Chinese.
func firstSegment(ctx context.Context, r *rig) ([]Figure, error) {
	c, err := r.dial(ctx, devicetest.Options{Mode: devicetest.Manual, NoMCP: true, Language: "zh-CN"})
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	var lengths []float64
	long, worst := 0, ""
	for i := range r.segments {
		text := chineseReplies()[i%len(chineseReplies())]
		r.stubs.Set(Plan{Rate: 40, Replies: []string{text}, Sound: time.Second, Log: true})
		err := c.ask(ctx, "讲点什么吧")
		if err == nil {
			_, err = c.cut(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("reply %d: %w", i, err)
		}
		c.frames.forget()
		chats, speeches := r.stubs.Requests(openaitest.Chat), r.stubs.Requests(openaitest.Speak)
		if len(chats) == 0 || len(speeches) == 0 {
			return nil, fmt.Errorf("reply %d: %d requests of the model, %d of the voice", i, len(chats), len(speeches))
		}
		said, _ := speeches[0].JSON()["input"].(string)
		took = append(took, speeches[0].Arrived.Sub(chats[0].Began()))
		lengths = append(lengths, float64(hanCount(said)))
		if tooLong(text, said) {
			long, worst = long+1, said
		}
	}
	cuts := single("M17", "first segments over 12 characters although a pause came before", "", len(took), float64(long), most(Value, 0)).untimed()
	if worst != "" {
		cuts = cuts.noted("such as %s", worst)
	}
	return []Figure{
		sampled("M17", "first delta to first request of the voice, 40 tokens/s", ms(took), most(P50, 250)),
		{Metric: "M17", What: "length of the first segment", Unit: "字", N: len(lengths), Numbers: describe(lengths), Untimed: true},
		cuts,
	}, nil
}

// hanCount counts Han characters.
func hanCount(s string) int { return len(han.FindAllString(s, -1)) }

var han = regexp.MustCompile(`\p{Han}`)

// tooLong says whether the first segment of a reply is longer than it may be,
// although the reply has a mark of a pause within as many characters.
func tooLong(reply, said string) bool {
	if hanCount(said) <= firstLimit {
		return false
	}
	at := strings.IndexAny(reply, "，。！？；：、,.!?;:")
	return at >= 0 && hanCount(reply[:at]) <= firstLimit
}

// footprint is M12: what devices add to the server's resident memory.
func footprint(ctx context.Context, r *rig) ([]Figure, error) {
	if r.target.pid == 0 {
		return []Figure{unmeasured("M12", "memory per device", "no process id (--pid)")}, nil
	}
	base, err := r.resident(ctx)
	if err != nil {
		return nil, err
	}
	figures := []Figure{single("M12", "base process", "MiB", 1, float64(base)/1024, most(Value, 60)).untimed()}
	steps := []struct {
		what string
		n    int
		goal float64
		come func(n int) ([]*client, error)
	}{
		{"idle after hello", r.memory.idle, 60, func(n int) ([]*client, error) { return r.fleet(ctx, n, devicetest.Options{NoMCP: true}) }},
		{"idle, its tools listed", r.memory.idle, 60, func(n int) ([]*client, error) {
			return together(n, 8, func(int) (*client, error) { return r.withTools(ctx) })
		}},
		{"speaking", r.memory.speaking, 400, func(n int) ([]*client, error) {
			return r.speaking(ctx, n, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
		}},
	}
	r.stubs.Set(r.endless())
	for _, s := range steps { // what the first of each kind needs of the program's file is not of a device
		if _, err := s.come(1); err != nil {
			return figures, fmt.Errorf("%s: %w", s.what, err)
		}
	}
	if base, err = r.resident(ctx); err != nil {
		return figures, err
	}
	for _, s := range steps {
		if _, err := s.come(s.n); err != nil {
			return figures, fmt.Errorf("%s: %w", s.what, err)
		}
		now, err := r.resident(ctx)
		if err != nil {
			return figures, err
		}
		per := float64(now-base) / float64(s.n)
		figures = append(figures, single("M12", "per device, "+s.what, "KiB", s.n, per, most(Value, s.goal)).untimed())
		base = now
	}
	return figures, nil
}

// withTools connects a device as they are sold, and waits until its tools are known.
func (r *rig) withTools(ctx context.Context) (*client, error) {
	c, err := r.dial(ctx, devicetest.Options{Tools: devicetest.NewBoard().Tools()})
	if err != nil {
		return nil, err
	}
	_, err = until(ctx, func(ctx context.Context) (devicetest.Event, error) { return c.Wait(ctx, devicetest.Event.EndsTools) })
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("the server does not ask for the device's tools")
	}
	return c, err
}

// resident is the server's memory in KiB once it has had time to settle.
func (r *rig) resident(ctx context.Context) (int, error) {
	if err := pause(ctx, r.memory.settle); err != nil {
		return 0, err
	}
	return r.target.pid.memory()
}

// churn is M14: devices that connect, talk, and drop.
func churn(ctx context.Context, r *rig) ([]Figure, error) {
	if r.target.pid == 0 {
		return []Figure{unmeasured("M14", "churn", "no process id (--pid)")}, nil
	}
	r.stubs.Set(Plan{Sound: 5 * time.Second})
	const ids = 50 // the server remembers devices for a while: that is no leak
	cycle := func(i int) (struct{}, error) { return struct{}{}, r.cycle(ctx, deviceID(i%ids)) }
	_, warm := together(max(ids, r.cycles/10), 10, cycle)
	memory, routines, err := r.afterwards(ctx, -1)
	if err = cmp.Or(warm, err); err != nil {
		return nil, err
	}
	_, failed := together(r.cycles, 10, cycle)
	memoryNow, routinesNow, err := r.afterwards(ctx, routines+2)
	if err = cmp.Or(failed, err); err != nil {
		return nil, err
	}
	growth := 100 * float64(memoryNow-memory) / float64(memory)
	grown := single("M14", "memory growth after connect, talk, drop", "%", r.cycles, growth, most(Value, 5)).
		noted("%.1f to %.1f MiB", float64(memory)/1024, float64(memoryNow)/1024).untimed()
	if r.target.prof.url == "" {
		return []Figure{grown, unmeasured("M14", "goroutines", "no profiles of this server (--pprof-url)")}, nil
	}
	leaked := single("M14", "goroutines more than before", "", r.cycles, float64(routinesNow-routines), least(Value, -2), most(Value, 2)).
		noted("%d to %d", routines, routinesNow).untimed()
	return []Figure{grown, leaked}, nil
}

func (r *rig) cycle(ctx context.Context, id string) error {
	c, err := r.dial(ctx, devicetest.Options{DeviceID: id, Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return err
	}
	stop, err := c.pressed(ctx, r.said.packets[:10])
	if err == nil {
		_, err = c.heard(ctx, stop)
	}
	r.drop(c)
	return err
}

// afterwards is the server's memory and number of goroutines once all devices
// have gone, at the latest when no more than enough are left.
func (r *rig) afterwards(ctx context.Context, enough int) (memory, routines int, err error) {
	end := time.Now().Add(leavePatience)
	last := -1
	for {
		if memory, err = r.resident(ctx); err != nil || r.target.prof.url == "" {
			return memory, 0, err
		}
		if routines, err = r.target.prof.goroutines(ctx); err != nil {
			return memory, routines, err
		}
		if enough < 0 && routines == last || routines <= enough || time.Now().After(end) {
			return memory, routines, nil
		}
		last = routines
	}
}
