package iflytek

import (
	"strconv"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// The places of a message within a request.
const (
	statusFirst  = 0
	statusMiddle = 1
	statusLast   = 2
)

// refusal makes the error of a code that is not 0.
func refusal(code int, words, sid string) *transport.Refusal {
	kind := providers.Unavailable
	switch code {
	case 10005, 10313, 11200, 10110, 10317:
		kind = providers.Unauthorized
	case 11201, 10010:
		kind = providers.RateLimited
	case 10006, 10007, 10009, 10043, 10109, 10139, 10160, 10161, 10162, 10163, 10222:
		kind = providers.BadRequest
	}
	r := transport.Refused(kind, strconv.Itoa(code), words)
	r.LogID = sid
	return r
}

// timedOut says whether a code means that a session has taken as long as any may.
func timedOut(code string) bool { return code == "10014" || code == "10019" || code == "10114" }

// classicFrame is a message to the classic services. What is nil is left out: the first
// message of a request says who asks and how, the others hold data only.
type classicFrame struct {
	Common   *classicCommon `json:"common,omitempty"`
	Business any            `json:"business,omitempty"`
	Data     any            `json:"data"`
}

type classicCommon struct {
	AppID string `json:"app_id"`
}

// classicSound is the sound of a message.
type classicSound struct {
	Status   int    `json:"status"`
	Format   string `json:"format"`
	Encoding string `json:"encoding"`
	Audio    []byte `json:"audio"`
}

// classicText is the whole text of a synthesis.
type classicText struct {
	Status int    `json:"status"`
	Text   []byte `json:"text"`
}

// classicAnswer is an answer of a classic service, to sound or to a text.
type classicAnswer struct {
	Code    transport.Int `json:"code"`
	Message string        `json:"message"`
	SID     string        `json:"sid"`
	Data    *struct {
		Status transport.Int `json:"status"`
		Result *result       `json:"result"`
		Audio  []byte        `json:"audio"`
	} `json:"data"`
}

// largeFrame is a message to the services with large models.
type largeFrame struct {
	Header    largeHeader `json:"header"`
	Parameter any         `json:"parameter,omitempty"`
	Payload   any         `json:"payload"`
}

type largeHeader struct {
	AppID  string `json:"app_id"`
	Status int    `json:"status"`
}

// largeSound is the payload of a message with sound.
type largeSound struct {
	Audio struct {
		Encoding string `json:"encoding"`
		Rate     int    `json:"sample_rate"`
		Channels int    `json:"channels"`
		Depth    int    `json:"bit_depth"`
		Seq      int    `json:"seq"`
		Status   int    `json:"status"`
		Audio    []byte `json:"audio"`
	} `json:"audio"`
}

// largeText is the payload of a message with text.
type largeText struct {
	Text struct {
		Encoding string `json:"encoding"`
		Compress string `json:"compress"`
		Format   string `json:"format"`
		Status   int    `json:"status"`
		Seq      int    `json:"seq"`
		Text     []byte `json:"text"`
	} `json:"text"`
}

// largeAnswer is an answer of a service with a large model.
type largeAnswer struct {
	Header struct {
		Code    transport.Int `json:"code"`
		Message string        `json:"message"`
		SID     string        `json:"sid"`
		Status  transport.Int `json:"status"`
	} `json:"header"`
	Payload struct {
		Result *struct {
			Text []byte `json:"text"` // JSON in base64
		} `json:"result"`
		Audio *struct {
			Audio  []byte        `json:"audio"`
			Rate   transport.Int `json:"sample_rate"`
			Status transport.Int `json:"status"`
		} `json:"audio"`
	} `json:"payload"`
}

// answer holds the members that both forms of answers have.
type answer struct {
	result *result // a piece of a text
	sound  []byte
	last   bool // nothing follows
	rate   int  // of sound in Hz; 0: it does not say
}

// parseClassic reads an answer of a classic service. A code that is not 0 is a [*transport.Refusal].
func parseClassic(message []byte) (answer, error) {
	var m classicAnswer
	if err := transport.Decode(message, &m); err != nil {
		return answer{}, err
	}
	if m.Code != 0 {
		return answer{}, refusal(int(m.Code), m.Message, m.SID)
	}
	if m.Data == nil {
		return answer{}, nil
	}
	return answer{result: m.Data.Result, sound: m.Data.Audio, last: m.Data.Status == statusLast}, nil
}

// parseLarge reads an answer of a service with a large model.
func parseLarge(message []byte) (answer, error) {
	var m largeAnswer
	if err := transport.Decode(message, &m); err != nil {
		return answer{}, err
	}
	if m.Header.Code != 0 {
		return answer{}, refusal(int(m.Header.Code), m.Header.Message, m.Header.SID)
	}
	a := answer{last: m.Header.Status == statusLast}
	if r := m.Payload.Result; r != nil && len(r.Text) > 0 {
		a.result = &result{}
		if err := transport.Decode(r.Text, a.result); err != nil {
			return answer{}, err
		}
	}
	if p := m.Payload.Audio; p != nil {
		a.sound, a.rate = p.Audio, int(p.Rate)
		a.last = a.last || p.Status == statusLast
	}
	return a, nil
}
