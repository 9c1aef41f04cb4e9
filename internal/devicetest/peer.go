package devicetest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"xiaozhi/audio"

	"github.com/gorilla/websocket"
)

// Peer is the server's end of a connection, played from a script: for tests of
// what uses a Device. It is for one goroutine, the one that Script calls.
type Peer struct {
	ws   *websocket.Conn
	enc  *audio.Encoder
	text chan string // messages of the device, in order
}

// peerSession is the session id of every Peer.
const peerSession = "scripted"

// Script is a handler that upgrades each request, awaits the device's hello,
// answers it and plays. The connection ends when play returns.
func Script(play func(ctx context.Context, p *Peer)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return // the upgrader has answered
		}
		ctx, cancel := context.WithCancel(r.Context())
		enc, err := audio.NewEncoder(audio.Reply)
		p := &Peer{ws: ws, enc: enc, text: make(chan string, 256)}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer cancel()
			p.read(ctx)
		}()
		if err == nil && p.hello(ctx) == nil {
			play(ctx, p)
		}
		cancel()
		ws.Close()
		<-done
	})
}

func (p *Peer) read(ctx context.Context) {
	for {
		kind, data, err := p.ws.ReadMessage()
		if err != nil {
			return
		}
		if kind != websocket.TextMessage {
			continue
		}
		select {
		case p.text <- string(data):
		case <-ctx.Done():
			return
		}
	}
}

func (p *Peer) hello(ctx context.Context) error {
	if _, err := p.Await(ctx, `"type":"hello"`); err != nil {
		return err
	}
	return p.write(`{"type":"hello","transport":"websocket","session_id":"` + peerSession + `"}`)
}

// Await gives the next text message of the device that holds part.
func (p *Peer) Await(ctx context.Context, part string) (string, error) {
	for {
		select {
		case m := <-p.text:
			if strings.Contains(m, part) {
				return m, nil
			}
		case <-ctx.Done():
			return "", fmt.Errorf("await %s: %w", part, ctx.Err())
		}
	}
}

// Send writes a message of the session with these JSON members.
func (p *Peer) Send(members string) error {
	return p.write(`{"session_id":"` + peerSession + `",` + members + `}`)
}

func (p *Peer) write(text string) error {
	return p.ws.WriteMessage(websocket.TextMessage, []byte(text))
}

// Pause lets time pass.
func (p *Peer) Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Begin sends what a reply has before its sound, and keeps the guard after tts start.
func (p *Peer) Begin(ctx context.Context, heard, says string) error {
	for _, m := range []string{
		fmt.Sprintf(`"type":"stt","text":%q`, heard),
		`"type":"tts","state":"start"`,
		`"type":"llm","emotion":"happy","text":"🙂"`,
		fmt.Sprintf(`"type":"tts","state":"sentence_start","text":%q`, says),
	} {
		if err := p.Send(m); err != nil {
			return err
		}
	}
	p.Pause(ctx, startGuard+10*time.Millisecond)
	return nil
}

// Sound sends n frames of a buzz, four ahead and then one every 60 ms.
func (p *Peer) Sound(ctx context.Context, n int) error {
	start := time.Now()
	size := audio.Reply.Samples()
	for i := range n {
		p.Pause(ctx, time.Until(start.Add(time.Duration(i-3)*audio.Reply.Frame)))
		if err := p.frame(buzz(i*size, size)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Peer) frame(pcm []int16) error {
	packet := make([]byte, maxBinary)
	n, err := p.enc.Encode(pcm, packet)
	if err != nil {
		return err
	}
	return p.ws.WriteMessage(websocket.BinaryMessage, packet[:n])
}

// Finish lets what Sound sent play out and ends the reply.
func (p *Peer) Finish(ctx context.Context) error {
	p.Pause(ctx, 4*audio.Reply.Frame+40*time.Millisecond)
	return p.Send(`"type":"tts","state":"stop"`)
}

// Cut ends a reply that the device aborted: a silent frame and the stop.
func (p *Peer) Cut() error {
	if err := p.frame(make([]int16, audio.Reply.Samples())); err != nil {
		return err
	}
	return p.Send(`"type":"tts","state":"stop"`)
}
