package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/testall"
)

const (
	listenStart  = `{"session_id":"","type":"listen","state":"start","mode":"auto"}`
	listenManual = `{"session_id":"","type":"listen","state":"start","mode":"manual"}`
	listenStop   = `{"session_id":"","type":"listen","state":"stop"}`
	abortNow     = `{"session_id":"","type":"abort"}`
)

func typed(text string) string {
	return fmt.Sprintf(`{"session_id":"","type":"listen","state":"detect","text":%q}`, text)
}

// attack is one kind of bad input. log is what the server must say of it, on
// one line that names the device.
type attack struct {
	name string
	run  func(ctx context.Context, t *testing.T, s *server, id string)
	log  []string
}

// TestBadInput does to a server what broken, old and hostile clients do. After
// each of it a healthy device must hold a conversation in which nothing is wrong.
func TestBadInput(t *testing.T) {
	t.Parallel()
	needRace(t)
	cloud := startCloud(t)
	cloud.Handle(openaitest.Chat, echo)
	s := start(t, setup{race: true, speaks: true, env: cloudEnv(cloud)})
	t.Run("attacks", func(t *testing.T) {
		for i, a := range attacks {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				ctx := limit(t)
				id := fmt.Sprintf("bad-%02d", i)
				a.run(ctx, t, s, id)
				s.healthy(ctx, t, fmt.Sprintf("24:6f:28:bb:00:%02x", i))
				s.awaitLog(ctx, t, append(a.log, "device_id="+id)...)
			})
		}
	})
	if strings.Contains(s.log.String(), "panic") {
		t.Errorf("something panicked:\n%s", s.log.String())
	}
}

// echo is a model that repeats what it is asked, and tells a long story when that is asked for.
func echo(r *openaitest.Request) openaitest.Reply {
	text := lastWords(r)
	if strings.Contains(text, "story") {
		var pieces []string
		for i := range 40 {
			pieces = append(pieces, fmt.Sprintf("This is sentence number %d of a story that does not want to end. ", i))
		}
		return openaitest.Text(pieces...)
	}
	return openaitest.Text("I heard " + text + ".")
}

// lastWords is the text of the last message of a chat request.
func lastWords(r *openaitest.Request) string {
	var body struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return err.Error()
	}
	for _, m := range slices.Backward(body.Messages) {
		if m.Role == "user" {
			return m.Content
		}
	}
	return "nothing"
}

// healthy lets a device that does nothing wrong ask one question.
func (s *server) healthy(ctx context.Context, t *testing.T, id string) {
	t.Helper()
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true, DeviceID: id})
	r := ask(ctx, t, d, "word "+id[len(id)-2:])
	if r.Text() != "I heard word "+id[len(id)-2:]+"." || r.Frames == 0 || r.Dropped != 0 || r.Cut {
		t.Errorf("the healthy device heard %q, %d frames, %d dropped, cut %t", r.Text(), r.Frames, r.Dropped, r.Cut)
	}
	d.Close()
}

// awaitLog waits until a line of the log holds all parts.
func (s *server) awaitLog(ctx context.Context, t *testing.T, parts ...string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		for line := range strings.Lines(s.log.String()) {
			if holdsAll(line, parts) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-s.over:
			t.Fatal("the server has ended")
		case <-ctx.Done():
			t.Fatalf("no line of the log holds %q", parts)
		}
	}
}

// survives is an attack after which the same connection must still answer.
func survives(messages ...any) func(context.Context, *testing.T, *server, string) {
	return func(_ context.Context, t *testing.T, s *server, id string) {
		r := dialRaw(t, s, id)
		r.hello(hello242)
		for _, m := range messages {
			switch m := m.(type) {
			case string:
				r.text(m)
			case []byte:
				r.binary(m)
			}
		}
		r.text(typed("still here"))
		r.await(`"stt"`, "still here")
		r.await(`"tts"`, `"stop"`)
	}
}

// closes is an attack that ends its connection with this close code.
func closes(code int, write func(r *raw)) func(context.Context, *testing.T, *server, string) {
	return func(ctx context.Context, t *testing.T, s *server, id string) {
		r := dialRaw(t, s, id)
		r.hello(hello242)
		write(r)
		if got, reason := r.awaitClose(ctx); got != code {
			t.Errorf("closed with %d %q, want %d", got, reason, code)
		}
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// framed2 is a header of framing 2 with a size of its own choice, and a payload.
func framed2(version, kind, size int, payload []byte) []byte {
	return append([]byte{0, byte(version), 0, byte(kind), 0, 0, 0, 0, 0, 0, 0, 0, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)}, payload...)
}

var attacks = []attack{
	{"no hello for 10 s", func(ctx context.Context, t *testing.T, s *server, id string) {
		began := time.Now()
		r := dialRaw(t, s, id)
		if code, reason := r.awaitClose(ctx); code != 1000 || time.Since(began) < 10*time.Second {
			t.Errorf("closed with %d %q after %s", code, reason, time.Since(began))
		}
	}, []string{"no hello within 10 s"}},
	{"a device that stops reading", stopsReading, []string{"write to device failed"}},
	{"a thousand messages a second", flood, nil},
	{"random bytes as opus", randomOpus, []string{"frame is not Opus"}},
	{"broken json", survives(`{"type":"listen",`, `{"type":"listen" "state"}`, "\x00\x01\x02", `"`, ``, `null`, `[]`, `7`), []string{"broken json"}},
	{"wrong types", survives(
		`{"type":7}`, `{"type":{"a":1}}`, `{}`, `{"type":"listen","state":1}`, `{"type":"listen","state":"start","mode":["auto"]}`,
		`{"type":"listen","state":"detect","text":{"a":1}}`, `{"type":"abort","reason":[1]}`, `{"type":"mcp","payload":"x"}`, `{"type":"mcp","payload":[]}`,
		`{"type":"mcp"}`, `{"type":"iot","descriptors":7}`, `{"type":"iot"}`, `{"type":"no such type","x":1}`, `{"type":"listen","state":"sideways"}`,
	), []string{"type is missing or not a string"}},
	{"deep json", survives(strings.Repeat("[", 100_000), `{"type":"mcp","payload":`+strings.Repeat(`{"a":`, 100_000)+"1"+strings.Repeat("}", 100_001)), []string{"levels deep"}},
	{"a megabyte of text", survives(`{"type":"listen","state":"detect","text":"` + strings.Repeat("a", 1<<20-100) + `"}`), []string{"the limit is"}},
	{"more than a megabyte of text", closes(1009, func(r *raw) { r.text(strings.Repeat("a", 1<<20+1)) }), []string{"message too big", "limit of 1048576 bytes"}},
	{"64 KiB of binary", survives(listenStart, noise(64<<10)), []string{"frame is not Opus"}},
	{"more than 64 KiB of binary", closes(1009, func(r *raw) { r.binary(noise(64<<10 + 1)) }), []string{"message too big", "limit of 65536 bytes"}},
	{"endless fragments", closes(1009, func(r *raw) {
		r.frame(opText, []byte("{"))
		for range 64 {
			if !r.frame(opContinuation, bytes.Repeat([]byte(" "), 32<<10)) {
				return
			}
		}
	}), []string{"message too big"}},
	{"lying headers of framing 2", survivesFraming(2,
		nil, []byte{0}, framed2(2, 0, 3, nil)[:15], framed2(2, 0, 500, noise(20)), framed2(2, 0, 2, noise(20)), framed2(2, 0, 1<<31, noise(20)),
		framed2(2, 0, 0, nil), framed2(9, 0, 20, noise(20)), framed2(2, 1, 20, []byte(`{"type":"abort"}    `)),
	), []string{"audio frame dropped", "framing=2"}},
	{
		"lying headers of framing 3", survivesFraming(3, nil, []byte{0}, []byte{0, 0, 0}, []byte{0, 0, 0xFF, 0xFF, 1}, []byte{0, 0, 0, 1, 1, 2, 3}, []byte{7, 7, 0, 1, 1}),
		[]string{"audio frame dropped", "framing=3"},
	},
	{"hello twice", survives(hello242, `{"type":"hello","version":3}`, hello242), []string{"second hello ignored"}},
	{"everything before hello", func(_ context.Context, t *testing.T, s *server, id string) {
		r := dialRaw(t, s, id)
		for range 50 {
			r.binary(noise(80))
			r.text(listenStart)
			r.text(typed("too early"))
			r.text(abortNow)
			r.text(`{"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"result":{}}}`)
		}
		r.hello(hello242)
		r.text(typed("in time"))
		if first := r.await(`"stt"`); !strings.Contains(first, "in time") {
			t.Errorf("the first text heard is %s", first)
		}
		r.await(`"tts"`, `"stop"`)
		r.conn.Close()
	}, []string{"device left", "early=250"}},
	{"odd hellos", oddHellos, []string{"hello has fields that are not as they should be"}},
	{"listen in any order", survives(
		listenStop, listenStop, []byte{0x58}, listenStart, listenStart, listenManual, listenStart, []byte{0x58}, listenStop, listenStop, abortNow, listenManual,
		abortNow, abortNow, listenStop, `{"type":"listen","state":"start","mode":"telepathy"}`, `{"type":"listen"}`, `{"type":"listen","state":"detect"}`,
		listenManual, typed("one"), typed("two"), listenStop, listenStart, abortNow, typed("three"), listenStop,
	), []string{"unknown listen mode"}},
	{"half-open sockets", func(ctx context.Context, t *testing.T, s *server, id string) {
		for i := range 20 {
			r := dialRaw(t, s, fmt.Sprintf("%s-%d", id, i%3))
			r.hello(hello242)
			r.text(listenStart)
			if i%2 == 0 {
				r.text(typed("story")) // and the answer is not read
			}
			if i%4 == 3 {
				_ = r.conn.(*net.TCPConn).SetLinger(0)
				r.conn.Close()
			}
		}
		s.awaitLog(ctx, t, "device_id="+id+"-0", "replaced by a new connection")
	}, nil},
	{"broken websocket frames", func(_ context.Context, t *testing.T, s *server, id string) {
		for i, wrong := range [][]byte{
			{0xFF, 0x81, 0, 0, 0, 0, 0},                            // reserved bits and an unknown opcode
			{0x81, 0x01, 'x'},                                      // not masked
			{0x80, 0x81, 0, 0, 0, 0, 0},                            // continues nothing
			append([]byte{0x89, 0xFE, 1, 0}, make([]byte, 260)...), // a ping of 256 bytes
			{0x82, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}, // 2^64 bytes follow, it says
			maskedFrame(finBit|opClose, []byte{1}),                                   // half a close code
			noise(4000),
		} {
			r := dialRaw(t, s, fmt.Sprintf("%s-%d", id, i))
			r.hello(hello242)
			r.bytes(wrong)
			r.conn.Close()
		}
	}, []string{"device broke the WebSocket protocol"}},
}

// survivesFraming is survives for a device of another framing, with binary messages only.
func survivesFraming(version int, messages ...[]byte) func(context.Context, *testing.T, *server, string) {
	return func(_ context.Context, t *testing.T, s *server, id string) {
		r := dialRaw(t, s, id, fmt.Sprintf("Protocol-Version: %d", version))
		r.hello(strings.Replace(hello242, `"version":1`, fmt.Sprintf(`"version":%d`, version), 1))
		r.text(listenStart)
		for _, m := range messages {
			r.binary(m)
		}
		r.text(typed("still here"))
		r.await(`"stt"`, "still here")
		r.await(`"tts"`, `"stop"`)
	}
}

// oddHellos says hello in ways that clients have been seen to, and worse ones.
func oddHellos(_ context.Context, t *testing.T, s *server, id string) { //nolint:thelper // it is the case itself
	for i, h := range []string{
		`{"type":"hello"}`, `{"type":"hello","transport":"udp","version":"3"}`, `{"type":"hello","version":99,"features":[],"audio_params":7,"transport":1}`,
		`{"type":"hello","features":{"mcp":"true"},"audio_params":{"sample_rate":"16000","frame_duration":-60,"channels":2,"format":"speex"}}`,
		`{"type":"hello","features":null,"audio_params":null,"transport":null,"version":null}`, `{"type":"hello","audio_params":{"sample_rate":1e300,"frame_duration":1e-300}}`,
	} {
		name := id
		if i > 0 {
			name = fmt.Sprintf("%s-%d", id, i)
		}
		r := dialRaw(t, s, name)
		r.hello(h)
		r.conn.Close()
	}
	r := dialRaw(t, s, id)
	r.hello(`{"type":"hello","version":99,"transport":"pigeon"}`)
	r.text(typed("still here"))
	r.await(`"stt"`, "still here")
	r.await(`"tts"`, `"stop"`)
}

// flood sends a thousand messages a second for five seconds or, in make test, for two, text and sound.
// The server may close the connection, but must say so.
func flood(ctx context.Context, t *testing.T, s *server, id string) { //nolint:thelper // it is the case itself
	r := dialRaw(t, s, id)
	r.hello(hello242)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	messages := []string{listenStart, abortNow, typed("hello"), listenStop, `{"type":"nonsense"}`, `{"type":`, listenManual, `{"type":"mcp","payload":{}}`}
	alive := true
	ticks := testall.Pick(500, 200)
	for i := 0; i < ticks && alive; i++ {
		<-tick.C
		for k := range 5 {
			alive = alive && r.text(messages[(i*5+k)%len(messages)]) && r.binary(noise(60))
		}
		if i == ticks/2 {
			s.healthy(ctx, t, "24:6f:28:bb:01:00") // in the middle of it
		}
	}
	r.conn.Close()
	s.awaitLog(ctx, t, "device_id="+id, "device left")
	lines := 0
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "device_id="+id) && !strings.Contains(line, "msg=turn") {
			lines++
		}
	}
	t.Logf("the flood was taken to its end: %t; it made %d lines in the log besides turns", alive, lines)
	if lines > 50 {
		t.Errorf("a flood of some seconds made %d lines in the log", lines)
	}
}

// randomOpus speaks noise that is no Opus for three seconds, then a word.
func randomOpus(ctx context.Context, t *testing.T, s *server, id string) { //nolint:thelper // it is the case itself
	d, err := devicetest.Dial(ctx, devicetest.Options{URL: s.ws, DeviceID: id, NoMCP: true, OpenListen: true, Limits: devicetest.Limits{Tolerance: 500 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	tick := time.NewTicker(60 * time.Millisecond)
	defer tick.Stop()
	for i := range 50 {
		<-tick.C
		if err := d.SendFrames(noise(1+rand.IntN(300)), noise(i%4)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Detect("a word"); err != nil {
		t.Fatal(err)
	}
	r := reply(ctx, t, d)
	for r.Heard != "a word" { // some of the noise may have decoded to what sounds like a voice
		r = reply(ctx, t, d)
	}
	if r.Text() != "I heard a word." {
		t.Errorf("after the noise: %q", r.Text())
	}
	for _, v := range d.Violations() {
		t.Errorf("device: %s", v)
	}
}

// stopsReading asks for a long story and reads nothing of it. The server has
// seconds to notice, not minutes, and other devices must not feel it.
func stopsReading(ctx context.Context, t *testing.T, s *server, id string) { //nolint:thelper // it is the case itself
	r := dialRaw(t, s, id)
	if err := r.conn.(*net.TCPConn).SetReadBuffer(2048); err != nil {
		t.Fatal(err)
	}
	r.hello(hello242)
	r.text(typed("story"))
	began := time.Now()
	s.healthy(ctx, t, "24:6f:28:bb:01:01") // while the other is stuck
	s.awaitLog(ctx, t, "device_id="+id, "device left")
	t.Logf("closed %s after the question", time.Since(began).Round(100*time.Millisecond))
}
