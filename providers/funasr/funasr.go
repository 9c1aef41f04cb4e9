// Package funasr recognises speech with a FunASR runtime server: the streaming one in C++
// (2pass), the one for whole utterances, and those in Python, old and new. Which one it is
// shows in how it answers; only when it must be known does a client of this package look.
package funasr

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	frame = 60 * time.Millisecond  // of sound in a message: the Python server counts messages
	grace = 150 * time.Millisecond // in which an answer comes that follows what may have been the last one
	still = time.Second            // after which an old Python server that says nothing has heard nothing
	final = 5 * time.Second        // from the end of the sound to the last answer
)

// Kind describes the servers.
func Kind() service.Kind {
	return service.Kind{
		Type: "funasr", Title: "FunASR runtime", Address: "wss://127.0.0.1:10095", Free: true,
		More: []service.Setting{
			{Name: "mode", Values: []string{"2pass", "online", "offline"}},
			{Name: "insecure", Type: service.Flag}, // its image comes with a certificate that nobody vouches for
			{Name: "hotwords", Type: service.Text},
		},
		ASR: New,
	}
}

// server speaks to one FunASR runtime.
type server struct {
	dialer   *transport.Dialer
	at       string
	key      providers.Secret
	mode     string
	hotwords string
	dialect  atomic.Int32 // that the server has shown last
	whole    atomic.Bool  // it takes whole utterances only
	still    time.Duration
}

// New checks a section and makes a recogniser. It dials nothing.
func New(s service.Section) (providers.ASR, error) {
	at, err := service.Endpoint(s.Address(nil, Kind().Address), "wss", "ws", "https", "http")
	if err != nil {
		return nil, fmt.Errorf("%s: base_url: %w", s.Name, err)
	}
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	v := &server{at: service.Join(at, "/"), key: s.Key, mode: s.Text("mode", "2pass"), hotwords: s.Text("hotwords", ""), still: min(still, cmp.Or(s.Timeouts.First, final)/2)}
	if v.dialer, err = transport.NewDialer(transport.DialerOptions{
		Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers, Insecure: s.Flag("insecure", false),
	}); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return recognition.New(recognition.Options{Account: account, Tries: s.Tries(), Dial: v.dial, Frame: frame, Final: cmp.Or(s.Timeouts.First, final), Streams: func() bool { return !v.whole.Load() }}), nil
}

// dial begins an utterance. Each has a connection of its own: one that was idle for long
// hears nothing any more.
func (v *server) dial(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
	header := map[string][]string{}
	if v.key != "" { // of a proxy in front
		header["Authorization"] = []string{"Bearer " + v.key.Reveal()}
	}
	socket, err := v.dialer.Dial(ctx, v.at, header, "binary")
	if err != nil {
		return nil, explain(err)
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // it never fails
	language, _, _ := strings.Cut(req.Language, "-")
	s := &session{Socket: socket, server: v, name: hex.EncodeToString(id[:])}
	s.words.dialect, s.words.online = dialect(v.dialect.Load()), v.mode == "online"
	s.quiet = time.AfterFunc(time.Hour, s.giveUp)
	s.quiet.Stop()
	if err := socket.WriteJSON(opening{
		Mode: v.mode, ChunkSize: [3]int{5, 10, 5}, Interval: 10, Name: s.name, Format: "pcm", Rate: req.Rate,
		Speaking: true, Hotwords: v.hotwords, ITN: true, Lang: language, LangITN: true,
	}); err != nil {
		socket.Close()
		return nil, err
	}
	return s, nil
}

// explain says what helps against a certificate that nobody vouches for.
func explain(err error) error {
	if strings.Contains(err.Error(), "certificate") {
		return transport.Refused(providers.BadRequest, "", "the certificate is not one that this machine trusts; the servers come with one of their own, which the setting insecure lets pass: "+err.Error())
	}
	return err
}

// session is one utterance.
type session struct {
	*transport.Socket
	server *server
	name   string
	over   atomic.Bool // the end was sent
	words  dialogue
	likely outcome // whether all is told
	quiet  *time.Timer
	silent atomic.Bool // the server was given up, for it has heard nothing
}

// Send hands over sound.
func (s *session) Send(pcm []int16) error { return s.WriteBinary(recognition.Bytes(pcm)) }

// Finish says that the sound is complete.
func (s *session) Finish() error {
	s.over.Store(true)
	if dialect(s.server.dialect.Load()) == older {
		s.quiet.Reset(s.server.still)
	}
	return s.WriteJSON(closing{End: true})
}

// giveUp ends the wait for an answer that an old server does not give.
func (s *session) giveUp() {
	s.silent.Store(true)
	s.Socket.Close()
}

// Close ends the session.
func (s *session) Close() {
	s.quiet.Stop()
	s.Socket.Close()
}

// Receive waits for the next answer.
func (s *session) Receive() (recognition.Result, error) {
	wait := map[outcome]time.Duration{maybe: grace, hardly: s.server.still}[s.likely]
	_, b, err := s.Read(wait)
	if wait > 0 && errors.Is(err, transport.ErrStalled) || err != nil && s.silent.Load() {
		return recognition.Result{Kind: recognition.Over}, nil
	}
	if err != nil {
		return recognition.Result{}, err
	}
	over := s.over.Load()
	m, language, err := parse(b)
	if err != nil {
		return recognition.Result{}, err
	}
	if m.Name != "" && m.Name != s.name {
		return recognition.Result{}, nil // of another utterance
	}
	words, outcome := s.words.add(m, over)
	s.likely = outcome
	s.server.dialect.Store(int32(s.words.dialect))
	s.server.whole.Store(m.Mode == "offline")
	r := recognition.Result{Kind: recognition.Partial, Text: words, Language: language}
	if outcome == last {
		r.Kind = recognition.Over
	}
	return r, nil
}
