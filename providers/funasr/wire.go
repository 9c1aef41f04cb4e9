package funasr

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// opening is the first message. Without all of chunk_size the streaming server never
// answers, and says nothing of it.
type opening struct {
	Mode      string `json:"mode"`
	ChunkSize [3]int `json:"chunk_size"`     // units of 60 ms: look back, chunk, look ahead
	Interval  int    `json:"chunk_interval"` // by which the Python server knows the length of a message
	Name      string `json:"wav_name"`
	Format    string `json:"wav_format"`
	Rate      int    `json:"audio_fs"`
	Speaking  bool   `json:"is_speaking"`
	Hotwords  string `json:"hotwords,omitempty"` // JSON in a text; an object makes the server deaf
	ITN       bool   `json:"itn"`
	Lang      string `json:"svs_lang,omitempty"`
	LangITN   bool   `json:"svs_itn"`
}

// closing is the last message. is_end asks newer Python servers to say when all is told.
type closing struct {
	Speaking bool `json:"is_speaking"`
	End      bool `json:"is_end"`
}

// message is an answer of any of the three servers.
type message struct {
	Mode  string          `json:"mode"`
	Text  string          `json:"text"`
	Name  string          `json:"wav_name"`
	Final bool            `json:"is_final"`
	End   bool            `json:"is_end"`
	Error json.RawMessage `json:"error"`
	Slice json.RawMessage `json:"slice_type"` // the C++ streaming server's own
	Index json.RawMessage `json:"index"`      // likewise
}

// tags are what SenseVoice puts before a text: language, mood, event, form.
var tags = regexp.MustCompile(`<\|([^|<>]{0,32})\|>`)

// parse reads an answer and splits off the language that its tags name.
func parse(b []byte) (m message, language string, err error) {
	if err := transport.Decode(b, &m); err != nil {
		if strings.HasPrefix(string(b), "ERROR") {
			return m, "", transport.Refused(providers.BadRequest, "", string(b))
		}
		return m, "", err
	}
	if strings.HasPrefix(m.Text, "ERROR.") {
		return m, "", transport.Refused(providers.BadRequest, "", m.Text)
	}
	if len(m.Error) > 0 && string(m.Error) != "null" && string(m.Error) != `""` {
		return m, "", transport.Refused(providers.Unavailable, "", strings.Trim(string(m.Error), `"`))
	}
	for _, t := range tags.FindAllStringSubmatch(m.Text, -1) {
		if l, err := text.ParseLang(t[1]); err == nil && len(t[1]) <= 3 {
			language = cmp.Or(language, string(l))
		}
	}
	m.Text = tags.ReplaceAllString(m.Text, "")
	return m, language, nil
}

// dialect is the server that answers, as its behaviour shows it.
type dialect int

const (
	unknown dialect = iota
	recent          // C++ of any age or Python of 2026: is_final does not stand in what is said of a sentence that goes on
	cpp             // C++ 2pass: is_final answers our end mark, and nothing else
	newer           // Python: is_final ends each sentence; is_end tells that all is told
	older           // Python before 2026: is_final stands in all that comes before our end mark, and in nothing after it
)

// outcome says what a message means for the utterance.
type outcome int

const (
	more   outcome = iota // another one will come
	hardly                // it may have been the last one: if none comes for long
	maybe                 // it was the last one, unless another comes at once
	last                  // it was the last one
)

// dialogue makes one text of the answers to an utterance. Its zero value is ready.
type dialogue struct {
	dialect dialect
	online  bool   // nothing is corrected: the C++ server has no other way to say the last words
	firm    bool   // is_final stood in such words before
	before  string // sentences that have ended
	pending string // increments of the one that is spoken
}

// add takes an answer. over says that our end mark has gone out. It returns the words so
// far and whether they are all.
func (d *dialogue) add(m message, over bool) (words string, o outcome) {
	d.learn(m, over)
	d.firm = d.firm || m.Final && m.growing()
	switch {
	case m.growing():
		d.pending += m.Text
	case m.Text != "":
		d.before, d.pending = text.Join(d.before, m.Text), ""
	case m.Mode == "2pass-offline":
		d.pending = ""
	}
	return text.Join(d.before, d.pending), d.judge(m, over)
}

// growing reports whether a message is about a sentence that is still spoken. The C++ server
// calls it so in the mode online too.
func (m message) growing() bool { return m.Mode == "2pass-online" || m.Mode == "online" }

// learn tells the servers apart. What they do says more than what they add: others have
// taken over fields of the C++ server.
func (d *dialogue) learn(m message, over bool) {
	sentence := m.Mode == "2pass-offline"
	switch {
	case m.End:
		d.dialect = newer
	case m.Final && m.growing() && (!over || !d.online || d.firm):
		d.dialect = older
	case !over && m.Final && sentence && d.dialect != older:
		d.dialect = newer
	case d.dialect <= recent && (len(m.Slice) > 0 || len(m.Index) > 0):
		d.dialect = cpp
	case !over && m.growing() && (d.dialect == unknown || d.dialect == older):
		d.dialect = recent
	}
}

// judge says whether an answer is the last one.
func (d *dialogue) judge(m message, over bool) outcome {
	sentence := m.Mode == "2pass-offline"
	switch {
	case !over:
		return more
	case m.End || m.Mode == "offline", m.Final && d.dialect == cpp, m.Final && !sentence && !m.growing():
		return last
	case m.Final && m.growing():
		return map[dialect]outcome{unknown: maybe, recent: last}[d.dialect] // in the mode online
	case m.Final:
		return maybe
	case sentence && d.dialect == recent:
		return hardly
	case sentence && d.dialect != cpp:
		return maybe
	}
	return more
}
