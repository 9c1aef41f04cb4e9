// Package vosk recognises speech with a vosk-server: partial texts while the user speaks.
package vosk

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// Kind describes vosk servers.
func Kind() service.Kind {
	return service.Kind{
		Type: "vosk", Title: "vosk-server", Address: "ws://127.0.0.1:2700", Free: true, ASR: New,
	}
}

// New checks a section and makes a recogniser. It dials nothing.
func New(s service.Section) (providers.ASR, error) {
	at, err := service.Endpoint(s.Address(nil, Kind().Address), "ws", "wss", "http", "https")
	if err != nil {
		return nil, fmt.Errorf("%s: base_url: %w", s.Name, err)
	}
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	dial := func(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
		socket, err := dialer.Dial(ctx, service.Join(at, "/"), nil)
		if err != nil {
			return nil, err
		}
		var hello greeting
		hello.Config.Rate = req.Rate
		if err := socket.WriteJSON(hello); err != nil {
			socket.Close()
			return nil, err
		}
		return &session{Socket: socket}, nil
	}
	return recognition.New(recognition.Options{Account: account, Tries: s.Tries(), Dial: dial, Frame: 100 * time.Millisecond, Final: s.Timeouts.First}), nil
}

// session is one utterance.
type session struct {
	*transport.Socket
	sent     atomic.Int64 // messages of sound, each of which has exactly one answer
	over     atomic.Bool  // the end was sent
	answered int64
}

// Send hands over sound.
func (s *session) Send(pcm []int16) error {
	s.sent.Add(1)
	return s.WriteBinary(recognition.Bytes(pcm))
}

// Finish says that the sound is complete.
func (s *session) Finish() error {
	s.over.Store(true)
	return s.WriteText([]byte(farewell))
}

// Receive waits for the next answer. The one after those to all sound is the last.
func (s *session) Receive() (recognition.Result, error) {
	_, message, err := s.Read(0)
	if closed, ok := errors.AsType[*transport.Refusal](err); ok && closed.Code == transport.ClosedInOrder && s.over.Load() {
		return recognition.Result{Kind: recognition.Over}, nil // not all answer each piece of sound
	}
	if err != nil {
		return recognition.Result{}, err
	}
	words, ended, err := parse(message)
	s.answered++
	switch {
	case err != nil:
		return recognition.Result{}, err
	case ended && s.over.Load() && s.answered > s.sent.Load():
		return recognition.Result{Kind: recognition.Over, Text: words}, nil
	case ended:
		return recognition.Result{Kind: recognition.Sentence, Text: words}, nil
	}
	return recognition.Result{Kind: recognition.Partial, Text: words}, nil
}
