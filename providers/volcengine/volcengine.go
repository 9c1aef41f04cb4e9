// Package volcengine is the recogniser and the voices of Volcengine (Doubao): both speak
// the binary frames of [frame].
package volcengine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	address   = "wss://openspeech.bytedance.com"
	logHeader = "X-Tt-Logid"
)

// Resources of recognition: an account is given each of them by itself.
const (
	hears2 = "volc.seedasr.sauc.duration"
	hears1 = "volc.bigasr.sauc.duration"
)

// Resources of voices. A voice belongs to one of them.
const (
	speaks2 = "seed-tts-2.0"
	speaks1 = "seed-tts-1.0"
	clones2 = "seed-icl-2.0"
)

// Kind describes the service.
func Kind() service.Kind {
	return service.Kind{
		Type:  "volcengine",
		Title: "Volcengine Doubao speech",
		Env: []service.Env{
			{Field: service.Key, Name: "VOLCENGINE_API_KEY"}, {Field: service.ID, Name: "VOLCENGINE_APP_ID"},
		},
		Needs:   []service.Field{service.Key},
		Address: address,
		Models: map[service.Role][]string{
			service.ASR: {hears2, hears1, "volc.seedasr.sauc.concurrent", "volc.bigasr.sauc.concurrent"},
			service.TTS: {speaks2, speaks1, "seed-tts-1.0-concurr", "seed-icl-1.0", "seed-icl-1.0-concurr", clones2},
		},
		Voices: []service.Voice{
			{Name: "zh_female_vv_uranus_bigtts", Title: "Vivi 2.0", Language: []string{"zh", "en"}},
			{Name: "zh_female_wanwanxiaohe_moon_bigtts", Title: "Wanwan Xiaohe", Language: []string{"zh"}},
			{Name: "zh_female_shuangkuaisisi_moon_bigtts", Title: "Shuangkuai Sisi", Language: []string{"zh", "en"}},
		},
		Formats: []string{"pcm", "ogg_opus", "mp3"},
		Extra:   true,
		More: []service.Setting{
			{Name: "mode", Values: []string{hearMode, "bigmodel", wholeMode, oldMode}},
			{Name: "tts_mode", Values: []string{bidirection, unidirectional, lines, old}},
			{Name: "cluster"},
			{Name: "end_window_size", Type: service.Number},
			{Name: "loudness", Type: service.Number},
			{Name: "keep", Type: service.Number}, // seconds
			{Name: "most_connections", Type: service.Number},
		},
		ASR: newASR,
		TTS: newTTS,
	}
}

// client opens the sockets of a section, for recognition and for voices.
type client struct {
	dialer *transport.Dialer
	base   string
	header http.Header
	tries  []string // resources that may be the account's, in order
	which  atomic.Int32
}

// newClient makes one. An app id says that the keys are of the old console.
func newClient(s service.Section, resources ...string) (*client, error) {
	dialer, err := transport.NewDialer(transport.DialerOptions{
		Account: transport.Account{Name: s.Name, Secrets: []providers.Secret{s.Key}},
		Proxy:   s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers, Most: int(s.Number("most_connections", 0)),
	})
	if err != nil {
		return nil, err
	}
	c := &client{dialer: dialer, base: strings.TrimRight(s.Address(nil, address), "/"), tries: resources, header: http.Header{}}
	if s.ID == "" {
		c.header.Set("X-Api-Key", s.Key.Reveal())
	} else {
		c.header.Set("X-Api-App-Key", s.ID)
		c.header.Set("X-Api-App-Id", s.ID)
		c.header.Set("X-Api-Access-Key", s.Key.Reveal())
	}
	return c, nil
}

// dial opens a socket. Of several resources it remembers the one that the account has.
func (c *client) dial(ctx context.Context, path string) (*transport.Socket, error) {
	var err error
	for range c.tries {
		which := c.which.Load()
		header := c.header.Clone()
		header.Set("X-Api-Resource-Id", c.tries[which])
		header.Set("X-Api-Connect-Id", newID())
		header.Set("X-Api-Request-Id", newID())
		var socket *transport.Socket
		if socket, err = c.dialer.Dial(ctx, c.base+path, header); err == nil {
			return socket, nil
		}
		refused, ok := errors.AsType[*transport.Refusal](err)
		if !ok {
			return nil, err
		}
		c.learn(refused)
		if !notGranted(refused.Text) {
			return nil, refused
		}
		c.which.CompareAndSwap(which, (which+1)%int32(len(c.tries)))
	}
	return nil, err
}

// resource returns the one that the settings name for a role: a model that is set for the
// whole section is of one role only.
func resource(s service.Section, r service.Role) string {
	m := s.Model(r, "")
	if hears := strings.Contains(m, ".sauc."); hears && r == service.TTS {
		return ""
	}
	for _, part := range []string{"tts", "icl", "service_type"} {
		if strings.Contains(m, part) && r == service.ASR {
			return ""
		}
	}
	return m
}

// notGranted says whether the words mean that the account has not bought a resource.
func notGranted(words string) bool { return strings.Contains(words, "resource not granted") }

// learn gives a refused upgrade the kind that its words mean: the status is 400 for many things.
func (c *client) learn(r *transport.Refusal) {
	var body struct {
		Code    json.Number `json:"code"`
		Message string      `json:"message"`
		Header  struct {
			Code    json.Number `json:"code"`
			Message string      `json:"message"`
		} `json:"header"`
	}
	if json.Unmarshal([]byte(r.Text), &body) == nil {
		r.Code = cmp.Or(string(body.Code), string(body.Header.Code), r.Code)
		r.Text = cmp.Or(body.Message, body.Header.Message, r.Text)
	}
	code, _ := strconv.ParseUint(r.Code, 10, 32)
	r.Kind = kindOf(uint32(code), r.Text, r.Kind)
}

// kindOf maps a code and its words to the kind of failure.
func kindOf(code uint32, words string, otherwise providers.Kind) providers.Kind {
	words = strings.ToLower(words)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(words, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("types: concurrency", "too many requests", "rate limit"):
		return providers.RateLimited
	case has("arrear", "balance", "quota exceeded", "overdue"):
		return providers.NoCredit
	case code == 45000292:
		return providers.RateLimited
	case has("not granted", "permission denied", "invalid x-api-key", "unauthorized", "authenticate", "access denied"):
		return providers.Unauthorized
	case has("mismatched with speaker", "speaker not found", "invalid speaker"):
		return providers.BadRequest
	case code == 3003:
		return providers.RateLimited
	case code == 3001 || code == 3006 || code == 3010 || code == 3011 || code == 3050: // of the old service
		return providers.BadRequest
	case code == 45000001 || code == 45000151 || code == 40402003:
		return providers.BadRequest
	case code/1000000 == 45 && code != 45000081:
		return providers.BadRequest
	case code/1000000 == 55:
		return providers.Unavailable
	}
	return otherwise
}

// refusal makes the error of an error's frame or of a failed event.
func refusal(code uint32, payload []byte, logID string) *transport.Refusal {
	var body struct {
		Error      string      `json:"error"`
		Message    string      `json:"message"`
		StatusCode json.Number `json:"status_code"`
		Code       json.Number `json:"code"`
	}
	words := string(payload)
	if json.Unmarshal(payload, &body) == nil {
		words = cmp.Or(body.Error, body.Message, words)
		if n, err := strconv.ParseUint(cmp.Or(string(body.StatusCode), string(body.Code)), 10, 32); code == 0 && err == nil {
			code = uint32(n)
		}
	}
	r := transport.Refused(kindOf(code, words, providers.Unavailable), "", words)
	if code != 0 {
		r.Code = strconv.FormatUint(uint64(code), 10)
	}
	r.LogID = logID
	return r
}

// read returns the next frame. An error's frame, and a text, which is one too, are a [*transport.Refusal].
func read(s *transport.Socket, within time.Duration) (frame, error) {
	text, message, err := s.Read(within)
	if err != nil {
		return frame{}, err
	}
	logID := s.Header().Get(logHeader)
	if text {
		return frame{}, refusal(0, message, logID)
	}
	f, err := parseFrame(message)
	if err != nil {
		return frame{}, err
	}
	if f.kind == typeRefusal {
		return frame{}, refusal(f.code, f.payload, logID)
	}
	return f, nil
}

// newID makes a random id of version 4.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0F|0x40, b[8]&0x3F|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
