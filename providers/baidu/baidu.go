// Package baidu is Baidu's recogniser of short speech: whole utterances by plain requests.
package baidu

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	speechAddress = "https://vop.baidu.com"
	firstTime     = 10 * time.Second // to the answer, the upload included
	againTime     = 200 * time.Millisecond
	longest       = 59 // seconds of sound in one request; the service takes 60
)

// The models: what the service calls products.
const (
	standard = "standard"
	pro      = "pro" // faster; Mandarin only
)

// Kind describes the service.
func Kind() service.Kind {
	return service.Kind{
		Type:    "baidu",
		Title:   "Baidu short speech recognition",
		Env:     []service.Env{{Field: service.Key, Name: "BAIDU_API_KEY"}, {Field: service.Secret, Name: "BAIDU_SECRET_KEY"}},
		Needs:   []service.Field{service.Key, service.Secret},
		Address: speechAddress,
		Schemes: []string{"http", "https"},
		Models:  map[service.Role][]string{service.ASR: {standard, pro}},
		More:    []service.Setting{{Name: "dev_pid", Type: service.Number}, {Name: "cuid"}},
		ASR:     newASR,
	}
}

// asr is the recogniser.
type asr struct {
	account transport.Account
	client  *http.Client
	tokens  *tokens
	url     string
	dev     int // number of the model, for all languages; 0: by language
	pro     bool
	cuid    string
	headers map[string]providers.Secret
	first   time.Duration
	tries   int
}

func newASR(s service.Section) (providers.ASR, error) {
	client := s.Client
	if client == nil {
		var err error
		if client, err = transport.NewHTTPClient(transport.HTTPOptions{Connect: s.Timeouts.Connect, Proxy: s.Proxy, Careful: s.Careful}); err != nil {
			return nil, err
		}
	}
	a := &asr{
		account: transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}, client: client,
		dev: int(s.Number("dev_pid", 0)), pro: s.Model(service.ASR, standard) == pro, cuid: s.Text("cuid", "xiaozhi"), headers: s.Headers,
		first: cmp.Or(s.Timeouts.First, firstTime), tries: s.Tries()}
	path := "/server_api"
	if a.pro {
		path = "/pro_api"
	}
	a.url = service.Join(service.HTTP(cmp.Or(s.BaseURL, speechAddress)), path)
	at := strings.TrimSuffix(a.url, path)
	if host, err := url.Parse(at); err == nil && strings.HasSuffix(host.Hostname(), ".baidu.com") { // tokens have a host of their own
		at = tokenAddress
	}
	a.tokens = newTokens(client, at, s.Key, s.Secret)
	return a, nil
}

// Name returns the section's name.
func (a *asr) Name() string { return a.account.Name }

// Open begins an utterance, which is sent when it is complete.
func (a *asr) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	return providers.OpenUtterance(ctx, req, a.recognise), nil
}

// recognise has an utterance recognised; one that is too long for the service in parts.
func (a *asr) recognise(ctx context.Context, pcm []int16, req providers.ASRRequest) (providers.Transcript, error) {
	out := providers.Transcript{Final: true, Provider: a.Name()}
	for len(pcm) > 0 {
		n := min(longest*req.Rate, len(pcm))
		words, err := a.part(ctx, pcm[:n], req)
		for try := 1; try < a.tries && mayPass(err) && transport.Wait(ctx, againTime); try++ {
			words, err = a.part(ctx, pcm[:n], req)
		}
		if err != nil {
			return providers.Transcript{}, err
		}
		out.Text, pcm = out.Text+words, pcm[n:]
	}
	return out, nil
}

// mayPass says whether a failure may be over soon.
func mayPass(err error) bool {
	failed, ok := errors.AsType[*providers.Error](err)
	return ok && failed.Kind == providers.Unavailable && !errors.Is(err, transport.ErrStalled)
}

// part has a part of an utterance recognised. A token that the service has forgotten is
// replaced once.
func (a *asr) part(ctx context.Context, pcm []int16, req providers.ASRRequest) (string, error) {
	reqCtx, cancel := context.WithTimeoutCause(ctx, a.first, transport.ErrStalled)
	defer cancel()
	for again := false; ; again = true {
		token, err := a.tokens.get(reqCtx)
		if err != nil {
			return "", a.account.Wrap(ctx, reqCtx, "ask for a token", err)
		}
		words := ""
		reply, err := a.ask(reqCtx, token, pcm, req)
		if err == nil {
			if reply.forgotten() && !again {
				a.tokens.forget(token)
				continue
			}
			words, err = reply.text()
		}
		if err == nil {
			return words, nil
		}
		account := a.account
		account.Secrets = append([]providers.Secret{token}, account.Secrets...)
		return "", account.Wrap(ctx, reqCtx, "transcribe", err)
	}
}

// product returns the number of the model for a language.
func (a *asr) product(language string) int {
	base, _, _ := strings.Cut(language, "-")
	switch {
	case a.dev != 0:
		return a.dev
	case a.pro:
		return 80001
	case base == "en":
		return 1737
	case base == "yue":
		return 1637
	}
	return 1537
}
