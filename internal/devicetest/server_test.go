package devicetest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"

	"github.com/gorilla/websocket"
)

// wire is the far end of a device's connection, played by a test.
type wire struct {
	t       *testing.T
	ws      *websocket.Conn
	enc     *audio.Encoder
	in      chan string // text messages of the device, in order; 256
	binary  chan []byte // binary messages of the device; 4096
	request *http.Request
	ends    chan struct{} // closed when reading ends
}

// hijacked lets gorilla upgrade a bare connection.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
	rw   *bufio.ReadWriter
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.conn, h.rw, nil }
func (h hijacked) Header() http.Header                          { return http.Header{} }

// serve upgrades the connection, reads the device's hello, plays the script and ends TCP.
func serve(t *testing.T, conn net.Conn, script func(*wire)) {
	t.Helper()
	defer conn.Close()
	rw := bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
	req, err := http.ReadRequest(rw.Reader)
	if err != nil {
		t.Errorf("read upgrade request: %v", err)
		return
	}
	ws, err := (&websocket.Upgrader{}).Upgrade(hijacked{conn: conn, rw: rw}, req, nil)
	if err != nil {
		t.Errorf("upgrade: %v", err)
		return
	}
	enc, err := audio.NewEncoder(audio.Reply)
	if err != nil {
		t.Errorf("encoder: %v", err)
		return
	}
	w := &wire{t: t, ws: ws, enc: enc, in: make(chan string, 256), binary: make(chan []byte, 4096), request: req, ends: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(w.ends)
		for {
			kind, data, err := ws.ReadMessage()
			if err != nil {
				return
			}
			if kind == websocket.BinaryMessage {
				w.binary <- data
			} else {
				w.in <- string(data)
			}
		}
	}()
	w.await(`"type":"hello"`)
	script(w)
	conn.Close()
	<-done
}

func (w *wire) await(part string) string {
	for {
		select {
		case m := <-w.in:
			if strings.Contains(m, part) {
				return m
			}
		case <-w.ends:
			w.t.Errorf("connection ended before a message with %s", part)
			return ""
		case <-time.After(5 * time.Minute):
			w.t.Errorf("no message with %s", part)
			return ""
		}
	}
}

func (w *wire) pause(d time.Duration) { <-time.After(d) }

func (w *wire) raw(text string) {
	if err := w.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		w.t.Logf("write %s: %v", text, err)
	}
}

// say writes a message of the session.
func (w *wire) say(fields string) { w.raw(`{"session_id":"s1",` + fields + `}`) }

func (w *wire) hello() {
	w.raw(`{"type":"hello","transport":"websocket","session_id":"s1","audio_params":{"sample_rate":24000,"frame_duration":60}}`)
}

func (w *wire) binaryOut(b []byte) {
	if err := w.ws.WriteMessage(websocket.BinaryMessage, b); err != nil {
		w.t.Logf("write frame: %v", err)
	}
}

// packet is 60 ms of a loud tone, or of silence.
func (w *wire) packet(silent bool) []byte {
	pcm := make([]int16, audio.Reply.Samples())
	if !silent {
		for i := range pcm {
			pcm[i] = int16((i%80 - 40) * 200)
		}
	}
	return w.encoded(pcm)
}

func (w *wire) encoded(pcm []int16) []byte {
	out := make([]byte, 1500)
	n, err := w.enc.Encode(pcm, out)
	if err != nil {
		w.t.Errorf("encode: %v", err)
	}
	return out[:n]
}

// tone sends n frames: four at once, then one each 60 ms.
func (w *wire) tone(n int) {
	start := time.Now()
	for i := range n {
		if i >= 4 {
			w.pause(time.Until(start.Add(time.Duration(i-3) * 60 * time.Millisecond)))
		}
		w.binaryOut(w.packet(false))
	}
}

// begin is all of a reply up to its sound.
func (w *wire) begin() {
	w.say(`"type":"stt","text":"what time is it"`)
	w.say(`"type":"tts","state":"start"`)
	w.say(`"type":"llm","emotion":"happy","text":"🙂"`)
	w.say(`"type":"tts","state":"sentence_start","text":"It is ten past nine."`)
	w.pause(110 * time.Millisecond)
}

// finish waits for play-out after tone and stops.
func (w *wire) finish() {
	w.pause(180*time.Millisecond + 160*time.Millisecond)
	w.stop()
}

func (w *wire) stop() { w.say(`"type":"tts","state":"stop"`) }

func (w *wire) reply(frames int) {
	w.begin()
	w.tone(frames)
	w.finish()
}

// rules are the distinct rules broken, sorted.
func rules(d *Device) []string {
	var names []string
	for _, v := range d.Violations() {
		names = append(names, string(v.Rule))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// talk plays a conversation inside a synctest bubble: script is the server, user
// the device's owner. It returns when the server has ended the connection.
func talk(t *testing.T, o Options, script func(*wire), user func(context.Context, *Device)) (d *Device) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { d = converse(t, o, script, user) })
	return d
}

// converse is talk for those who are in a bubble already.
func converse(t *testing.T, o Options, script func(*wire), user func(context.Context, *Device)) *Device {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	client, server := net.Pipe()
	if o.Quirks.Freezes {
		server = newNetwork(server)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(t, server, script)
	}()
	o.NetConn, o.URL = client, "ws://server:8000/xiaozhi/v1/"
	d, err := Dial(ctx, o)
	if err != nil {
		t.Errorf("dial: %v", err)
		<-done
		return nil
	}
	if user != nil {
		user(ctx, d)
	}
	for range d.Watch(ctx) { // waits for the server's end
	}
	d.Close()
	<-done
	return d
}

// network is a wire that takes what a device does not read yet, unlike a bare pipe.
type network struct {
	net.Conn
	out  chan []byte
	sent chan struct{} // closed when all of out is read
	once sync.Once
}

func newNetwork(conn net.Conn) *network {
	n := &network{Conn: conn, out: make(chan []byte, 1024), sent: make(chan struct{})}
	go func() {
		defer close(n.sent)
		for b := range n.out {
			_, _ = conn.Write(b) // a device that is gone reads nothing more
		}
	}()
	return n
}

func (n *network) Write(b []byte) (int, error) {
	n.out <- slices.Clone(b)
	return len(b), nil
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.out) })
	<-n.sent
	return n.Conn.Close()
}

func mcp(id any, method, params string) string {
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Sprintf(`"type":"mcp","payload":{"jsonrpc":"2.0","id":%v,"method":%q%s}`, id, method, params)
}
