// Package sherpaserver recognises speech with the network servers of sherpa-onnx: the
// streaming one, which gives partial texts, and the offline one for whole utterances.
package sherpaserver

import (
	"bytes"
	"cmp"
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

const (
	shortest = 100 * time.Millisecond // below it there is no word
	whole    = 20 * time.Second       // for an utterance of the offline server, the wait for others included
	normal   = "close 1000"           // of a socket
	piece    = 64 << 10               // bytes of an utterance that are sent in one message
)

// Kind describes the servers.
func Kind() service.Kind {
	return service.Kind{
		Type: "sherpa-server", Title: "sherpa-onnx WebSocket servers", Address: "ws://127.0.0.1:6006", Free: true,
		More: []service.Setting{{Name: "mode", Values: []string{"streaming", "offline"}}, insecure()}, ASR: New,
	}
}

// insecure lets a certificate pass that nobody vouches for.
func insecure() service.Setting { return service.Setting{Name: "insecure", Type: service.Flag} }

// server holds the address and the variant to which utterances go.
type server struct {
	account transport.Account
	dialer  *transport.Dialer
	at      string
	limit   time.Duration // for a whole utterance
	tries   int           // of a whole utterance; 0: one
}

// New checks a section and makes a recogniser. It dials nothing.
func New(s service.Section) (providers.ASR, error) {
	at, err := service.Endpoint(s.Address(nil, Kind().Address), "ws", "wss", "http", "https")
	if err != nil {
		return nil, fmt.Errorf("%s: base_url: %w", s.Name, err)
	}
	v := server{account: transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}, at: service.Join(at, "/"), limit: cmp.Or(s.Timeouts.First, whole), tries: s.Tries()}
	if v.dialer, err = transport.NewDialer(transport.DialerOptions{
		Account: v.account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers, Insecure: s.Flag("insecure", false),
	}); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	switch mode := s.Text("mode", "streaming"); mode {
	case "streaming":
		return recognition.New(recognition.Options{Account: v.account, Tries: s.Tries(), Dial: v.dial, Final: s.Timeouts.First}), nil
	case "offline":
		return &Offline{v}, nil
	default:
		return nil, fmt.Errorf("%s: mode: %q is none of streaming, offline", s.Name, mode)
	}
}

// dial begins an utterance of the streaming server.
func (v server) dial(ctx context.Context, _ providers.ASRRequest) (recognition.Session, error) {
	socket, err := v.dialer.Dial(ctx, v.at, nil)
	if err != nil {
		return nil, err
	}
	return &session{Socket: socket}, nil
}

// session is one utterance of the streaming server.
type session struct {
	*transport.Socket
	words segments
	over  atomic.Bool // the end was sent
}

// Send hands over sound.
func (s *session) Send(pcm []int16) error {
	return s.WriteBinary(floats(make([]byte, 0, 4*len(pcm)), pcm))
}

// Finish says that the sound is complete.
func (s *session) Finish() error {
	s.over.Store(true)
	return s.WriteText([]byte(done))
}

// Receive waits for the next answer. The servers in Python say nothing after the last one:
// they close.
func (s *session) Receive() (recognition.Result, error) {
	_, message, err := s.Read(0)
	closed, ok := errors.AsType[*transport.Refusal](err)
	if bytes.Equal(message, []byte(bye)) || ok && closed.Code == normal && s.over.Load() {
		return recognition.Result{Kind: recognition.Over}, nil
	}
	if err != nil {
		return recognition.Result{}, err
	}
	r, err := parse(message)
	if err != nil {
		return recognition.Result{}, err
	}
	kind := recognition.Partial
	if r.EOF {
		kind = recognition.Over
	}
	return recognition.Result{Kind: kind, Text: s.words.add(r), Language: r.Lang}, nil
}

// Offline is the server for whole utterances. It may be used by any number of goroutines
// at once.
type Offline struct{ server }

// Name returns the provider's name.
func (o *Offline) Name() string { return o.account.Name }

// Open begins an utterance. It is sent when it is complete.
func (o *Offline) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return providers.OpenUtterance(ctx, req, o.recognize), nil
}

// recognize sends the utterance and reads the answer.
func (o *Offline) recognize(ctx context.Context, pcm []int16, req providers.ASRRequest) (providers.Transcript, error) {
	final := providers.Transcript{Final: true, Provider: o.account.Name}
	if time.Duration(len(pcm))*time.Second/time.Duration(req.Rate) < shortest {
		return final, nil
	}
	r, err := transport.Again(ctx, o.tries, func() (result, error) { return o.ask(ctx, pcm, req.Rate) })
	if err != nil {
		return providers.Transcript{}, o.account.Wrap(ctx, ctx, "transcribe", err)
	}
	final.Text, final.Language = r.Text, r.Lang
	return final, nil
}

// ask makes the request. Its errors are not yet wrapped.
func (o *Offline) ask(ctx context.Context, pcm []int16, rate int) (result, error) {
	socket, err := o.dialer.Dial(ctx, o.at, nil)
	if err != nil {
		return result{}, err
	}
	defer socket.Close()
	for all := utterance(pcm, rate); len(all) > 0; {
		n := min(piece, len(all))
		if err := socket.WriteBinary(all[:n]); err != nil {
			return result{}, err
		}
		all = all[n:]
	}
	_, message, err := socket.Read(o.limit)
	if err != nil {
		return result{}, err
	}
	_ = socket.WriteText([]byte(done)) // out of politeness
	return parse(message)
}
