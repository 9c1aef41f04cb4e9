// Package voiceprintapi tells people apart by the voiceprint service that other servers of this kind use, over HTTP
// (voiceprint-api, with a 3D-Speaker model). It keeps the prints itself, each under an id.
package voiceprintapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"xiaozhi/audio/file"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	prefix    = "/voiceprint"
	health    = "/health"
	maxReply  = 64 << 10         // bytes
	whole     = 10 * time.Second // for a request: the service hears one sound at a time
	threshold = 0.4              // of the clients of this service; its own is 0.2
	most      = 256              // ids in one question
)

// Kind describes the service.
func Kind() service.Kind {
	return service.Kind{
		Type: "voiceprint-api", Title: "voiceprint-api", Address: "http://127.0.0.1:8005", Schemes: []string{"http", "https"},
		Env: []service.Env{{Field: service.Key, Name: "VOICEPRINT_API_KEY"}}, Free: true,
		More:       []service.Setting{{Name: "threshold", Type: service.Number}},
		Voiceprint: func(s service.Section) (providers.Voiceprint, error) { return orNil(New(s)) },
	}
}

// orNil keeps a nil pointer from becoming an interface that is not nil.
func orNil(v *Service, err error) (providers.Voiceprint, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Service is one server. It may be used by any number of goroutines at once.
type Service struct {
	account transport.Account
	section service.Section
	base    string // with the prefix
	key     providers.Secret
	client  *http.Client
}

// New checks a section and makes a client. It asks the server nothing. base_url may also be the address that other servers
// are set up with: that of the health page, with the key in it.
func New(s service.Section) (*Service, error) {
	base, key, err := address(s.Address(nil, Kind().Address))
	if err != nil {
		return nil, fmt.Errorf("%s: base_url: %w", s.Name, err)
	}
	if t := s.Number("threshold", threshold); t <= 0 || t > 1 {
		return nil, fmt.Errorf("%s: threshold %g: want more than 0, and 1 at most", s.Name, t)
	}
	client := s.Client
	if client == nil {
		if client, err = transport.NewHTTPClient(transport.HTTPOptions{Connect: s.Timeouts.Connect, Proxy: s.Proxy, Careful: s.Careful}); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	key = cmp.Or(s.Key, key)
	return &Service{
		account: transport.Account{Name: s.Name, Secrets: append(s.Secrets(), key), Careful: s.Careful}, section: s, client: client, key: key, base: base,
	}, nil
}

// address splits the address of a service from the key in it.
func address(at string) (base string, key providers.Secret, err error) {
	if base, err = service.Endpoint(at, "http", "https"); err != nil {
		return "", "", err
	}
	u, err := url.Parse(base)
	if err != nil {
		return "", "", errors.New("it is not a URL")
	}
	key = providers.Secret(u.Query().Get("key"))
	u.RawQuery, u.Fragment = "", ""
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), health)
	return service.Join(strings.TrimRight(u.String(), "/"), prefix), key, nil
}

// Name returns the provider's name.
func (v *Service) Name() string { return v.account.Name }

// Scale says what its scores mean: cosines of one model. The prints belong to the server.
func (v *Service) Scale() providers.Scale {
	return providers.Scale{Model: "voiceprint-api", Threshold: v.section.Number("threshold", threshold)}
}

// Warm opens a connection.
func (v *Service) Warm(ctx context.Context) error {
	return v.account.Warm(ctx, v.client, func(ctx context.Context) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+health+"?key="+url.QueryEscape(v.key.Reveal()), nil)
		if err != nil {
			return nil, err
		}
		v.sign(r)
		return v.client.Do(r)
	})
}

// Enrol has the server make a print and keep it under id. The same id again replaces it.
func (v *Service) Enrol(ctx context.Context, id string, pcm []int16) (providers.Print, error) {
	if err := providers.CheckVoice(pcm); err != nil {
		return providers.Print{}, v.bad("enrol", err)
	}
	var reply struct {
		Success *bool  `json:"success"`
		Message string `json:"msg"`
	}
	err := v.ask(ctx, "enrol", http.MethodPost, "/register", form{{"speaker_id", id}}, pcm, &reply, func() error {
		switch {
		case reply.Success == nil:
			return errors.New("the reply does not say whether the voice was registered")
		case !*reply.Success:
			return transport.Refused(providers.Unavailable, "", cmp.Or(reply.Message, "the voice was not registered"))
		}
		return nil
	})
	if err != nil {
		return providers.Print{}, err
	}
	return providers.Print{ID: id, Model: v.Scale().Model}, nil
}

// Identify asks the server which of the prints is most like the voice.
func (v *Service) Identify(ctx context.Context, pcm []int16, among []providers.Print) (match providers.VoiceMatch, err error) {
	if err := ctx.Err(); err != nil {
		return match, err
	}
	persons, ids := map[string]string{}, []string{}
	for _, p := range among {
		if p.Data == nil && p.Model == v.Scale().Model && len(ids) < most {
			persons[p.ID], ids = p.Person, append(ids, p.ID)
		}
	}
	if len(ids) == 0 {
		return match, nil
	}
	if err := providers.CheckVoice(pcm); err != nil {
		return match, v.bad("identify", err)
	}
	var reply struct {
		ID    *string  `json:"speaker_id"`
		Score *float64 `json:"score"`
	}
	err = v.ask(ctx, "identify", http.MethodPost, "/identify", form{{"speaker_ids", strings.Join(ids, ",")}}, pcm, &reply, func() error {
		if reply.Score == nil || math.IsNaN(*reply.Score) {
			return errors.New("the reply has no score")
		}
		if reply.ID == nil || *reply.ID == "" {
			return nil
		}
		person, known := persons[*reply.ID]
		if !known {
			return errors.New("the reply names a speaker who was not asked for")
		}
		match = providers.VoiceMatch{Person: person, Score: min(max(*reply.Score, 0), 1)}
		return nil
	})
	return match, err
}

// Delete has the server forget a print.
func (v *Service) Delete(ctx context.Context, id string) error {
	var reply struct {
		Success *bool `json:"success"`
	}
	err := v.ask(ctx, "delete", http.MethodDelete, "/"+url.PathEscape(id), nil, nil, &reply, func() error {
		if reply.Success == nil || !*reply.Success {
			return errors.New("the reply does not say that the voice was deleted")
		}
		return nil
	})
	// A path that the server does not have is told in these words; of a print that is not there it says so itself.
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && refused.Status == http.StatusNotFound && refused.Text != http.StatusText(http.StatusNotFound) {
		return nil
	}
	return err
}

func (v *Service) bad(op string, err error) error {
	return &providers.Error{Provider: v.account.Name, Op: op, Kind: providers.BadRequest, Err: err}
}

// form holds fields of a request, in order.
type form [][2]string

// encode writes fields and sound as the service wants them. A file whose name does not end so is refused.
func (f form) encode(pcm []int16) (*bytes.Buffer, string, error) {
	body := bytes.NewBuffer(make([]byte, 0, len(pcm)*2+1024))
	w := multipart.NewWriter(body)
	for _, field := range f {
		if err := w.WriteField(field[0], field[1]); err != nil {
			return nil, "", fmt.Errorf("write form: %w", err)
		}
	}
	part, err := w.CreateFormFile("file", "voice.wav")
	if err == nil {
		err = errors.Join(file.WriteWAV(part, pcm, providers.VoiceRate), w.Close())
	}
	if err != nil {
		return nil, "", fmt.Errorf("write form: %w", err)
	}
	return body, w.FormDataContentType(), nil
}

// sign says who asks.
func (v *Service) sign(r *http.Request) {
	if v.key != "" {
		r.Header.Set("Authorization", "Bearer "+v.key.Reveal())
	}
	for name, value := range v.section.Headers {
		r.Header.Set(name, value.Reveal())
	}
}

// ask makes a request, reads the reply and has it judged. A nil form sends nothing.
func (v *Service) ask(ctx context.Context, op, method, path string, f form, pcm []int16, reply any, judge func() error) error {
	reqCtx, cancel := context.WithTimeoutCause(ctx, cmp.Or(v.section.Timeouts.First, whole), transport.ErrStalled)
	defer cancel()
	_, err := transport.Again(reqCtx, v.section.Tries(), func() (struct{}, error) {
		if err := v.once(reqCtx, method, path, f, pcm, reply); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, judge()
	})
	if err != nil {
		return v.account.Wrap(ctx, reqCtx, op, err)
	}
	return nil
}

func (v *Service) once(ctx context.Context, method, path string, f form, pcm []int16, reply any) error {
	var body io.Reader
	kind := ""
	if f != nil {
		encoded, contentType, err := f.encode(pcm)
		if err != nil {
			return err
		}
		body, kind = encoded, contentType
	}
	r, err := http.NewRequestWithContext(ctx, method, v.base+path, body)
	if err != nil {
		return err
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	v.sign(r)
	resp, err := v.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return transport.ReadRefusal(resp)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return err
	}
	if len(answer) > maxReply {
		return errors.New("the reply is longer than any")
	}
	return transport.Decode(answer, reply)
}
