// Package edge speaks with the read-aloud voices of the browser Edge: free, without a key,
// and without a promise. It signs requests as the browser does; when Microsoft changes how
// that is done, the settings version and trust say so without a new build of this program.
package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	address = "wss://speech.platform.bing.com"
	path    = "/consumer/speech/synthesize/readaloud"
	version = "143.0.3650.75" // of Edge
	origin  = "chrome-extension://jdiccldimpdaibmpdkjnbmckianbfold"
	maxList = 4 << 20 // bytes of the list of voices

	listTime = 10 * time.Second
)

// formats are what the service makes of them: three alone work, and asking for others may
// get an address banned.
var formats = map[string]string{
	"mp3":    "audio-24khz-48kbitrate-mono-mp3",
	"mp3-96": "audio-24khz-96kbitrate-mono-mp3",
	"opus":   "webm-24khz-16bit-mono-opus",
}

// byLanguage are the voices of languages that no setting names one for.
var byLanguage = map[string]string{
	"zh": "zh-CN-XiaoxiaoNeural", "zh-TW": "zh-TW-HsiaoChenNeural", "zh-HK": "zh-HK-HiuMaanNeural", "yue": "zh-HK-HiuMaanNeural",
	"en": "en-US-AvaNeural", "en-GB": "en-GB-SoniaNeural", "ja": "ja-JP-NanamiNeural", "ko": "ko-KR-SunHiNeural",
	"vi": "vi-VN-HoaiMyNeural", "de": "de-DE-KatjaNeural", "es": "es-ES-ElviraNeural", "ru": "ru-RU-SvetlanaNeural",
	"fr": "fr-FR-DeniseNeural", "it": "it-IT-ElsaNeural", "pt": "pt-BR-FranciscaNeural", "th": "th-TH-PremwadeeNeural",
	"id": "id-ID-GadisNeural", "tr": "tr-TR-EmelNeural", "ar": "ar-SA-ZariyahNeural", "hi": "hi-IN-SwaraNeural",
}

// usual is the voice of all other languages.
const usual = "zh-CN-XiaoxiaoNeural"

// Kind describes the service.
func Kind() service.Kind {
	return service.Kind{
		Type: "edge", Title: "Microsoft Edge read-aloud", Address: address, Free: true,
		Voices: []service.Voice{
			{Name: "zh-CN-XiaoxiaoNeural", Title: "Xiaoxiao", Language: []string{"zh-CN"}},
			{Name: "zh-CN-XiaoyiNeural", Title: "Xiaoyi", Language: []string{"zh-CN"}},
			{Name: "zh-CN-YunxiNeural", Title: "Yunxi", Language: []string{"zh-CN"}},
			{Name: "zh-CN-YunjianNeural", Title: "Yunjian", Language: []string{"zh-CN"}},
			{Name: "zh-CN-YunxiaNeural", Title: "Yunxia", Language: []string{"zh-CN"}},
			{Name: "zh-CN-YunyangNeural", Title: "Yunyang", Language: []string{"zh-CN"}},
			{Name: "zh-CN-liaoning-XiaobeiNeural", Title: "Xiaobei", Language: []string{"zh-CN"}},
			{Name: "zh-CN-shaanxi-XiaoniNeural", Title: "Xiaoni", Language: []string{"zh-CN"}},
			{Name: "zh-HK-HiuMaanNeural", Title: "HiuMaan", Language: []string{"zh-HK"}},
			{Name: "zh-TW-HsiaoChenNeural", Title: "HsiaoChen", Language: []string{"zh-TW"}},
			{Name: "en-US-AvaNeural", Title: "Ava", Language: []string{"en-US"}},
			{Name: "en-US-AndrewNeural", Title: "Andrew", Language: []string{"en-US"}},
			{Name: "en-GB-SoniaNeural", Title: "Sonia", Language: []string{"en-GB"}},
		},
		Formats: []string{"mp3", "mp3-96", "opus"},
		More:    []service.Setting{{Name: "version", Type: service.Text}, {Name: "most_connections", Type: service.Number}},
		TTS:     func(s service.Section) (providers.TTS, error) { return New(s) }, ListVoices: listVoices,
	}
}

// client asks the service, and proves itself by its clock.
type client struct {
	section service.Section
	account transport.Account
	base    string // without the path
	version string
	muid    string
	clock   transport.Clock
}

// newClient checks a section.
func newClient(s service.Section) (*client, error) {
	base, err := service.Endpoint(s.Address(nil, address), "wss", "ws", "https", "http")
	if err != nil {
		return nil, fmt.Errorf("%s: base_url: %w", s.Name, err)
	}
	return &client{
		section: s, account: transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful},
		base: base, version: s.Text("version", version), muid: strings.ToUpper(newID()),
	}, nil
}

// query proves a request, by the service's clock.
func (c *client) query() url.Values {
	return url.Values{"Sec-MS-GEC": {token(c.clock.Now())}, "Sec-MS-GEC-Version": {"1-" + c.version}}
}

// header makes the headers that the browser sends with every request.
func (c *client) header() http.Header {
	major, _, _ := strings.Cut(c.version, ".")
	return http.Header{
		"User-Agent": {"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/" + major +
			".0.0.0 Safari/537.36 Edg/" + major + ".0.0.0"},
		"Accept-Language": {"en-US,en;q=0.9"},
		"Pragma":          {"no-cache"},
		"Cache-Control":   {"no-cache"},
		"Cookie":          {"muid=" + c.muid + ";"},
	}
}

// address returns a fresh URL for a sentence.
func (c *client) address() string {
	q := c.query()
	q.Set("TrustedClientToken", trusted)
	q.Set("ConnectionId", newID())
	return service.Join(c.base, path+"/edge/v1?"+q.Encode())
}

// explain says why the service has refused us: it tells by a bare 403 alone.
func (c *client) explain(err error, again bool) error {
	refused, ok := errors.AsType[*transport.Refusal](err)
	if !ok || refused.Status != http.StatusForbidden {
		return err
	}
	cause := "the clocks agree, so either the version of Edge that we give ourselves (" + c.version +
		", setting version) is too old, or the service blocks this network, as it does data centres, VPNs and many connections at once"
	if again {
		cause = "our clock was wrong, and it refuses us by its own clock too: set the clock of this machine, then look at the setting version (" + c.version + ")"
	}
	clean := *refused
	clean.Text = "the service refuses us: " + cause
	return &clean
}

// voiceOf is the voice for a request.
func (c *client) voiceOf(req providers.TTSRequest) string {
	fit, ok := text.Find(byLanguage, text.TagOf(req.Language))
	if !ok {
		fit = usual
	}
	return c.section.Voice(req, fit)
}

// listVoices asks for all voices.
func listVoices(ctx context.Context, s service.Section) ([]service.Voice, error) {
	c, err := newClient(s)
	if err != nil {
		return nil, err
	}
	client := s.Client
	if client == nil {
		if client, err = transport.NewHTTPClient(transport.HTTPOptions{Connect: s.Timeouts.Connect, Proxy: s.Proxy, Careful: s.Careful}); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, listTime, transport.ErrStalled)
	defer cancel()
	body, err := c.get(limited, client)
	if failed, ok := errors.AsType[*transport.Refusal](err); ok && failed.Skewed {
		if body, err = c.get(limited, client); err != nil {
			err = c.explain(err, true)
		}
	} else if err != nil {
		err = c.explain(err, false)
	}
	if err != nil {
		return nil, c.account.Wrap(ctx, limited, "list voices", err)
	}
	all, err := parseVoices(body)
	if err != nil {
		return nil, c.account.Wrap(ctx, limited, "list voices", err)
	}
	out := make([]service.Voice, 0, len(all))
	for _, v := range all {
		out = append(out, service.Voice{Name: v.ShortName, Title: v.FriendlyName, Language: []string{v.Locale}})
	}
	return out, nil
}

// get asks for the list of voices once.
func (c *client) get(ctx context.Context, client *http.Client) ([]byte, error) {
	q := c.query()
	q.Set("trustedclienttoken", trusted)
	base := "http" + strings.TrimPrefix(strings.TrimPrefix(c.base, "ws"), "http")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, service.Join(base, path+"/voices/list?"+q.Encode()), nil)
	if err != nil {
		return nil, err
	}
	req.Header = c.header()
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		refused := transport.ReadRefusal(resp)
		refused.Skewed = resp.StatusCode == http.StatusForbidden && c.clock.Learn(resp.Header)
		return nil, refused
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxList))
}
