package elevenlabs

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/synthesis"
	"xiaozhi/providers/transport"
)

const (
	keepTime   = 2 * time.Minute // of a socket without a sentence
	inactivity = 180             // s after which the service closes it: the most that it takes
	mostPools  = 16              // voices with kept sockets; others open one for each sentence
	mostOpen   = 3               // contexts that are given up and not yet over; with five the service closes the socket
	longest    = 2500            // characters of a text that every model takes
)

// NewTTS makes a voice: on sockets that are kept, each sentence a context of its own, or,
// with "wire: http", by plain requests.
func NewTTS(s service.Section) (providers.TTS, error) {
	if s.Text("wire", "websocket") == "http" || strings.Contains(modelOf(s, service.TTS), "v3") { // which no socket speaks
		return newHTTP(s)
	}
	name, format, rate, err := output(s)
	if err != nil {
		return nil, err
	}
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, err
	}
	return &speaker{
		s: s, dialer: dialer, output: name, model: modelOf(s, service.TTS), pools: map[pool]*synthesis.Voice{},
		o: synthesis.Options{Account: account, Tries: s.Tries(), Text: sound.Longest{Most: longest}, Format: format, Rate: rate, Keep: keepTime, First: s.Timeouts.First, Next: s.Timeouts.Next},
	}, nil
}

// pool names a set of sockets: their address holds the voice and the language.
type pool struct{ voice, language string }

// speaker keeps sockets for each voice. It may be used by any number of goroutines at once.
type speaker struct {
	s      service.Section
	dialer *transport.Dialer
	output string
	model  string
	o      synthesis.Options

	mu    sync.Mutex
	pools map[pool]*synthesis.Voice
	last  pool // that spoke last: Warm opens a socket for it
}

var (
	_ providers.TTS    = (*speaker)(nil)
	_ providers.Warmer = (*speaker)(nil)
)

// Name returns the provider's name.
func (v *speaker) Name() string { return v.s.Name }

// Synthesize streams the sound of one sentence.
func (v *speaker) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return v.pool(pool{v.s.Voice(req, defaultVoice), language(v.model, req.Language)}).Synthesize(ctx, req)
}

// Retire closes the sockets that are kept and keeps none from now on.
func (v *speaker) Retire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.o.Keep = 0
	for _, known := range v.pools {
		known.Retire()
	}
}

// Close is Retire, for the end of the program.
func (v *speaker) Close() error {
	v.Retire()
	return nil
}

// Warm opens a socket for the voice that spoke last, or that of all languages.
func (v *speaker) Warm(ctx context.Context) error {
	v.mu.Lock()
	last := v.last
	v.mu.Unlock()
	if last.voice == "" {
		return nil // which voice will speak is known with the first sentence only
	}
	return v.pool(last).Warm(ctx)
}

// pool returns the sockets of a voice.
func (v *speaker) pool(p pool) *synthesis.Voice {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = p
	if known := v.pools[p]; known != nil {
		return known
	}
	o := v.o
	o.Dial = func(ctx context.Context) (synthesis.Conn, error) { return v.dial(ctx, p) }
	if len(v.pools) >= mostPools {
		o.Keep = 0
		return synthesis.New(o)
	}
	made := synthesis.New(o)
	v.pools[p] = made
	return made
}

// dial opens a socket for a voice.
func (v *speaker) dial(ctx context.Context, p pool) (synthesis.Conn, error) {
	query := url.Values{"model_id": {v.model}, "output_format": {v.output}, "inactivity_timeout": {strconv.Itoa(inactivity)}}
	if p.language != "" {
		query.Set("language_code", p.language)
	}
	for name, value := range v.s.Extra {
		query.Set(name, fmt.Sprint(value))
	}
	at := service.Join(address(v.s), "/v1/text-to-speech/"+url.PathEscape(p.voice)+"/multi-stream-input?"+query.Encode())
	socket, err := v.dialer.Dial(ctx, at, auth(v.s))
	if err != nil {
		return nil, judged(err)
	}
	return &contexts{Socket: socket, settings: voiceSettings(v.s), open: map[string]bool{}}, nil
}

// contexts is a socket on which each sentence is a context.
type contexts struct {
	*transport.Socket
	settings map[string]any
	current  string          // the context of the newest sentence
	open     map[string]bool // contexts that are not over
}

// Say opens a context, gives it the sentence and closes it: what is in it is still spoken.
func (c *contexts) Say(req providers.TTSRequest) error {
	c.current = uuid.NewString()
	c.open[c.current] = true
	begin := map[string]any{"text": " ", "context_id": c.current}
	if c.settings != nil {
		begin["voice_settings"] = maps.Clone(c.settings)
	}
	for _, m := range []map[string]any{
		begin,
		{"text": req.Text + " ", "context_id": c.current, "flush": true},
		{"context_id": c.current, "close_context": true},
	} {
		if err := c.WriteJSON(m); err != nil {
			return err
		}
	}
	return nil
}

// Receive waits for the next sound of the sentence. That of one before is none.
func (c *contexts) Receive(within time.Duration) ([]byte, error) {
	_, b, err := c.Read(within)
	if err != nil {
		return nil, judged(err)
	}
	m, err := parseVoice(b)
	if err != nil {
		return nil, err
	}
	if m.final || m.failed != nil {
		delete(c.open, cmp.Or(m.context, c.current))
	}
	switch {
	case m.context != "" && m.context != c.current:
		return nil, nil
	case m.failed != nil:
		return nil, m.failed
	case m.final:
		return m.sound, io.EOF
	}
	return m.sound, nil
}

// spoken is a message with sound.
type spoken struct {
	context string
	sound   []byte
	final   bool  // it is the last of its context
	failed  error // the service says what went wrong
}

// parseVoice reads a message of a voice. The name of its context is written in two ways.
func parseVoice(b []byte) (spoken, error) {
	var m struct {
		Audio    *string         `json:"audio"`
		Final    json.RawMessage `json:"isFinal"`
		Context  string          `json:"contextId"`
		Context2 string          `json:"context_id"`
		Final2   json.RawMessage `json:"is_final"`
		Error    json.RawMessage `json:"error"`
		Message  string          `json:"message"`
	}
	if err := transport.Decode(b, &m); err != nil {
		return spoken{}, err
	}
	out := spoken{context: cmp.Or(m.Context, m.Context2)}
	out.final = isTrue(m.Final) || isTrue(m.Final2)
	if words := (message{Error: m.Error}).words(); words != "" {
		out.failed = failed(words, cmp.Or(m.Message, words))
	}
	if m.Audio != nil {
		var err error
		if out.sound, err = base64.StdEncoding.DecodeString(*m.Audio); err != nil {
			return spoken{}, fmt.Errorf("the sound of a message: %w", err)
		}
	}
	return out, nil
}

// isTrue reports whether a value is true; the documents make it a text, and the service a
// truth value.
func isTrue(v json.RawMessage) bool { return string(v) == "true" || string(v) == `"true"` }

// Cancel gives up the sentence, whose context is closed already: what still comes of it is
// left out. The service speaks it to its end all the same, and bounds how many it has.
func (c *contexts) Cancel() bool { return len(c.open) <= mostOpen }
