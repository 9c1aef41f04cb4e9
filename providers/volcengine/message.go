package volcengine

import (
	"encoding/json"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/providers/transport"
	"xiaozhi/providers/volcframe"
)

// maxHotwords is how many characters of words that are likely to be said go with a
// request: about the hundred tokens that the service takes.
const maxHotwords = 100

// hearing is the first message of a recognition.
type hearing struct {
	User    hearingUser    `json:"user"`
	Audio   hearingAudio   `json:"audio"`
	Request hearingRequest `json:"request"`
}

type hearingUser struct {
	UID string `json:"uid"`
}

type hearingAudio struct {
	Format   string `json:"format"`
	Codec    string `json:"codec"`
	Rate     int    `json:"rate"`
	Bits     int    `json:"bits"`
	Channel  int    `json:"channel"`
	Language string `json:"language,omitempty"`
}

type hearingRequest struct {
	Model     string         `json:"model_name"`
	ITN       bool           `json:"enable_itn"`
	Punc      bool           `json:"enable_punc"`
	Show      bool           `json:"show_utterances"`
	Result    string         `json:"result_type"`
	EndWindow int            `json:"end_window_size,omitempty"` // ms
	Corpus    *hearingCorpus `json:"corpus,omitempty"`
}

type hearingCorpus struct {
	Context string `json:"context"` // JSON in a text
}

// hotwords makes the corpus of what is likely to be said, or none.
func hotwords(phrases []string) *hearingCorpus {
	type word struct {
		Word string `json:"word"`
	}
	var list struct {
		Hotwords []word `json:"hotwords"`
	}
	left := maxHotwords
	for _, p := range phrases {
		if n := utf8.RuneCountInString(p); p != "" && n <= left {
			left -= n
			list.Hotwords = append(list.Hotwords, word{p})
		}
	}
	if list.Hotwords == nil {
		return nil
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil // it holds texts only
	}
	return &hearingCorpus{Context: string(b)}
}

// merge makes the JSON of v with further members, each in the object of its path.
func merge(v any, extra map[string]any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil || len(extra) == 0 {
		return b, err
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	overlay(m, extra)
	return json.Marshal(m)
}

// additions is the member that holds JSON in a text. The settings may write it as an object.
const additions = "additions"

// overlay puts members over those of m, going into objects.
func overlay(m, extra map[string]any) {
	for name, value := range extra {
		inner, isObject := value.(map[string]any)
		if isObject && name == additions {
			if b, err := json.Marshal(inner); err == nil {
				m[name] = string(b)
				continue
			}
		}
		old, wasObject := m[name].(map[string]any)
		if isObject && wasObject {
			overlay(old, inner)
		} else {
			m[name] = value
		}
	}
}

// heard is an answer to sound.
type heard struct {
	Result  json.RawMessage `json:"result"` // an object, or a list of such
	Code    transport.Int   `json:"code"`
	Message string          `json:"message"`
	Error   string          `json:"error"`
}

// heardText is the text so far: of all, or, where that was asked for, of a sentence.
type heardText struct {
	Text       string `json:"text"`
	Utterances []struct {
		Text     string `json:"text"`
		Definite bool   `json:"definite"`
	} `json:"utterances"`
}

// parseHeard reads the text of an answer. definite says that its last sentence does not change any more.
func parseHeard(payload []byte) (words string, definite bool, err error) {
	if len(payload) == 0 {
		return "", false, nil
	}
	var h heard
	if err := transport.Decode(payload, &h); err != nil {
		return "", false, err
	}
	if h.Code != 0 && h.Code != codeOK && h.Code != oldHearOK || h.Error != "" {
		return "", false, volcframe.Refusal(uint32(h.Code), payload, "")
	}
	var all []heardText
	if len(h.Result) > 0 && h.Result[0] == '[' {
		_ = json.Unmarshal(h.Result, &all) // what is of another type counts as not there
	} else if len(h.Result) > 0 {
		all = make([]heardText, 1)
		_ = transport.Decode(h.Result, &all[0]) // likewise
	}
	for _, t := range all {
		whole := t.Text
		for _, u := range t.Utterances {
			if definite = u.Definite; t.Text == "" {
				whole = text.Join(whole, u.Text)
			}
		}
		words = text.Join(words, whole)
	}
	return words, definite, nil
}

// speaking is the message that begins the sound of a text.
type speaking struct {
	User      hearingUser `json:"user"`
	Event     int         `json:"event,omitempty"`
	Namespace string      `json:"namespace,omitempty"`
	Params    speechText  `json:"req_params"`
}

// speechText is a text, and how it is to be spoken.
type speechText struct {
	Text      string       `json:"text,omitempty"`
	Speaker   string       `json:"speaker,omitempty"`
	Audio     *speechAudio `json:"audio_params,omitempty"`
	Additions string       `json:"additions,omitempty"` // JSON in a text
}

type speechAudio struct {
	Format   string `json:"format"`
	Rate     int    `json:"sample_rate"`
	BitRate  int    `json:"bit_rate,omitempty"`
	Speed    int    `json:"speech_rate,omitempty"`
	Loudness int    `json:"loudness_rate,omitempty"`
}

// speechRate turns a speed, of which 1 is normal, into the service's −50 to 100.
func speechRate(speed float64) int {
	if speed <= 0 {
		return 0
	}
	return max(-50, min(100, int((speed-1)*100+0.5*sign(speed-1))))
}

func sign(v float64) float64 {
	if v < 0 {
		return -1
	}
	return 1
}
