package openai

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	liveRate  = 24000           // Hz: the only rate that the service takes
	setupTime = 5 * time.Second // for each answer before the sound
	leastLive = liveRate / 10   // samples that make an utterance: fewer are an error
)

// live is recognition over a WebSocket while the user speaks.
type live struct {
	dialer  *transport.Dialer
	section service.Section
	address string
	model   string
	setup   time.Duration
}

// newRealtime makes a recogniser. It dials nothing. streams says whether the model gives text
// while the user speaks.
func newRealtime(at generation.Endpoint, account transport.Account, s service.Section, model string, streams bool) (providers.ASR, error) {
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	l := &live{
		dialer: dialer, section: s, model: model, setup: cmp.Or(s.Timeouts.First, setupTime),
		address: service.Join(at.Base, "/realtime?intent=transcription"), // a model here would make it a conversation
	}
	return recognition.New(recognition.Options{Account: account, Tries: s.Tries(), Dial: l.dial, Final: s.Timeouts.First, Streams: func() bool { return streams }}), nil
}

// liveSettings are the settings of a session.
type liveSettings struct {
	Type    string `json:"type"`
	Session struct {
		Type  string `json:"type"`
		Audio struct {
			Input liveInput `json:"input"`
		} `json:"audio"`
	} `json:"session"`
}

// liveInput says what comes, and what is to become of it.
type liveInput struct {
	Format struct {
		Type string `json:"type"`
		Rate int    `json:"rate"`
	} `json:"format"`
	Transcription struct {
		Model    string `json:"model"`
		Language string `json:"language,omitempty"`
		Prompt   string `json:"prompt,omitempty"`
	} `json:"transcription"`
	Turns *struct{} `json:"turn_detection"` // null: we say where an utterance ends
	Noise struct {
		Type string `json:"type"`
	} `json:"noise_reduction"`
}

// settings returns the settings for an utterance.
func (l *live) settings(req providers.ASRRequest) liveSettings {
	var s liveSettings
	s.Type, s.Session.Type = "session.update", "transcription"
	in := &s.Session.Audio.Input
	in.Format.Type, in.Format.Rate, in.Noise.Type = "audio/pcm", liveRate, "far_field"
	in.Transcription.Model, in.Transcription.Language = l.model, languageCode(req.Language)
	if l.model != "gpt-realtime-whisper" { // it takes none
		in.Transcription.Prompt = l.section.Text("prompt", "")
	}
	return s
}

// dial opens a session and waits until its settings are taken.
func (l *live) dial(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
	header := http.Header{}
	if l.section.Key != "" {
		header.Set("Authorization", "Bearer "+l.section.Key.Reveal())
	}
	socket, err := l.dialer.Dial(ctx, l.address, header)
	if err != nil {
		return nil, judged(err)
	}
	s := &liveSession{Socket: socket}
	if s.up, err = audio.NewResampler(req.Rate, liveRate); err == nil {
		err = s.begin(l.settings(req), l.setup)
	}
	if err != nil {
		socket.Close()
		return nil, judged(err)
	}
	return s, nil
}

// judged puts right the kind of a refusal.
func judged(err error) error {
	if refused, ok := err.(*transport.Refusal); ok { //nolint:errorlint // it comes as it is
		judge(refused)
	}
	return err
}

// liveEvent is a message of the service.
type liveEvent struct {
	Type       string          `json:"type"`
	Item       string          `json:"item_id"`
	Delta      string          `json:"delta"`
	Transcript string          `json:"transcript"`
	Error      json.RawMessage `json:"error"`
}

// item is a part of the utterance that the service has cut off by itself, or the whole.
type item struct {
	id   string
	text string
	done bool
}

// liveSession is one utterance.
type liveSession struct {
	*transport.Socket
	up      *audio.Resampler // belongs to the sender, as pcm and sent do
	pcm     []int16
	sent    int
	over    atomic.Bool // the end was sent
	short   atomic.Bool // there was too little sound to ask for
	closed  bool        // the service knows that it is the end
	items   []item
	unknown int // events of no meaning to us
}

// begin sends the settings and waits until they are taken.
func (s *liveSession) begin(settings liveSettings, within time.Duration) error {
	for sent := false; ; {
		var e liveEvent
		raw, err := s.next(within, &e)
		switch {
		case err != nil:
			return err
		case e.Type == "error":
			return liveError(raw)
		case strings.HasSuffix(e.Type, "session.created") && !sent:
			sent = true
			if err := s.WriteJSON(settings); err != nil {
				return err
			}
		case strings.HasSuffix(e.Type, "session.updated"):
			return nil
		}
	}
}

// next reads an event.
func (s *liveSession) next(within time.Duration, e *liveEvent) (raw []byte, err error) {
	if _, raw, err = s.Read(within); err != nil {
		return nil, err
	}
	return raw, transport.Decode(raw, e)
}

// liveError is the refusal in an event.
func liveError(raw []byte) error {
	fault := generation.FaultOf(raw)
	if fault == nil {
		return transport.Refused(providers.Unavailable, "", "the service has failed, and does not say why")
	}
	return judged(fault.Refusal())
}

// Send hands over sound.
func (s *liveSession) Send(pcm []int16) error {
	s.pcm = s.up.Write(s.pcm[:0], pcm)
	return s.send()
}

// send sends what was resampled.
func (s *liveSession) send() error {
	if len(s.pcm) == 0 {
		return nil
	}
	s.sent += len(s.pcm)
	return s.WriteJSON(map[string]string{
		"type": "input_audio_buffer.append", "audio": base64.StdEncoding.EncodeToString(recognition.Bytes(s.pcm)),
	})
}

// Finish says that the sound is complete.
func (s *liveSession) Finish() error {
	s.pcm = s.up.Flush(s.pcm[:0])
	if err := s.send(); err != nil {
		return err
	}
	s.short.Store(s.sent < leastLive)
	s.over.Store(true)
	return s.WriteJSON(map[string]string{"type": "input_audio_buffer.commit"})
}

// Receive waits for the next event.
func (s *liveSession) Receive() (recognition.Result, error) {
	var e liveEvent
	raw, err := s.next(0, &e)
	if err != nil {
		return recognition.Result{}, err
	}
	switch e.Type {
	case "error":
		if !s.short.Load() && !strings.Contains(string(raw), "commit_empty") {
			return recognition.Result{}, liveError(raw)
		}
		s.closed = true // there was nothing more: what was committed before may still be at work
	case "input_audio_buffer.committed":
		s.item(e.Item)
		s.closed = s.over.Load()
	case "conversation.item.input_audio_transcription.delta":
		i := s.item(e.Item)
		i.text += e.Delta
	case "conversation.item.input_audio_transcription.completed":
		i := s.item(e.Item)
		i.text, i.done = strings.TrimSpace(e.Transcript), true
	case "conversation.item.input_audio_transcription.failed":
		return recognition.Result{}, liveError(raw)
	default:
		s.unknown++
		return recognition.Result{}, nil
	}
	words, all := s.words()
	if all && s.closed {
		return recognition.Result{Kind: recognition.Over, Text: words}, nil
	}
	return recognition.Result{Kind: recognition.Partial, Text: words}, nil
}

// item returns the item with an id, in the order in which they were heard of.
func (s *liveSession) item(id string) *item {
	for i := range s.items {
		if s.items[i].id == id {
			return &s.items[i]
		}
	}
	s.items = append(s.items, item{id: id})
	return &s.items[len(s.items)-1]
}

// words joins the texts of all items, and says whether all are final.
func (s *liveSession) words() (joined string, all bool) {
	all = true
	for _, i := range s.items {
		joined = text.Join(joined, i.text)
		all = all && i.done
	}
	return joined, all
}
