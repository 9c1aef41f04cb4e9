package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/speechtest"
)

// talk is one of the fixed set: what the server is set to, what the model
// answers, and what clients do.
type talk struct {
	name   string
	config string            // data/config.yaml
	files  map[string]string // more files of the server's folder
	book   map[string]answer // by a part of the user's words
	loose  bool              // its sound depends on real time: only lengths are compared
	play   func(*stage) error

	unlogged []string // how lines of the log begin that are not compared
}

// stage holds all of one talk while it is played: a server, its cloud, its clients and the tape.
type stage struct {
	ctx    context.Context //nolint:containedctx // that of one talk, for which a stage lives
	server *server
	cloud  *cloud
	tape   *tape

	mu      sync.Mutex
	actors  []*actor
	closers []func()
	flashes map[string]*devicetest.Flash // by Device-Id: a device that dials again has its token
}

// record plays a talk with a binary.
func record(ctx context.Context, binary string, t talk) (*tape, error) {
	ctx, cancel := context.WithTimeout(ctx, talkLimit)
	defer cancel()
	c, err := startCloud(t.book)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	server, err := startServer(ctx, binary, t, c.Server)
	if err != nil {
		return nil, err
	}
	s := &stage{ctx: ctx, server: server, cloud: c, tape: newTape(), flashes: map[string]*devicetest.Flash{}}
	s.tape.loose = t.loose
	if err := t.play(s); err != nil {
		s.tape.add("end", "the talk failed: "+err.Error())
	}
	s.pause(300 * time.Millisecond)
	for _, a := range s.actors {
		a.Close()
		a.mu.Lock()
		s.tape.device(a.name, a.Events(), a.frames)
		a.mu.Unlock()
	}
	for _, f := range slices.Backward(s.closers) {
		f()
	}
	s.tape.add("end", "server: "+server.end())
	for _, line := range server.entries() {
		if !slices.ContainsFunc(t.unlogged, func(begins string) bool { return strings.HasPrefix(line, begins) }) {
			s.tape.add("log", line)
		}
	}
	s.providers()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: the talk took too long\n%s", t.name, server.logged())
	}
	return s.tape, nil
}

// providers writes down what the cloud was asked.
func (s *stage) providers() {
	for _, r := range s.cloud.Requests("") {
		if r.Role == openaitest.Chat { // what is spoken is heard; recognition gets what real time makes of it
			s.tape.add("cloud chat", clock.ReplaceAllString(string(r.Body), "CLOCK"))
		}
	}
}

// actor is a device on the stage.
type actor struct {
	*devicetest.Device
	s    *stage
	name string

	mu     sync.Mutex
	frames []frame
}

// flash returns what a device keeps while it is off.
func (s *stage) flash(deviceID string) *devicetest.Flash {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flashes[deviceID] == nil {
		s.flashes[deviceID] = &devicetest.Flash{}
	}
	return s.flashes[deviceID]
}

// dial connects a device by way of OTA, and lets it listen as devices do.
func (s *stage) dial(name string, o devicetest.Options) (*actor, error) {
	o.Flash = s.flash(o.DeviceID)
	p, err := devicetest.Provision(s.ctx, s.server.base+"/xiaozhi/ota/", o)
	if err != nil {
		return nil, err
	}
	s.tape.add(name+" ota", string(p.Raw))
	o.URL, o.Token = p.URL, p.Token
	o.Limits.Tolerance = time.Second // the rules about time are for others to hold
	if o.Tools == nil && o.Things == nil {
		o.Tools = devicetest.NewBoard().Tools()[:3] // without any the server asks again after a while
	}
	protocol := max(1, o.Protocol)
	a := &actor{s: s, name: name}
	o.Sound.OnFrame = func(at time.Time, message []byte) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.frames = append(a.frames, frame{at, hash(protocol, message)})
	}
	if a.Device, err = devicetest.Dial(s.ctx, o); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.actors = append(s.actors, a)
	s.mu.Unlock()
	a.settle()
	if o.Mode == devicetest.Manual || o.OpenListen {
		return a, nil
	}
	mode := o.Mode
	if mode == "" {
		mode = devicetest.Auto
	}
	return a, a.ListenStart(mode)
}

// settle waits until the server has asked for nothing more for a while: it knows the tools then.
func (a *actor) settle() {
	for {
		n := len(a.Events())
		a.s.pause(400 * time.Millisecond)
		if len(a.Events()) == n {
			return
		}
	}
}

// typed types texts, each after the answer to the one before.
func (a *actor) typed(texts ...string) error {
	for _, text := range texts {
		if err := a.Detect(text); err != nil {
			return err
		}
		if err := a.answered(); err != nil {
			return fmt.Errorf("typed %q: %w", text, err)
		}
	}
	return nil
}

// answered waits for the next reply to be complete.
func (a *actor) answered() error {
	ctx, cancel := context.WithTimeout(a.s.ctx, 25*time.Second)
	defer cancel()
	if _, err := a.WaitReply(ctx); err != nil {
		return fmt.Errorf("wait for a reply: %w", err)
	}
	a.s.pause(150 * time.Millisecond) // what comes behind the stop
	return nil
}

// speaks says something with these words, and is silent until they are taken as
// said. Each pause is a silence in the middle of it.
func (a *actor) speaks(words string, pauses ...time.Duration) error {
	clips, err := speechtest.Mandarin()
	if err != nil {
		return err
	}
	a.s.cloud.hear(words)
	clip := clips[len(clips)-1].PCM()
	pcm := slices.Clone(clip)
	for _, p := range pauses {
		pcm = slices.Concat(pcm, make([]int16, int(p.Seconds()*speechtest.Rate)), clip)
	}
	return a.Say(a.s.ctx, slices.Concat(pcm, make([]int16, 3*speechtest.Rate/2)))
}

// spoken says texts, each after the answer to the one before.
func (a *actor) spoken(texts ...string) error {
	for _, words := range texts {
		if err := a.speaks(words); err != nil {
			return err
		}
		if err := a.answered(); err != nil {
			return fmt.Errorf("spoken %q: %w", words, err)
		}
	}
	return nil
}

// begun waits until a reply is being spoken, and a little longer.
func (a *actor) begun(and time.Duration) error {
	ctx, cancel := context.WithTimeout(a.s.ctx, 25*time.Second)
	defer cancel()
	if _, err := a.WaitText(ctx, "tts", "sentence_start"); err != nil {
		return fmt.Errorf("wait for a sentence: %w", err)
	}
	a.s.pause(and)
	return nil
}

// pause lets time pass.
func (s *stage) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
	}
}

// http makes a request and writes down the answer. Headers are "Name: value".
func (s *stage) http(method, path, body string, headers ...string) (string, error) {
	req, err := http.NewRequestWithContext(s.ctx, method, s.server.base+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	s.server.authorize(req.Header, path)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	resp.Header.Del("Date")
	var head bytes.Buffer
	if err := resp.Header.Write(&head); err != nil {
		return "", err
	}
	s.tape.add("http", fmt.Sprintf("%s %s %s: %s %s %s", method, path, body, resp.Status, strings.Join(strings.Split(strings.TrimSpace(head.String()), "\r\n"), ", "), text))
	return string(text), nil
}

// socket sends texts over a WebSocket, each after the answer to the one before,
// and writes down what comes.
func (s *stage) socket(path string, texts ...string) error {
	headers := http.Header{"Device-Id": {"24:6f:28:aa:77:01"}, "Protocol-Version": {"1"}}
	s.server.authorize(headers, path)
	ws, resp, err := websocket.DefaultDialer.DialContext(s.ctx, "ws"+strings.TrimPrefix(s.server.base, "http")+path, headers)
	if err != nil {
		status := "no answer"
		if resp != nil {
			status = resp.Status
			resp.Body.Close()
		}
		s.tape.add("socket "+path, "refused: "+status)
		return nil // a refusal is what is to be compared
	}
	resp.Body.Close()
	in := make(chan string, 256)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(in)
		for {
			kind, data, err := ws.ReadMessage()
			if err != nil {
				in <- "closed: " + err.Error()
				return
			}
			in <- fmt.Sprintf("%d %s", kind, data)
		}
	})
	defer reader.Wait()
	defer ws.Close()
	for _, text := range texts {
		s.tape.add("socket "+path, "> "+text)
		if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			s.tape.add("socket "+path, "cannot write")
			return nil // an end is what is to be compared
		}
		quiet := time.NewTimer(700 * time.Millisecond)
		for waiting := true; waiting; {
			select {
			case line, ok := <-in:
				if !ok {
					return nil
				}
				s.tape.add("socket "+path, "< "+line)
				quiet.Reset(300 * time.Millisecond)
			case <-quiet.C:
				waiting = false
			}
		}
	}
	return nil
}
