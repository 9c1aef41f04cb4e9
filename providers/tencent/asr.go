package tencent

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const hearingModel = "16k_zh"

const (
	piece = 40 * time.Millisecond
	pace  = 2.5 // times as fast as it is spoken: the service takes no more than 3
)

// sliceStable marks a result that does not change any more.
const sliceStable = 2

func newASR(s service.Section) (providers.ASR, error) {
	a, err := newAccount(s, hearingAddress)
	if err != nil {
		return nil, err
	}
	return recognition.New(recognition.Options{Account: a.errors, Tries: s.Tries(), Dial: a.listen, Frame: piece, Pace: s.Number("pace", pace), Final: a.first}), nil
}

// model chooses the engine for a language, if the settings name none.
func (a *account) model(language string) string {
	if m := a.section.Models[service.ASR]; m != "" {
		return m
	}
	switch base, _, _ := strings.Cut(language, "-"); base {
	case "", "zh":
		return hearingModel
	case "en", "ja", "ko", "yue":
		return "16k_" + base
	}
	return "16k_multi_lang"
}

// listen opens a session and waits until it takes sound.
func (a *account) listen(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
	now := a.clock.Now()
	values := url.Values{
		"secretid": {a.section.Key.Reveal()}, "timestamp": {unix(now)}, "expired": {unix(now.Add(validity))}, "nonce": {nonce(now)},
		"engine_model_type": {a.model(req.Language)}, "voice_id": {uuid.NewString()}, "voice_format": {"1"}, "needvad": {"0"},
	}
	if v := a.section.Text("hotword_id", ""); v != "" {
		values.Set("hotword_id", v)
	}
	if v := a.section.Text("hotwords", ""); v != "" {
		values.Set("hotword_list", v)
	}
	socket, err := a.dial(ctx, "", "/asr/v2/"+a.section.ID, "signature", values)
	if err != nil {
		return nil, err
	}
	if _, _, err := read(socket, a.first, kindOfHearing); err != nil {
		socket.Close()
		return nil, a.learn(socket, err)
	}
	return &listening{socket: socket}, nil
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// nonce makes a number of at most ten digits that is hardly ever the same.
func nonce(t time.Time) string { return strconv.FormatInt(t.UnixNano()%9_999_999_999+1, 10) }

// kindOfHearing maps a code of the recogniser to the kind of failure.
func kindOfHearing(code int) providers.Kind {
	switch code {
	case 4002, 4003, 6001:
		return providers.Unauthorized
	case 4004, 4005:
		return providers.NoCredit
	case 4006, 4000:
		return providers.RateLimited
	case 4001, 4007, 4010:
		return providers.BadRequest
	}
	return providers.Unavailable
}

// listening is a session of recognition.
type listening struct {
	socket *transport.Socket
	over   bool // the last message came
}

// Send hands over sound.
func (l *listening) Send(pcm []int16) error { return l.socket.WriteBinary(recognition.Bytes(pcm)) }

// Finish says that the sound is complete.
func (l *listening) Finish() error { return l.socket.WriteText([]byte(`{"type":"end"}`)) }

// Close ends the session.
func (l *listening) Close() { l.socket.Close() }

// Receive returns the next result. The last message may hold one too.
func (l *listening) Receive() (recognition.Result, error) {
	if l.over {
		return recognition.Result{Kind: recognition.Over}, nil
	}
	r, _, err := read(l.socket, 0, kindOfHearing)
	if err != nil {
		return recognition.Result{}, err
	}
	l.over = r.Final == 1
	switch {
	case r.Result == nil && l.over:
		return recognition.Result{Kind: recognition.Over}, nil
	case r.Result == nil:
		return recognition.Result{}, nil
	case r.Result.SliceType == sliceStable || l.over:
		return recognition.Result{Kind: recognition.Sentence, Text: r.Result.Text, Part: string(r.Result.Index)}, nil
	}
	return recognition.Result{Kind: recognition.Partial, Text: r.Result.Text, Part: string(r.Result.Index)}, nil
}
