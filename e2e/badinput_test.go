package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
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
	cloud := startCloud(t)
	cloud.Handle(openaitest.Chat, echo)
	s := start(t, setup{env: cloudEnv(cloud)})
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
	for i := len(body.Messages) - 1; i >= 0; i-- {
		if body.Messages[i].Role == "user" {
			return body.Messages[i].Content
		}
	}
	return "nothing"
}

// healthy lets a device that does nothing wrong ask one question.
func (s *server) healthy(ctx context.Context, t *testing.T, id string) {
	t.Helper()
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true, DeviceID: id, Tolerance: 250 * time.Millisecond})
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
		r := dialRaw(t, s, id)
		began := time.Now()
		if code, reason := r.awaitClose(ctx); code != 1000 || time.Since(began) < 9*time.Second {
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
	{"lying headers of framing 3", survivesFraming(3, nil, []byte{0}, []byte{0, 0, 0}, []byte{0, 0, 0xFF, 0xFF, 1}, []byte{0, 0, 0, 1, 1, 2, 3}, []byte{7, 7, 0, 1, 1}),
		[]string{"audio frame dropped", "framing=3"}},
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
				r.text(typed("story")) // and nobody will read it
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
func oddHellos(_ context.Context, t *testing.T, s *server, id string) {
	for i, h := range []string{
		`{"type":"hello"}`, `{"type":"hello","transport":"udp","version":"3"}`, `{"type":"hello","version":99,"features":[],"audio_params":7,"transport":1}`,
		`{"type":"hello","features":{"mcp":"true"},"audio_params":{"sample_rate":"16000","frame_duration":-60,"channels":2,"format":"pcm"}}`,
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

// flood sends a thousand messages a second for five seconds, text and sound.
// The server may close the connection, but must say so.
func flood(ctx context.Context, t *testing.T, s *server, id string) {
	r := dialRaw(t, s, id)
	r.hello(hello242)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	messages := []string{listenStart, abortNow, typed("hello"), listenStop, `{"type":"nonsense"}`, `{"type":`, listenManual, `{"type":"mcp","payload":{}}`}
	alive := true
	for i := 0; i < 500 && alive; i++ {
		<-tick.C
		for k := range 5 {
			alive = alive && r.text(messages[(i*5+k)%len(messages)]) && r.binary(noise(60))
		}
		if i == 250 {
			s.healthy(ctx, t, "24:6f:28:bb:01:00") // in the middle of it
		}
	}
	t.Logf("the flood was taken to its end: %t", alive)
	r.conn.Close()
	s.awaitLog(ctx, t, "device_id="+id, "device left")
}

// randomOpus speaks noise that is no Opus for three seconds, then a word.
func randomOpus(ctx context.Context, t *testing.T, s *server, id string) {
	d, err := devicetest.Dial(ctx, devicetest.Options{URL: s.ws, DeviceID: id, NoMCP: true, OpenListen: true, Tolerance: 250 * time.Millisecond})
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
	if r := ask(ctx, t, d, "a word"); r.Text() != "I heard a word." {
		t.Errorf("after the noise: %q", r.Text())
	}
	for _, v := range d.Violations() {
		t.Errorf("device: %s", v)
	}
}

// stopsReading asks for a long story and reads nothing of it. The server has
// seconds to notice, not minutes, and nobody else may feel it.
func stopsReading(ctx context.Context, t *testing.T, s *server, id string) {
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

// TestBadHTTP knocks at the doors in wrong ways.
func TestBadHTTP(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	const token = "dvc-right-token"
	s := start(t, setup{env: []string{"XIAOZHI_AUTH__ENABLED=true", "XIAOZHI_AUTH__TOKEN=" + token}})
	const device = "Device-Id: 24:6f:28:bb:02:01"
	for name, c := range map[string]struct {
		path    string
		headers []string
		want    int
	}{
		"wrong token":      {"/xiaozhi/v1/", []string{device, "Authorization: Bearer dvc-wrong-token"}, 401},
		"no token":         {"/xiaozhi/v1/", []string{device}, 401},
		"half a token":     {"/xiaozhi/v1/", []string{device, "Authorization: Bearer dvc-right"}, 401},
		"wrong in query":   {"/xiaozhi/v1/?device-id=x&authorization=Bearer%20dvc-wrong-token", nil, 401},
		"right token":      {"/xiaozhi/v1/", []string{device, "Authorization: Bearer " + token}, 101},
		"without slash":    {"/xiaozhi/v1", []string{device, "Authorization: bearer " + token}, 101},
		"in the query":     {"/xiaozhi/v1/?Device_ID=q&token=" + token, nil, 101},
		"no id":            {"/xiaozhi/v1/", []string{"Authorization: Bearer " + token}, 400},
		"long id":          {"/xiaozhi/v1/", []string{"Device-Id: " + strings.Repeat("a", 200), "Authorization: Bearer " + token}, 400},
		"odd id":           {"/xiaozhi/v1/", []string{"Device-Id: a\xffb", "Authorization: Bearer " + token}, 400},
		"unknown path":     {"/xiaozhi/v2/", []string{device, "Authorization: Bearer " + token}, 404},
		"path below":       {"/xiaozhi/v1/more", []string{device, "Authorization: Bearer " + token}, 404},
		"websocket to ota": {"/xiaozhi/ota/", []string{device}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			if got := dialTCP(t, s).upgrade(c.path, c.headers...); got != c.want {
				t.Errorf("%s: %d, want %d", c.path, got, c.want)
			}
		})
	}
	s.awaitLog(ctx, t, "device_id=24:6f:28:bb:02:01", "wrong token")
	s.awaitLog(ctx, t, "device_id=24:6f:28:bb:02:01", "no token")
	if log := s.log.String(); strings.Contains(log, "dvc-") {
		t.Error("a token is in the log")
	}
	badOTA(ctx, t, s)
	badBytes(t, s)
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true})
	if r := ask(ctx, t, d, "what time is it"); r.Frames == 0 {
		t.Error("no answer after all that")
	}
}

// badOTA sends provisioning requests that are wrong in method and body.
func badOTA(ctx context.Context, t *testing.T, s *server) {
	t.Helper()
	huge := bytes.NewReader(bytes.Repeat([]byte("x"), 8<<20))
	for _, c := range []struct {
		method string
		body   io.Reader
		want   int
	}{
		{http.MethodPut, nil, 405}, {http.MethodDelete, nil, 405}, {"BREW", nil, 405},
		{http.MethodPost, nil, 200}, {http.MethodPost, strings.NewReader("no json"), 200},
		{http.MethodPost, strings.NewReader(`{"board":{"ssid":"my"net","type":7},"application":[]}`), 200},
		{http.MethodPost, strings.NewReader(strings.Repeat("[", 60_000)), 200},
		{http.MethodPost, huge, 200},
	} {
		req, err := http.NewRequestWithContext(ctx, c.method, s.ota, c.body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Device-Id", "24:6f:28:bb:02:02")
		resp, err := http.DefaultClient.Do(req)
		if err != nil && c.body == huge {
			continue // the server may hang up on what it does not want to read
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.method, s.ota, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.want || resp.ContentLength != int64(len(body)) || len(body) > 4096 {
			t.Errorf("%s %s: %d, want %d; Content-Length %d of %d bytes", c.method, s.ota, resp.StatusCode, c.want, resp.ContentLength, len(body))
		}
		if c.want == 200 && !json.Valid(body) {
			t.Errorf("answer %q", body)
		}
	}
}

// badBytes sends what is no HTTP at all.
func badBytes(t *testing.T, s *server) {
	t.Helper()
	for name, b := range map[string]string{
		"noise": string(noise(3000)) + "\r\n\r\n", "no version": "GET /\r\n\r\n", "huge header": "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
		"two lengths": "POST /xiaozhi/ota/ HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
		"bad chunk":   "POST /xiaozhi/ota/ HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
	} {
		r := dialTCP(t, s)
		r.bytes([]byte(b))
		_ = r.conn.(*net.TCPConn).CloseWrite()
		r.patience(15 * time.Second)
		if _, err := io.Copy(io.Discard, r.in); isTimeout(err) {
			t.Errorf("%s: the server neither answered nor hung up", name)
		}
		r.conn.Close()
	}
}

var goroutineLine = regexp.MustCompile(`(?m)^goroutine \d+ .*\[`)

// goroutines ends a server with SIGQUIT, which makes it print them all, and counts them.
func goroutines(t *testing.T, s *server) int {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	if err := s.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.over:
	case <-time.After(30 * time.Second):
		t.Fatal("the server does not end by SIGQUIT")
	}
	return len(goroutineLine.FindAllString(s.log.String(), -1))
}

// TestGoroutinesDoNotPileUp compares a server that has seen many bad and good
// connections come and go with one that has seen none.
func TestGoroutinesDoNotPileUp(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Handle(openaitest.Chat, echo)
	fresh, used := start(t, setup{env: cloudEnv(cloud)}), start(t, setup{env: cloudEnv(cloud)})
	fresh.waitReady(ctx, t)
	used.waitReady(ctx, t)
	for i := range 120 {
		r := dialRaw(t, used, fmt.Sprintf("cycle-%d", i%40))
		if i%4 != 0 {
			r.hello(strings.Replace(hello242, `"features":{}`, `"features":{"mcp":true}`, 1)) // its tools are asked for, in vain
		}
		if i%4 > 1 {
			r.text(listenStart)
			r.binary(noise(50))
			r.text(typed("story"))
		}
		if i%4 > 2 {
			r.await(`"tts"`, `"start"`)
		}
		if i%10 == 5 {
			r.bytes(noise(200))
		}
		r.conn.Close()
	}
	used.healthy(ctx, t, "24:6f:28:bb:03:01")
	waitGone(ctx, t, used)
	cloud.Close()
	a, b := goroutines(t, fresh), goroutines(t, used)
	t.Logf("goroutines: %d in a fresh server, %d in a used one", a, b)
	if a == 0 || b > a+5 {
		t.Errorf("%d goroutines in a fresh server, %d in a used one", a, b)
		t.Log(used.log.String())
	}
}

// waitGone waits until every device that connected has left.
func waitGone(ctx context.Context, t *testing.T, s *server) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		log := s.log.String()
		came, left := strings.Count(log, `msg="device connected"`), strings.Count(log, `msg="device left"`)
		if came > 0 && came == left {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d devices came, %d left", came, left)
		}
	}
}
