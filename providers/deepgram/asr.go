package deepgram

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"xiaozhi/internal/lru"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	hearingModel = "nova-3"
	mostTags     = 64      // of devices whose language at the service is remembered
	mostPhrases  = 50      // of those that are likely to be said: they make the address long
	fluxModels   = "flux"  // what the names of the models of /v2/listen begin with
	anyLanguage  = "multi" // several languages in one utterance, which Chinese is not among
	eotThreshold = 0.9     // how sure flux must be that a turn is over; ours is the decision
	maxAnswer    = 1 << 20 // bytes of a message: words, and when each was spoken
	eotTimeout   = 10000   // ms of silence after which it is over in any case
)

// NewASR makes a recogniser: of turns if its model is a flux, else of what is said.
func NewASR(s service.Section) (providers.ASR, error) {
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, err
	}
	c := &listener{s: s, dialer: dialer, model: modelOf(s), known: lru.New[string, string](mostTags, 0)}
	return recognition.New(recognition.Options{Account: account, Tries: s.Tries(), Dial: c.dial, Final: s.Timeouts.First}), nil
}

// modelOf returns the model that hears: one that is a voice is of the other role.
func modelOf(s service.Section) string {
	if model := s.Model(service.ASR, ""); model != "" && !strings.HasPrefix(model, voiceModels) {
		return model
	}
	return hearingModel
}

// listener opens the sessions of one section.
type listener struct {
	s      service.Section
	dialer *transport.Dialer
	model  string
	known  *lru.Cache[string, string] // tags of devices to the languages that the service takes for them
}

// languages lists those that a session may be asked for, the best first: one that the
// service does not know is no reason not to listen.
func (c *listener) languages(tag string) []string {
	if own := c.s.Text("language", ""); own != "" || strings.HasPrefix(c.model, fluxModels) {
		return []string{cmp.Or(own, tag)}
	}
	if good, ok := c.known.Get(tag); ok {
		return []string{good}
	}
	all := []string{anyLanguage}
	if lang := text.TagOf(tag); lang != "" {
		all = []string{tag, string(lang.Base()), anyLanguage}
	}
	return slices.Compact(all)
}

// address returns that of a session, with all that it is told beforehand.
func (c *listener) address(req providers.ASRRequest, language string) string {
	path, query := "/v1/listen", url.Values{"model": {c.model}, "encoding": {"linear16"}, "sample_rate": {strconv.Itoa(req.Rate)}}
	if strings.HasPrefix(c.model, fluxModels) {
		path = "/v2/listen"
		query.Set("eot_threshold", fmt.Sprint(c.s.Number("eot_threshold", eotThreshold)))
		query.Set("eot_timeout_ms", fmt.Sprint(c.s.Number("eot_timeout_ms", eotTimeout)))
		if language != "" && strings.HasSuffix(c.model, anyLanguage) {
			query.Set("language_hint", language)
		}
	} else {
		query.Set("language", language)
		for name, value := range map[string]string{"channels": "1", "interim_results": "true", "endpointing": "false", "punctuate": "true"} {
			query.Set(name, value)
		}
		if c.s.Flag("smart_format", false) {
			query.Set("smart_format", "true")
		}
	}
	if c.s.Flag("phrases", false) {
		for _, phrase := range req.Phrases[:min(len(req.Phrases), mostPhrases)] {
			query.Add("keyterm", phrase)
		}
	}
	for name, value := range c.s.Extra {
		query.Set(name, fmt.Sprint(value))
	}
	return service.Join(c.s.Address(nil, cloud), path+"?"+query.Encode())
}

// open opens a socket for the first language that the service takes.
func (c *listener) open(ctx context.Context, req providers.ASRRequest) (*transport.Socket, error) {
	all := c.languages(req.Language)
	for i, language := range all {
		socket, err := c.dialer.Dial(ctx, c.address(req, language), auth(c.s))
		if err = judged(err); err == nil {
			if len(all) > 1 {
				c.known.Put(req.Language, language, 0)
			}
			return socket, nil
		}
		r, ok := errors.AsType[*transport.Refusal](err)
		if !ok || r.Kind != providers.BadRequest || !strings.Contains(strings.ToLower(r.Text), "language") || i == len(all)-1 {
			return nil, err
		}
	}
	return nil, errors.New("there is no language to ask for")
}

func (c *listener) dial(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
	socket, err := c.open(ctx, req)
	if err != nil {
		return nil, err
	}
	socket.Limit(maxAnswer)
	parse := parseNova
	if strings.HasPrefix(c.model, fluxModels) {
		parse = parseFlux
	}
	return &session{Socket: socket, parse: parse}, nil
}

// session is a socket for one utterance. It is not kept for the next one: it would have
// to be kept alive, and the next utterance has time to connect while it is spoken.
type session struct {
	*transport.Socket
	parse   func([]byte) (result, bool, error)
	over    atomic.Bool          // the end was sent
	heard   bool                 // there were results
	waiting []recognition.Result // understood, and not handed out yet
	last    result               // of flux: the turn so far
}

// Send hands over sound. An empty message would end the stream.
func (s *session) Send(pcm []int16) error {
	if len(pcm) == 0 {
		return nil
	}
	b := make([]byte, 0, 2*len(pcm))
	for _, v := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return s.WriteBinary(b)
}

// Finish asks for the last words and the end. Finalize alone need not be answered.
func (s *session) Finish() error {
	s.over.Store(true)
	return s.WriteText([]byte(`{"type":"CloseStream"}`))
}

// Receive waits for the next words.
func (s *session) Receive() (recognition.Result, error) {
	if len(s.waiting) == 0 {
		if err := s.read(); err != nil {
			if closed, ok := errors.AsType[*transport.Refusal](err); ok && closed.Code == "close 1000" {
				return recognition.Result{Kind: recognition.Over}, nil
			}
			return recognition.Result{}, judged(err)
		}
	}
	if len(s.waiting) == 0 {
		return recognition.Result{}, nil
	}
	r := s.waiting[0]
	s.waiting = s.waiting[1:]
	return r, nil
}

// read waits for a message.
func (s *session) read() error {
	isText, message, err := s.Read(0)
	if err != nil || !isText {
		return err
	}
	r, ok, err := s.parse(message)
	if early := r.end && (!s.over.Load() || !s.heard); ok && !early { // what it tells of the session may come at any time; at the end it closes
		s.heard = true
		s.waiting = append(s.waiting, s.results(r)...)
	}
	return err
}

// results says what a message means. A turn that was followed by another one without its
// end is finished.
func (s *session) results(r result) (out []recognition.Result) {
	if r.turn != s.last.turn && s.last.text != "" && !s.last.done {
		out = append(out, recognition.Result{Kind: recognition.Sentence, Text: s.last.text, Language: s.last.lang})
	}
	s.last = r
	switch {
	case r.end:
		return append(out, recognition.Result{Kind: recognition.Over})
	case r.done && r.text != "":
		return append(out, recognition.Result{Kind: recognition.Sentence, Text: r.text, Language: r.lang})
	}
	return append(out, recognition.Result{Kind: recognition.Partial, Text: r.text, Language: r.lang})
}
