package volcengine

import (
	"strconv"

	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/transport"
	"xiaozhi/providers/volcframe"
)

// The old service of recognition: the same frames, with other JSON in them.
const (
	oldMode        = "v2"
	oldHearPath    = "/api/v2/asr"
	oldHearCluster = "volcengine_streaming_common"
	oldHearOK      = 1000
	oldHearSilence = 1013
)

// oldHearing is the first message to the old service.
type oldHearing struct {
	App struct {
		ID      string `json:"appid"`
		Cluster string `json:"cluster"`
		Token   string `json:"token"`
	} `json:"app"`
	User    hearingUser  `json:"user"`
	Audio   hearingAudio `json:"audio"`
	Request struct {
		ID       string `json:"reqid"`
		Best     int    `json:"nbest"`
		Workflow string `json:"workflow"`
		Show     bool   `json:"show_utterances"`
		Result   string `json:"result_type"`
		Sequence int    `json:"sequence"`
	} `json:"request"`
}

// oldRequest makes the first message of an utterance.
func (e *ears) oldRequest(req providers.ASRRequest) ([]byte, error) {
	h := oldHearing{
		User:  hearingUser{UID: e.uid},
		Audio: hearingAudio{Format: "raw", Codec: "raw", Rate: req.Rate, Bits: 16, Channel: 1, Language: "zh-CN"},
	}
	h.App.ID, h.App.Cluster, h.App.Token = e.app, e.cluster, e.key.Reveal()
	h.Request.ID, h.Request.Best, h.Request.Result, h.Request.Sequence = volcframe.NewID(), 1, "full", 1
	h.Request.Workflow = "audio_in,resample,partition,vad,fe,decode,itn,nlu_punctuate"
	payload, err := merge(h, e.extra)
	if err != nil {
		return nil, err
	}
	return volcframe.Frame{Kind: volcframe.TypeRequest, JSON: true, Payload: payload}.Bytes(), nil
}

// oldHeard is an answer of the old service.
type oldHeard struct {
	ID       string        `json:"reqid"`
	Code     transport.Int `json:"code"`
	Message  string        `json:"message"`
	Sequence transport.Int `json:"sequence"` // negative: the last
	Result   []struct {
		Text string `json:"text"`
	} `json:"result"`
}

// oldSession is one utterance at the old service.
type oldSession struct{ *hearingSession }

// Receive returns the text so far.
func (s *oldSession) Receive() (recognition.Result, error) {
	if s.over {
		return recognition.Result{Kind: recognition.Over}, nil
	}
	f, err := volcframe.Read(s.Socket, 0)
	if err != nil {
		return recognition.Result{}, err
	}
	var h oldHeard
	if err := transport.Decode(f.Payload, &h); err != nil {
		return recognition.Result{}, err
	}
	if h.Code != oldHearOK && h.Code != oldHearSilence {
		return recognition.Result{}, oldRefusal(h)
	}
	words := ""
	if len(h.Result) > 0 {
		words = h.Result[0].Text
	}
	switch {
	case h.Code == oldHearSilence || h.Sequence < 0 || f.Last():
		s.over = true
		return recognition.Result{Kind: recognition.Sentence, Text: words}, nil
	case words == "":
		return recognition.Result{}, nil
	}
	return recognition.Result{Kind: recognition.Partial, Text: words}, nil
}

// oldRefusal makes the error of a code of the old service.
func oldRefusal(h oldHeard) *transport.Refusal {
	kind := volcframe.KindOf(0, h.Message, providers.Unavailable)
	switch h.Code {
	case 1001, 1010, 1011, 1012:
		kind = providers.BadRequest
	case 1002:
		kind = providers.Unauthorized
	case 1003:
		kind = providers.RateLimited
	case 1004:
		kind = providers.NoCredit
	}
	r := transport.Refused(kind, strconv.Itoa(int(h.Code)), h.Message)
	r.LogID = h.ID
	return r
}
