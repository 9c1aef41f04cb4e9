// Package whispercpp recognises speech with a whisper.cpp server. The server takes whole
// utterances only; one model serves one request at a time, others wait for it.
package whispercpp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"regexp"
	"strings"
	"time"

	"xiaozhi/audio/file"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	shortest = 100 * time.Millisecond // below it there is no word
	maxReply = 4 << 20                // bytes
	whole    = 20 * time.Second       // for a transcription, the wait for others included
	noSpeech = 0.6                    // probability from which a piece is taken for silence
)

// Kind describes whisper.cpp servers.
func Kind() service.Kind {
	return service.Kind{
		Type: "whisper-cpp", Title: "whisper.cpp server", Address: "http://127.0.0.1:8080", Free: true, Schemes: []string{"http", "https"},
		More: []service.Setting{{Name: "path", Type: service.Text}, {Name: "prompt", Type: service.Text}, {Name: "no_speech", Type: service.Number}},
		ASR:  func(s service.Section) (providers.ASR, error) { return New(s) },
	}
}

// ASR is one server. It may be used by any number of goroutines at once.
type ASR struct {
	account transport.Account
	section service.Section
	url     string
	client  *http.Client
}

// New checks a section and makes a recogniser. It asks the server nothing.
func New(s service.Section) (*ASR, error) {
	base, err := service.Endpoint(s.Address(nil, Kind().Address), "http", "https")
	if err != nil {
		return nil, fmt.Errorf("%s: base_url: %w", s.Name, err)
	}
	client := s.Client
	if client == nil {
		if client, err = transport.NewHTTPClient(transport.HTTPOptions{Connect: s.Timeouts.Connect, Proxy: s.Proxy, Careful: s.Careful}); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return &ASR{
		account: transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}, section: s, client: client,
		url: service.Join(base, "/"+strings.TrimLeft(s.Text("path", "inference"), "/")),
	}, nil
}

// Name returns the provider's name.
func (a *ASR) Name() string { return a.account.Name }

// Open begins an utterance. The request is made when it is complete.
func (a *ASR) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return providers.OpenUtterance(ctx, req, a.recognize), nil
}

// recognize uploads the utterance and reads the reply.
func (a *ASR) recognize(ctx context.Context, pcm []int16, req providers.ASRRequest) (providers.Transcript, error) {
	final := providers.Transcript{Final: true, Provider: a.account.Name}
	if time.Duration(len(pcm))*time.Second/time.Duration(req.Rate) < shortest {
		return final, nil
	}
	limit := cmp.Or(a.section.Timeouts.First, whole)
	reqCtx, cancel := context.WithTimeoutCause(ctx, limit, transport.ErrStalled)
	defer cancel()
	answer, err := transport.Again(reqCtx, a.section.Tries(), func() (reply, error) { return a.ask(reqCtx, pcm, req) })
	if err != nil {
		return providers.Transcript{}, a.account.Wrap(ctx, reqCtx, "transcribe", err)
	}
	final.Text = answer.words(a.section.Number("no_speech", noSpeech))
	final.Language = string(text.LangNamed(answer.Language).Base())
	return final, nil
}

// form is the body of a request.
func (a *ASR) form(pcm []int16, req providers.ASRRequest) (body *bytes.Buffer, contentType string, err error) {
	body = bytes.NewBuffer(make([]byte, 0, len(pcm)*2+1024))
	w := multipart.NewWriter(body)
	language, _, _ := strings.Cut(req.Language, "-")
	fields := [][2]string{
		{"response_format", "verbose_json"}, {"language", cmp.Or(language, "auto")}, {"temperature", "0.0"},
		{"no_language_probabilities", "true"}, {"suppress_nst", "true"}, {"prompt", a.section.Text("prompt", "")},
	}
	for _, f := range fields {
		if f[1] != "" {
			if err := w.WriteField(f[0], f[1]); err != nil {
				return nil, "", fmt.Errorf("write form: %w", err)
			}
		}
	}
	part, err := w.CreateFormFile("file", "utterance.wav")
	if err != nil {
		return nil, "", fmt.Errorf("write form: %w", err)
	}
	if err := errors.Join(file.WriteWAV(part, pcm, req.Rate), w.Close()); err != nil {
		return nil, "", fmt.Errorf("write form: %w", err)
	}
	return body, w.FormDataContentType(), nil
}

// ask makes the request. Its errors are not yet wrapped.
func (a *ASR) ask(ctx context.Context, pcm []int16, req providers.ASRRequest) (reply, error) {
	body, contentType, err := a.form(pcm, req)
	if err != nil {
		return reply{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, body)
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Content-Type", contentType)
	if a.section.Key != "" { // of a proxy in front
		r.Header.Set("Authorization", "Bearer "+a.section.Key.Reveal())
	}
	for name, value := range a.section.Headers {
		r.Header.Set(name, value.Reveal())
	}
	resp, err := a.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		refused := transport.ReadRefusal(resp)
		if resp.StatusCode == http.StatusServiceUnavailable {
			refused.Text = "the server is still loading its model: " + refused.Text
		}
		return reply{}, refused
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return reply{}, err
	}
	if len(answer) > maxReply {
		return reply{}, errors.New("the reply is longer than any transcription")
	}
	return parse(answer, resp.Header.Get("Content-Type"))
}

// marks are lines of what is no speech, such as [BLANK_AUDIO] and (music).
var marks = regexp.MustCompile(`^[\[(][^\])]*[\])]$`)

// reply is a transcription.
type reply struct {
	Text     *string `json:"text"`
	Language string  `json:"language"`
	Segments []struct {
		Text     string  `json:"text"`
		NoSpeech float64 `json:"no_speech_prob"`
	} `json:"segments"`
}

// parse reads a reply: JSON of either form, an error of status 200, or plain words.
func parse(body []byte, contentType string) (reply, error) {
	var r reply
	if message, ok := transport.ErrorMessage(body); ok {
		return r, transport.Refused(providers.Unavailable, "", message)
	}
	if err := transport.Decode(body, &r); err != nil {
		if strings.HasPrefix(contentType, "text/") && !bytes.HasPrefix(bytes.TrimSpace(body), []byte{'<'}) { // no page of HTML
			words := string(body)
			return reply{Text: &words}, nil
		}
		return r, err
	}
	if r.Text == nil {
		return r, errors.New("the reply has no text")
	}
	return r, nil
}

// words are the words of all pieces that hold speech. The model writes a line for each,
// and words of its own for silence.
func (r reply) words(silence float64) string {
	lines := strings.Split(*r.Text, "\n")
	if len(r.Segments) > 0 {
		lines = lines[:0]
		for _, s := range r.Segments {
			if s.NoSpeech < silence {
				lines = append(lines, s.Text)
			}
		}
	}
	words := ""
	for _, l := range lines {
		if l = strings.TrimSpace(l); !marks.MatchString(l) {
			words = text.Join(words, l)
		}
	}
	return words
}
