package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/sse"
)

// longest is the text that OpenAI takes in one request, and those after its fashion, in characters.
const longest = 4096

// The speeds that they take.
const slowest, fastest = 0.25, 4

// speaker makes the requests of a voice by POST audio/speech.
type speaker struct {
	at      generation.Endpoint
	section service.Section
	speech  Speech
	model   string
	format  string
	rate    int
}

// voice makes the voice of a section.
func (v Vendor) voice(s Speech, section service.Section) (providers.TTS, error) {
	base, at, err := generation.FromSection(section, service.TTS, section.Address(v.Regions, v.Address), s.Speaks[0])
	if err != nil {
		return nil, err
	}
	x := &speaker{
		at: at, section: section, speech: s, model: base.Model,
		format: cmp.Or(section.Format, s.formats()[0]), rate: cmp.Or(section.Rate, s.Rate),
	}
	if !slices.Contains(s.formats(), x.format) {
		return nil, fmt.Errorf("%s: format: %q is none of %s", section.Name, x.format, strings.Join(s.formats(), ", "))
	}
	section.Client = at.Client
	if s.Events {
		client := *at.Client
		client.Transport = soundOfEvents{inner: cmp.Or[http.RoundTripper](client.Transport, http.DefaultTransport), rate: x.rate}
		section.Client = &client
	}
	return httpvoice.New(httpvoice.Options{
		Section: section, Request: x.request, Ping: x.ping, Judge: judge, Format: x.format, Rate: x.rate,
		Text: sound.Longest{Most: cmp.Or(s.Longest, longest)},
	})
}

// header returns the header that proves who asks.
func (x *speaker) header() http.Header {
	h := http.Header{}
	if x.section.Key != "" {
		h.Set("Authorization", "Bearer "+x.section.Key.Reveal())
	}
	return h
}

// ping asks for the head of the list of models, which costs nothing.
func (x *speaker) ping(ctx context.Context) (*http.Request, error) {
	r, err := httpvoice.Head(ctx, service.Join(x.at.Base, "/models"))
	if err == nil {
		r.Header = x.header()
	}
	return r, err
}

// request asks for one sentence.
func (x *speaker) request(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
	if base, _, _ := strings.Cut(req.Language, "-"); base != "" && base != "en" && strings.HasSuffix(x.model, "-english") { // Groq's would spell other letters
		return nil, fmt.Errorf("%w: %s speaks English only", providers.ErrLanguage, x.model)
	}
	voice := x.section.Voice(req, service.Fitting(x.speech.Voices, req.Language))
	if x.speech.Prefixed && !strings.Contains(voice, ":") {
		voice = x.model + ":" + voice
	}
	body := map[string]any{"model": x.model, "input": req.Text, "voice": voice, "response_format": x.format}
	if x.speech.SetsRate && (x.format == "pcm" || x.format == "wav") { // the others have rates of their own
		body["sample_rate"] = x.rate
	}
	if x.speech.Events {
		body["stream"] = true
	}
	if x.section.Speed > 0 {
		body["speed"] = min(max(x.section.Speed, slowest), fastest)
	}
	if err := generation.Merge(body, x.section.Extra); err != nil {
		return nil, err
	}
	return httpvoice.PostJSON(ctx, service.Join(x.at.Base, "/audio/speech"), x.header(), body)
}

// swell is the length of the beginning that swells, in ms.
const swell = 10

// soundOfEvents makes a plain stream of sound of one that comes in events of JSON, as
// Zhipu sends it. All other replies pass as they are.
type soundOfEvents struct {
	inner http.RoundTripper
	rate  int // Hz, where the events do not say
}

// Unwrap returns what makes the requests.
func (t soundOfEvents) Unwrap() http.RoundTripper { return t.inner }

// RoundTrip makes a request. It waits for the first event that holds sound: it tells the rate.
func (t soundOfEvents) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.inner.RoundTrip(req)
	if err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, err
	}
	body := &eventSound{events: sse.NewReader(resp.Body), body: resp.Body, rate: t.rate}
	if err := body.fill(); err != nil && !errors.Is(err, io.EOF) {
		_ = resp.Body.Close()
		return nil, err
	}
	resp.Body = body
	resp.Header = resp.Header.Clone()
	resp.Header.Set("Content-Type", "audio/pcm;rate="+strconv.Itoa(body.rate))
	return resp, nil
}

// eventSound reads the sound out of events. It is for one goroutine.
type eventSound struct {
	events *sse.Reader
	body   io.Closer
	rest   []byte
	rate   int
	ended  bool // the service said that it was all
	played int  // samples
}

// Close ends the reply.
func (s *eventSound) Close() error { return s.body.Close() }

// Read reads sound.
func (s *eventSound) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// fill waits for the next event that holds sound.
func (s *eventSound) fill() error {
	for len(s.rest) == 0 {
		if s.ended {
			return io.EOF
		}
		e, err := s.events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case string(e.Data) == sse.Done:
			s.ended = true
			continue
		}
		if err := s.take(e.Data); err != nil {
			return err
		}
	}
	return nil
}

// take reads an event.
func (s *eventSound) take(data []byte) error {
	var e struct {
		Choices []struct {
			Finish string `json:"finish_reason"`
			Delta  struct {
				Content string `json:"content"`
				Format  string `json:"return_format"`
				Rate    int    `json:"return_sample_rate"`
			} `json:"delta"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	if len(e.Choices) == 0 {
		if fault := generation.FaultOf(data); fault != nil {
			return fault.Refusal()
		}
		return nil
	}
	c := e.Choices[0]
	s.ended = c.Finish != ""
	if c.Delta.Rate >= sound.MinRate && c.Delta.Rate <= sound.MaxRate {
		s.rate = c.Delta.Rate
	}
	raw, err := binaryOf(c.Delta.Content)
	if err != nil {
		return err
	}
	s.rest = s.fade(raw)
	return nil
}

// fade lets the first samples of all sound swell: it begins with a click.
func (s *eventSound) fade(raw []byte) []byte {
	length := s.rate * swell / 1000
	for i := 0; i+1 < len(raw) && s.played < length; i += 2 {
		v := int(int16(binary.LittleEndian.Uint16(raw[i:])))
		binary.LittleEndian.PutUint16(raw[i:], uint16(int16(v*s.played/length)))
		s.played++
	}
	return raw
}

// binaryOf reads base64, or the hexadecimal digits that some versions send.
func binaryOf(content string) ([]byte, error) {
	if isHex := len(content)%2 == 0 && strings.Trim(content, "0123456789abcdef") == ""; isHex {
		return hex.DecodeString(content)
	}
	raw, err := base64.StdEncoding.AppendDecode(nil, bytes.TrimSpace([]byte(content)))
	if err != nil {
		return nil, fmt.Errorf("the sound of an event is not base64: %w", err)
	}
	return raw, nil
}
