// Package volcengine is the recogniser and the voices of Volcengine (Doubao): both speak
// the binary frames of package volcframe.
package volcengine

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
	"xiaozhi/providers/volcframe"
)

const (
	address = "wss://openspeech.bytedance.com"
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
		Account: transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful},
		Proxy:   s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers, Most: int(s.Number("most_connections", 0)),
	})
	if err != nil {
		return nil, err
	}
	// An address that is copied from a page of the vendor has the path of one of its services.
	base, _, _ := strings.Cut(strings.TrimRight(s.Address(nil, address), "/"), "/api/v")
	c := &client{dialer: dialer, base: base, tries: resources, header: http.Header{}}
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
		header.Set("X-Api-Connect-Id", volcframe.NewID())
		header.Set("X-Api-Request-Id", volcframe.NewID())
		var socket *transport.Socket
		if socket, err = c.dialer.Dial(ctx, service.Join(c.base, path), header); err == nil {
			return socket, nil
		}
		refused, ok := errors.AsType[*transport.Refusal](err)
		if !ok {
			return nil, err
		}
		refused = volcframe.Judged(refused)
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
