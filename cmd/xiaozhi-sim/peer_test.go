package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"xiaozhi/audio"

	"github.com/gorilla/websocket"
)

// peer is the server's end of a connection, played from a script. It is for one goroutine, the one that script calls.
type peer struct {
	ws   *websocket.Conn
	enc  *audio.Encoder
	text chan string // messages of the device, in order
}

// peerSession is the session id of every peer.
const peerSession = "scripted"

// script is a handler that upgrades each request, awaits the device's hello,
// answers it and plays. The connection ends when play returns.
func script(play func(ctx context.Context, p *peer)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return // the upgrader has answered
		}
		ctx, cancel := context.WithCancel(r.Context())
		enc, err := audio.NewEncoder(audio.Reply)
		p := &peer{ws: ws, enc: enc, text: make(chan string, 256)}
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

func (p *peer) read(ctx context.Context) {
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

func (p *peer) hello(ctx context.Context) error {
	if _, err := p.await(ctx, `"type":"hello"`); err != nil {
		return err
	}
	return p.write(`{"type":"hello","transport":"websocket","session_id":"` + peerSession + `"}`)
}

// await gives the next text message of the device that holds part.
func (p *peer) await(ctx context.Context, part string) (string, error) {
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

// send writes a message of the session with these JSON members.
func (p *peer) send(members string) error {
	return p.write(`{"session_id":"` + peerSession + `",` + members + `}`)
}

func (p *peer) write(text string) error {
	return p.ws.WriteMessage(websocket.TextMessage, []byte(text))
}

// pause lets time pass.
func (p *peer) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// begin sends what a reply has before its sound, and keeps the guard after tts start.
func (p *peer) begin(ctx context.Context, heard, says string) error {
	for _, m := range []string{
		fmt.Sprintf(`"type":"stt","text":%q`, heard),
		`"type":"tts","state":"start"`,
		`"type":"llm","emotion":"happy","text":"🙂"`,
		fmt.Sprintf(`"type":"tts","state":"sentence_start","text":%q`, says),
	} {
		if err := p.send(m); err != nil {
			return err
		}
	}
	p.pause(ctx, 110*time.Millisecond)
	return nil
}

// sound sends n frames of a buzz, four ahead and then one every 60 ms.
func (p *peer) sound(ctx context.Context, n int) error {
	start := time.Now()
	size := audio.Reply.Samples()
	for i := range n {
		p.pause(ctx, time.Until(start.Add(time.Duration(i-3)*audio.Reply.Frame)))
		if err := p.frame(buzz(size)); err != nil {
			return err
		}
	}
	return nil
}

func (p *peer) frame(pcm []int16) error {
	packet := make([]byte, audio.MaxPacket)
	n, err := p.enc.Encode(pcm, packet)
	if err != nil {
		return err
	}
	return p.ws.WriteMessage(websocket.BinaryMessage, packet[:n])
}

// finish lets what sound sent play out and ends the reply.
func (p *peer) finish(ctx context.Context) error {
	p.pause(ctx, 4*audio.Reply.Frame+40*time.Millisecond)
	return p.send(`"type":"tts","state":"stop"`)
}

// cut ends a reply that the device aborted: a silent frame and the stop.
func (p *peer) cut() error {
	if err := p.frame(make([]int16, audio.Reply.Samples())); err != nil {
		return err
	}
	return p.send(`"type":"tts","state":"stop"`)
}

// buzz is a 125 Hz sound, at the rate of a reply.
func buzz(n int) []int16 {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = int16((i%192 - 96) * 60)
	}
	return pcm
}
