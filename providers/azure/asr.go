package azure

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	maxAnswer = 1 << 20         // bytes of a message: words, and when each was spoken
	burst     = 5 * time.Second // of sound that is taken as fast as it comes
	pace      = 2               // times as fast as it is spoken, beyond that
)

// locales are the languages of the service, by our tags: it wants to know the region.
var locales = map[string]string{
	"zh": "zh-CN", "en": "en-US", "ja": "ja-JP", "ko": "ko-KR", "yue": "zh-HK", "de": "de-DE", "fr": "fr-FR", "es": "es-ES", "it": "it-IT",
	"pt": "pt-BR", "ru": "ru-RU", "vi": "vi-VN", "th": "th-TH", "id": "id-ID", "nl": "nl-NL", "pl": "pl-PL", "tr": "tr-TR", "ar": "ar-EG",
	"hi": "hi-IN", "sv": "sv-SE", "da": "da-DK", "fi": "fi-FI", "nb": "nb-NO", "cs": "cs-CZ", "uk": "uk-UA", "el": "el-GR", "he": "he-IL",
	"hu": "hu-HU", "ro": "ro-RO", "ms": "ms-MY", "fil": "fil-PH",
}

// locale returns the name of a language at the service: Chinese if none is known.
func locale(tag string) string {
	lang := text.TagOf(tag)
	if lang == "" {
		return locales["zh"]
	}
	if strings.Contains(string(lang), "-") {
		return string(lang)
	}
	if known, ok := locales[string(lang)]; ok {
		return known
	}
	return string(lang)
}

// NewASR makes a recogniser.
func NewASR(s service.Section) (providers.ASR, error) {
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, err
	}
	l := &listener{s: s, dialer: dialer}
	return recognition.New(recognition.Options{Account: account, Tries: s.Tries(), Dial: l.dial, Pace: pace, Burst: burst, Final: s.Timeouts.First}), nil
}

// listener opens the sessions of one section.
type listener struct {
	s      service.Section
	dialer *transport.Dialer
}

// dial opens a socket and begins a turn on it.
func (l *listener) dial(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
	query := url.Values{"language": {l.s.Text("language", locale(req.Language))}, "format": {"simple"}}
	for name, value := range l.s.Extra {
		query.Set(name, fmt.Sprint(value))
	}
	header := auth(l.s)
	header.Set("X-ConnectionId", newID())
	at := service.Join(address(l.s, "stt"), fmt.Sprintf("/speech/recognition/%s/cognitiveservices/v1?%s", l.s.Text("mode", "conversation"), query.Encode()))
	socket, err := l.dialer.Dial(ctx, at, header)
	if err != nil {
		return nil, judged(err)
	}
	socket.Limit(maxAnswer)
	c := &session{Socket: socket, id: newID(), rate: req.Rate}
	if err := c.begin(hints(l.s, req.Phrases)); err != nil {
		socket.Close()
		return nil, err
	}
	return c, nil
}

// session is one turn on a socket.
type session struct {
	*transport.Socket
	id   string
	rate int
}

// mostPhrases is the number of phrases that the service is told.
const mostPhrases = 100

// hints is the context of a turn: what is likely to be said, unless the section does not
// want it told.
func hints(s service.Section, phrases []string) string {
	type item struct{ Text string }
	type group struct {
		Type  string
		Items []item
	}
	var items []item
	for _, p := range phrases[:min(len(phrases), mostPhrases)] {
		items = append(items, item{p})
	}
	if len(items) == 0 || !s.Flag("phrases", true) {
		return "{}"
	}
	b, err := json.Marshal(map[string]any{"dgi": map[string]any{"Groups": []group{{Type: "Generic", Items: items}}}})
	if err != nil {
		return "{}"
	}
	return string(b)
}

// begin tells what we are and what sound will come.
func (s *session) begin(context string) error {
	config := `{"context":{"system":{"name":"xiaozhi","version":"1"}}}`
	if err := s.WriteText(textFrame("speech.config", s.id, "application/json", config)); err != nil {
		return err
	}
	if err := s.WriteText(textFrame("speech.context", s.id, "application/json", context)); err != nil {
		return err
	}
	return s.WriteBinary(binaryFrame(s.id, "audio/x-wav", wavHeader(s.rate)))
}

// Send hands over sound.
func (s *session) Send(pcm []int16) error {
	b := make([]byte, 0, 2*len(pcm))
	for _, v := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return s.WriteBinary(binaryFrame(s.id, "", b))
}

// Finish says that no more sound comes: a frame without any.
func (s *session) Finish() error { return s.WriteBinary(binaryFrame(s.id, "", nil)) }

// Receive waits for the next words. What belongs to another turn is nothing.
func (s *session) Receive() (recognition.Result, error) {
	isText, message, err := s.Read(0)
	if err != nil {
		return recognition.Result{}, judged(err)
	}
	if !isText {
		return recognition.Result{}, nil
	}
	return understand(message, s.id)
}

// understand reads a text message of the turn with an id.
func understand(message []byte, id string) (recognition.Result, error) {
	f, err := parseText(message)
	if err != nil {
		return recognition.Result{}, err
	}
	if !strings.EqualFold(f.id, id) && f.id != "" {
		return recognition.Result{}, nil
	}
	switch f.path {
	case "speech.hypothesis", "speech.fragment":
		var m struct{ Text string }
		if err := transport.Decode(f.body, &m); err != nil {
			return recognition.Result{}, err
		}
		return recognition.Result{Kind: recognition.Partial, Text: m.Text}, nil
	case "speech.phrase":
		return phrase(f.body)
	case "turn.end":
		return recognition.Result{Kind: recognition.Over}, nil
	}
	return recognition.Result{}, nil
}

// statuses are those of a phrase that is none, but for those that mean silence.
var statuses = map[string]providers.Kind{
	"Error": providers.Unavailable, "TooManyRequests": providers.RateLimited, "BadRequest": providers.BadRequest, "Forbidden": providers.NoCredit,
}

// phrase reads a finished sentence.
func phrase(body []byte) (recognition.Result, error) {
	var m struct {
		Status  string `json:"RecognitionStatus"`
		Display string `json:"DisplayText"`
		NBest   []struct{ Display string }
	}
	if err := transport.Decode(body, &m); err != nil {
		return recognition.Result{}, err
	}
	if kind, ok := statuses[m.Status]; ok {
		return recognition.Result{}, transport.Refused(kind, m.Status, "the service says "+m.Status)
	}
	if m.Display == "" && len(m.NBest) > 0 {
		m.Display = m.NBest[0].Display
	}
	if m.Status != "Success" && m.Status != "" || m.Display == "" {
		return recognition.Result{Kind: recognition.Partial}, nil
	}
	return recognition.Result{Kind: recognition.Sentence, Text: m.Display}, nil
}

// judged is err with a refusal in it put right.
func judged(err error) error {
	if r, ok := errors.AsType[*transport.Refusal](err); ok {
		judge(r)
	}
	return err
}
