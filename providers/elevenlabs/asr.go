package elevenlabs

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	helloTime = 5 * time.Second // until the session has started
	pace      = 2               // times as fast as it is spoken: the service refuses what comes too fast
	maxAnswer = 1 << 20         // bytes of a message: words, and when each was spoken
	burst     = time.Second     // of sound that came while it was being connected
)

// NewASR makes a recogniser.
func NewASR(s service.Section) (providers.ASR, error) {
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, err
	}
	l := &listener{s: s, dialer: dialer}
	return recognition.New(recognition.Options{Account: account, Tries: s.Tries(), Dial: l.dial, Pace: pace, Burst: burst, Final: s.Timeouts.First}), nil
}

// listener opens the sessions of one section.
type listener struct {
	s      service.Section
	dialer *transport.Dialer
}

// dial opens a session, and once more without the language if that is one that the service
// does not know: it finds out by itself then.
func (l *listener) dial(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
	s, err := l.begin(ctx, req)
	if r, ok := errors.AsType[*transport.Refusal](err); ok && r.Kind == providers.BadRequest && req.Language != "" && strings.Contains(strings.ToLower(r.Text), "language") {
		req.Language = ""
		s, err = l.begin(ctx, req)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// begin opens a session and waits until it has started.
func (l *listener) begin(ctx context.Context, req providers.ASRRequest) (*session, error) {
	query := url.Values{
		"model_id": {modelOf(l.s, service.ASR)}, "audio_format": {fmt.Sprintf("pcm_%d", req.Rate)}, "commit_strategy": {"manual"},
	}
	if language := text.TagOf(req.Language).Base(); language != "" {
		query.Set("language_code", string(language))
	}
	for name, value := range l.s.Extra {
		query.Set(name, fmt.Sprint(value))
	}
	socket, err := l.dialer.Dial(ctx, service.Join(address(l.s), "/v1/speech-to-text/realtime?"+query.Encode()), auth(l.s))
	if err != nil {
		return nil, judged(err)
	}
	socket.Limit(maxAnswer)
	c := &session{Socket: socket, rate: req.Rate}
	for started := false; !started; {
		m, err := c.read(cmp.Or(l.s.Timeouts.First, helloTime))
		if err != nil {
			socket.Close()
			return nil, err
		}
		started = m.Type == "session_started"
	}
	return c, nil
}

// session is a socket for one utterance.
type session struct {
	*transport.Socket
	rate     int
	sent     atomic.Int64 // samples
	finished atomic.Bool
	over     bool // the last words were received
}

// chunk is a piece of sound.
type chunk struct {
	Type   string `json:"message_type"`
	Audio  string `json:"audio_base_64"`
	Commit bool   `json:"commit"`
	Rate   int    `json:"sample_rate"`
}

// Send hands over sound.
func (s *session) Send(pcm []int16) error {
	s.sent.Add(int64(len(pcm)))
	b := make([]byte, 0, 2*len(pcm))
	for _, v := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return s.WriteJSON(chunk{Type: "input_audio_chunk", Audio: base64.StdEncoding.EncodeToString(b), Rate: s.rate})
}

// Finish asks for the words of all sound.
func (s *session) Finish() error {
	s.finished.Store(true)
	return s.WriteJSON(chunk{Type: "input_audio_chunk", Commit: true, Rate: s.rate})
}

// message is one of the service.
type message struct {
	Type     string          `json:"message_type"`
	Text     string          `json:"text"`
	Language string          `json:"language_code"`
	Error    json.RawMessage `json:"error"`
}

// words are those of an error, which is a text, or an object that holds one.
func (m message) words() string {
	var plain string
	if json.Unmarshal(m.Error, &plain) == nil {
		return plain
	}
	var nested struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(m.Error, &nested) == nil && nested.Message != "" {
		return nested.Message
	}
	return string(m.Error)
}

// The errors that end a session in order: it has lasted as long as any may, and what there is to
// commit is less than a word.
const (
	timeOver  = "session_time_limit_exceeded"
	tooLittle = "commit_throttled"
	least     = 8000 // samples that are worth committing, by far
)

// silence is the error by which the service says that nothing was said.
const silence = "insufficient_audio_activity"

// read waits for a message.
func (s *session) read(within time.Duration) (m message, err error) {
	_, b, err := s.Read(within)
	if err != nil {
		return m, judged(err)
	}
	return parse(b)
}

// parse reads a message. One that tells of an error is one, but for [silence].
func parse(b []byte) (m message, err error) {
	if err := transport.Decode(b, &m); err != nil {
		return m, err
	}
	if _, known := codes[m.Type]; known || strings.HasSuffix(m.Type, "error") || m.words() != "" && m.Type != silence {
		return m, failed(m.Type, m.words())
	}
	return m, nil
}

// Receive waits for the next words.
func (s *session) Receive() (recognition.Result, error) {
	if s.over {
		return recognition.Result{Kind: recognition.Over}, nil
	}
	m, err := s.read(0)
	if err != nil {
		if closed, ok := errors.AsType[*transport.Refusal](err); ok && closed.Code == "close 1000" || ok && (closed.Code == timeOver || closed.Code == tooLittle && s.finished.Load() && s.sent.Load() < least) {
			return recognition.Result{Kind: recognition.Over}, nil
		}
		return recognition.Result{}, err
	}
	switch m.Type {
	case "partial_transcript":
		return recognition.Result{Kind: recognition.Partial, Text: m.Text}, nil
	case "committed_transcript":
		s.over = s.finished.Load()
		if m.Text == "" {
			return recognition.Result{Kind: recognition.Partial}, nil
		}
		return recognition.Result{Kind: recognition.Sentence, Text: m.Text, Language: m.Language}, nil
	case silence:
		if s.finished.Load() {
			return recognition.Result{Kind: recognition.Over}, nil
		}
	}
	return recognition.Result{}, nil // also the same words with their times
}
