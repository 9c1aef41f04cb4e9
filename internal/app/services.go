package app

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/openai"
)

// service is a language model service that is known without a section.
type service struct {
	name, key, base, model string // key: the variable that holds the key
}

// services lists the services that auto picks up from the environment, in this order.
func services() []service {
	return []service{
		{"openai", "OPENAI_API_KEY", openai.DefaultBaseURL, "gpt-4o-mini"},
		{"deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-chat"},
		{"dashscope", "DASHSCOPE_API_KEY", "https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-flash"},
	}
}

const (
	ollamaBase = "http://127.0.0.1:11434"
	ollamaWait = 500 * time.Millisecond // it is on this machine, or not there
)

// The models of roles for which none is set.
const (
	defaultASRModel = "whisper-1"
	defaultTTSModel = "tts-1"
)

// noKey returns the error for a service without its key, which is left out.
func noKey(name string) error { return errors.New(message.Both("app/no-key") + ": " + name) }

// section is the settings under a name: those of the config, or those of a
// service that needs no section.
func (f *resolver) section(ctx context.Context, name string) (config.Provider, error) {
	if p, ok := f.cfg.Providers[name]; ok {
		if len(p.MissingEnv) > 0 {
			return p, noKey("$" + strings.Join(p.MissingEnv, ", $"))
		}
		if p.Type == "openai" && p.BaseURL == "" && p.APIKey == "" && len(p.Headers) == 0 {
			return p, noKey("providers." + name + ".api_key") // a service at another address may need none
		}
		return p, nil
	}
	for _, s := range services() {
		if s.name != name {
			continue
		}
		key := os.Getenv(s.key)
		if key == "" {
			return config.Provider{}, noKey("$" + s.key)
		}
		upper := strings.ToUpper(name)
		return config.Provider{
			Type: "openai", APIKey: providers.Secret(key),
			BaseURL: cmp.Or(os.Getenv(upper+"_BASE_URL"), s.base), Model: cmp.Or(os.Getenv(upper+"_MODEL"), s.model),
			ASRModel: defaultASRModel, TTSModel: defaultTTSModel, // the model that thinks can neither hear nor speak
		}, nil
	}
	if name == "ollama" {
		ctx, cancel := context.WithTimeout(ctx, ollamaWait)
		defer cancel()
		model, err := openai.FindOllama(ctx, ollamaBase)
		return config.Provider{Type: "openai", BaseURL: ollamaBase + "/v1", Model: model}, err
	}
	return config.Provider{Type: name}, nil
}

func (f *resolver) openai(name string, p config.Provider) openai.Options {
	o := openai.Options{
		Name: name, BaseURL: cmp.Or(p.BaseURL, openai.DefaultBaseURL), APIKey: p.APIKey,
		Model: p.Model, ASRModel: p.ASRModel, TTSModel: p.TTSModel,
		Voice: p.Voice.For(""), Voices: p.Voice, Format: p.Format, Rate: p.SampleRate,
		MaxTokens: p.MaxTokens, Extra: p.Extra, Headers: p.Headers,
	}
	if p.Temp != nil {
		t := float32(*p.Temp)
		o.Temperature = &t
	}
	if p.Timeout > 0 {
		o.Timeouts = openai.Timeouts{FirstToken: p.Timeout, Transcribe: p.Timeout, FirstSound: p.Timeout}
	}
	o.HTTPClient = f.client(name, o)
	return o
}

func (f *resolver) client(name string, o openai.Options) *http.Client {
	if c, ok := f.clients[name]; ok {
		return c
	}
	c := openai.NewHTTPClient(o.Timeouts)
	f.clients[name] = c
	return c
}

// warm lets the start open a connection to a service.
func (f *resolver) warm(w providers.Warmer, err error) {
	if err == nil {
		f.life.dial(w.Warm)
	}
}

// describe names a service for people, without what may be secret in its address.
func describe(base, model string) string {
	u, err := url.Parse(base)
	if err != nil {
		return model
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return model + " at " + u.String()
}
