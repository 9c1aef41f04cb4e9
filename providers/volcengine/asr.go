package volcengine

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
	"xiaozhi/providers/volcframe"
)

const (
	hearPath  = "/api/v3/sauc/"
	hearMode  = "bigmodel_async"       // answers when the text changes
	wholeMode = "bigmodel_nostream"    // answers at the end; the only one that takes a language
	hearFrame = 200 * time.Millisecond // as the vendor advises
	endWindow = 10000                  // ms of silence after which the service would end a sentence: we do that
	maxAnswer = 1 << 20                // bytes
	codeEmpty = "45000002"             // nothing was sent
	codeLate  = "45000081"             // nothing more was sent in time
)

// newASR makes the recogniser of a section.
func newASR(s service.Section) (providers.ASR, error) {
	resources := []string{hears2, hears1}
	if m := resource(s, service.ASR); m != "" {
		resources = []string{m}
	}
	c, err := newClient(s, resources...)
	if err != nil {
		return nil, err
	}
	c.header.Set("X-Api-Sequence", "-1") // newer pages of the vendor have it among the headers
	if s.Text("mode", hearMode) == oldMode {
		c.header.Set("Authorization", "Bearer; "+s.Key.Reveal())
	}
	e := &ears{
		client: c, mode: s.Text("mode", hearMode), window: int(s.Number("end_window_size", endWindow)), uid: cmp.Or(s.ID, "xiaozhi"), extra: s.Extra,
		app: s.ID, key: s.Key, cluster: s.Text("cluster", oldHearCluster),
	}
	return recognition.New(recognition.Options{
		Account: c.dialer.Account(), Tries: s.Tries(), Dial: e.dial, Frame: hearFrame, Final: s.Timeouts.First,
		Streams: func() bool { return e.mode != wholeMode },
	}), nil
}

// ears holds the settings of a recogniser.
type ears struct {
	*client
	mode   string
	window int // ms
	uid    string
	extra  map[string]any

	app, cluster string // for the old service, which wants them in its first message
	key          providers.Secret
}

// request makes the first message of an utterance.
func (e *ears) request(req providers.ASRRequest) ([]byte, error) {
	h := hearing{
		User:  hearingUser{UID: e.uid},
		Audio: hearingAudio{Format: "pcm", Codec: "raw", Rate: req.Rate, Bits: 16, Channel: 1},
		Request: hearingRequest{
			Model: "bigmodel", ITN: true, Punc: true, Show: true, Result: "full", EndWindow: e.window, Corpus: hotwords(req.Phrases),
		},
	}
	if e.mode == wholeMode {
		h.Audio.Language = language(req.Language)
	}
	payload, err := merge(h, e.extra)
	if err != nil {
		return nil, err
	}
	return volcframe.Frame{Kind: volcframe.TypeRequest, JSON: true, Payload: payload}.Bytes(), nil
}

// language returns the service's name of a language, or "", which means Chinese, English
// and dialects of Chinese.
func language(tag string) string {
	base, _, _ := strings.Cut(tag, "-")
	return map[string]string{
		"ja": "ja-JP", "ko": "ko-KR", "id": "id-ID", "es": "es-MX", "pt": "pt-BR", "de": "de-DE", "fr": "fr-FR", "fil": "fil-PH", "ms": "ms-MY", "th": "th-TH", "ar": "ar-SA",
	}[base]
}

// dial opens a session. Sound may follow the first message at once.
func (e *ears) dial(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
	first, path := e.request, hearPath+e.mode
	if e.mode == oldMode {
		first, path = e.oldRequest, oldHearPath
	}
	message, err := first(req)
	if err != nil {
		return nil, err
	}
	socket, err := e.client.dial(ctx, path)
	if err != nil {
		return nil, err
	}
	socket.Limit(maxAnswer)
	if err := socket.WriteBinary(message); err != nil {
		socket.Close()
		return nil, err
	}
	options, _ := e.extra["request"].(map[string]any)
	session := &hearingSession{Socket: socket, single: options["result_type"] == "single"}
	if e.mode == oldMode {
		return &oldSession{session}, nil
	}
	return session, nil
}

// hearingSession is one utterance.
type hearingSession struct {
	*transport.Socket
	finished atomic.Bool
	single   bool   // each text is that of a sentence, not of all
	ended    string // the last sentence that does not change any more
	over     bool   // the last message came
}

// Send sends a piece of sound.
func (s *hearingSession) Send(pcm []int16) error {
	return s.WriteBinary(volcframe.Frame{Kind: volcframe.TypeAudio, Payload: little(pcm)}.Bytes())
}

// Finish sends the last packet, which is empty.
func (s *hearingSession) Finish() error {
	s.finished.Store(true)
	return s.WriteBinary(volcframe.Frame{Kind: volcframe.TypeAudio, Flags: volcframe.FlagLast}.Bytes())
}

// Receive returns the text so far. The last message may have none: then the text before counts.
func (s *hearingSession) Receive() (recognition.Result, error) {
	if s.over {
		return recognition.Result{Kind: recognition.Over}, nil
	}
	f, err := volcframe.Read(s.Socket, 0)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && (refused.Code == codeEmpty || refused.Code == codeLate && s.finished.Load()) {
		return recognition.Result{Kind: recognition.Over}, nil
	}
	if err != nil {
		return recognition.Result{}, err
	}
	if f.Kind != volcframe.TypeAnswer {
		return recognition.Result{}, nil
	}
	words, definite, err := parseHeard(f.Payload)
	switch {
	case err != nil:
		return recognition.Result{}, err
	case f.Last():
		if s.over = true; s.single && words == s.ended {
			return recognition.Result{Kind: recognition.Over}, nil
		}
		return recognition.Result{Kind: recognition.Sentence, Text: words}, nil
	case words == "":
		return recognition.Result{}, nil
	case s.single && definite:
		s.ended = words
		return recognition.Result{Kind: recognition.Sentence, Text: words}, nil
	}
	return recognition.Result{Kind: recognition.Partial, Text: words}, nil
}

// little returns samples as bytes, the low one first.
func little(pcm []int16) []byte {
	b := make([]byte, 0, 2*len(pcm))
	for _, v := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}
