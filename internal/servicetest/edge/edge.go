// Package edge is a fake of the voices that the browser Edge reads pages aloud with.
package edge

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	base      = "/consumer/speech/synthesize/readaloud/"
	trusted   = "6A5AA1D4EAFF4E9FB37E23D68491D6F4"
	origin    = "chrome-extension://jdiccldimpdaibmpdkjnbmckianbfold"
	idle      = 2 * time.Second // until a socket closes on which nothing is said; the service waits for 30 s
	longest   = 4096            // bytes of a text
	seconds   = 11644473600     // from the year 1601 to 1970
	padding   = "X-RequestId:%s\r\nContent-Type:%s\r\nPath:%s\r\n\r\n"
	onlyMP3   = "audio-24khz-48kbitrate-mono-mp3"
	betterMP3 = "audio-24khz-96kbitrate-mono-mp3"
	webm      = "webm-24khz-16bit-mono-opus"
)

// New starts the service.
func New(tb testing.TB) *servicetest.Server {
	tb.Helper()
	f := &fake{t: tb, ids: map[string]bool{}}
	f.Server = servicetest.New(tb, f.serve, servicetest.WrongKey, servicetest.WrongVoice, servicetest.ClockAhead, servicetest.Slow, servicetest.Silent,
		servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd, servicetest.Stale)
	return f.Server
}

// fake is the service.
type fake struct {
	*servicetest.Server
	t testing.TB

	mu  sync.Mutex
	ids map[string]bool // of connections and requests
}

// fresh reports whether 32 digits were never used before.
func (f *fake) fresh(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	ok := digits.MatchString(id) && !f.ids[id]
	f.ids[id] = true
	return ok
}

var (
	digits  = regexp.MustCompile(`^[0-9A-Fa-f]{32}$`)
	cookie  = regexp.MustCompile(`(^|; *)muid=[0-9A-F]{32}(;|$)`)
	version = regexp.MustCompile(`^1-1[3-9]\d\.\d+\.\d+\.\d+$`)
	stamp   = regexp.MustCompile(`^[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT\+0000 \(Coordinated Universal Time\)Z?$`)
)

// Token is the token of a moment.
func Token(at time.Time) string {
	ticks := at.Unix() + seconds
	ticks -= ticks % 300
	return fmt.Sprintf("%X", sha256.Sum256(fmt.Appendf(nil, "%d0000000%s", ticks, trusted)))
}

// allowed reports whether a request says what the browser says. A token counts for its
// five minutes, those before and those after.
func (f *fake) allowed(r *http.Request) bool {
	q := r.URL.Query()
	now, ok := f.Now(), false
	for d := -5 * time.Minute; d <= 5*time.Minute; d += 5 * time.Minute {
		ok = ok || q.Get("Sec-MS-GEC") == Token(now.Add(d))
	}
	return ok && version.MatchString(q.Get("Sec-MS-GEC-Version")) && strings.Contains(r.UserAgent(), " Edg/") && f.Fault() != servicetest.WrongKey
}

// serve answers requests.
func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", f.Now().UTC().Format(http.TimeFormat))
	q := r.URL.Query()
	switch r.URL.Path {
	case base + "edge/v1":
		if !f.allowed(r) || q.Get("TrustedClientToken") != trusted || r.Header.Get("Origin") != origin || !cookie.MatchString(r.Header.Get("Cookie")) || !f.fresh(q.Get("ConnectionId")) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		f.session(w, r)
	case base + "voices/list":
		if !f.allowed(r) || q.Get("trustedclienttoken") != trusted && q.Get("TrustedClientToken") != trusted {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		f.Send(w, r, f.Fault(), servicetest.Reply{Type: "application/json", Body: []byte(voices), Broken: []byte("[{")})
	default:
		http.NotFound(w, r)
	}
}

const voices = `[{"Name":"Microsoft Server Speech Text to Speech Voice (zh-CN, XiaoxiaoNeural)","ShortName":"zh-CN-XiaoxiaoNeural","Gender":"Female","Locale":"zh-CN","SuggestedCodec":"audio-24khz-48kbitrate-mono-mp3","FriendlyName":"Microsoft Xiaoxiao Online (Natural) - Chinese (Mainland)","Status":"GA","VoiceTag":{"ContentCategories":["News"],"VoicePersonalities":["Warm"]}},
{"Name":"Microsoft Server Speech Text to Speech Voice (en-US, AriaNeural)","ShortName":"en-US-AriaNeural","Gender":"Female","Locale":"en-US","SuggestedCodec":"audio-24khz-48kbitrate-mono-mp3","FriendlyName":"Microsoft Aria Online (Natural) - English (United States)","Status":"GA","VoiceTag":{"ContentCategories":["News"],"VoicePersonalities":["Confident"]}}]`

// session is one socket.
type session struct {
	*servicetest.Line
	f      *fake
	format string
	before string // the request before
}

// session serves a socket: the settings, and texts one after the other.
func (f *fake) session(w http.ResponseWriter, r *http.Request) {
	l, ok := f.Line(w, r, nil)
	if !ok {
		return
	}
	defer l.Close()
	s := &session{Line: l, f: f}
	for {
		m, err := l.Next(idle)
		if err != nil {
			if errors.Is(err, servicetest.ErrIdle) {
				l.End(websocket.CloseNormalClosure, "")
			}
			return
		}
		head, body, found := strings.Cut(string(m.Data), "\r\n\r\n")
		fields := map[string]string{}
		for line := range strings.SplitSeq(head, "\r\n") {
			name, value, _ := strings.Cut(line, ":")
			fields[name] = value
		}
		if m.Type != websocket.TextMessage || !found || !stamp.MatchString(fields["X-Timestamp"]) {
			l.End(websocket.CloseInvalidFramePayloadData, "Invalid message")
			return
		}
		switch fields["Path"] {
		case "speech.config":
			ok = s.config(body)
		case "ssml":
			ok = s.speak(fields, body)
		default:
			ok = true
		}
		if !ok {
			return
		}
	}
}

// config takes the settings.
func (s *session) config(body string) bool {
	var c struct {
		Context struct {
			Synthesis struct {
				Audio struct {
					Metadata struct {
						Sentence string `json:"sentenceBoundaryEnabled"`
						Word     string `json:"wordBoundaryEnabled"`
					} `json:"metadataoptions"`
					Format string `json:"outputFormat"`
				} `json:"audio"`
			} `json:"synthesis"`
		} `json:"context"`
	}
	err := json.Unmarshal([]byte(body), &c)
	s.format = c.Context.Synthesis.Audio.Format
	if err != nil || s.format != onlyMP3 && s.format != betterMP3 && s.format != webm {
		s.End(websocket.CloseInvalidFramePayloadData, "Unsupported output format")
		return false
	}
	return true
}

// ssml is the only form of a text that the service speaks.
type ssml struct {
	XMLName xml.Name `xml:"http://www.w3.org/2001/10/synthesis speak"`
	Version string   `xml:"version,attr"`
	Lang    string   `xml:"lang,attr"`
	Voices  []struct {
		Name    string `xml:"name,attr"`
		Prosody []struct {
			Pitch  string `xml:"pitch,attr"`
			Rate   string `xml:"rate,attr"`
			Volume string `xml:"volume,attr"`
			Text   string `xml:",chardata"`
			More   []any  `xml:",any"`
			Raw    string `xml:",innerxml"`
		} `xml:"prosody"`
	} `xml:"voice"`
}

var (
	percent = regexp.MustCompile(`^[+-]\d+%$`)
	hertz   = regexp.MustCompile(`^[+-]\d+Hz$`)
	voice   = regexp.MustCompile(`^([a-z]{2,3}-[A-Za-z-]+Neural|Microsoft Server Speech Text to Speech Voice \([a-z]{2,3}-[A-Z].*, \w+Neural\))$`)
)

// read returns the text of a document, or "" if it is one that the service does not speak.
func (s *session) read(body string) string {
	var d ssml
	if xml.Unmarshal([]byte(body), &d) != nil || d.Version != "1.0" || d.Lang == "" || len(d.Voices) != 1 || len(d.Voices[0].Prosody) != 1 {
		return ""
	}
	v, p := d.Voices[0], d.Voices[0].Prosody[0]
	if !voice.MatchString(v.Name) || !hertz.MatchString(p.Pitch) || !percent.MatchString(p.Rate) || !percent.MatchString(p.Volume) ||
		strings.Contains(p.Raw, "<") || len(p.Raw) > longest || s.Fault() == servicetest.WrongVoice {
		return ""
	}
	return strings.TrimSpace(p.Text)
}

// speak answers a text.
func (s *session) speak(fields map[string]string, body string) bool {
	id := fields["X-RequestId"]
	if s.format == "" || !s.f.fresh(id) || fields["Content-Type"] != "application/ssml+xml" {
		s.End(websocket.CloseInvalidFramePayloadData, "Invalid request")
		return false
	}
	if s.Fault() == servicetest.Stale && s.before != "" && !s.sound(s.before, servicetest.MP3("stale")) {
		return false
	}
	s.before = id
	if !s.text(id, "turn.start", `{"context":{"serviceTag":"a0b1"}}`) || !s.text(id, "response", `{"context":{"serviceTag":"a0b1"},"audio":{"type":"inline","streamId":"S1"}}`) {
		return false
	}
	if s.Fault() == servicetest.Odd && !s.text(id, "turn.hummed", `{"x":1}`) {
		return false
	}
	text := s.read(body)
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) && !s.answer(id, text) {
		return false
	}
	return s.text(id, "turn.end", "{}")
}

// answer sends the sound of a text, and where its sentence was.
func (s *session) answer(id, text string) bool {
	sound, kind := servicetest.MP3(text), "audio/mpeg"
	if s.format == webm {
		sound, kind = matroska(servicetest.Packets(s.f.t, text, 24000, 20*time.Millisecond)), "audio/webm; codec=opus"
	}
	for i, p := range servicetest.Pieces(sound, 701) {
		if !s.Result(servicetest.Binary(frame(id, "Content-Type:"+kind+"\r\nX-StreamId:S1\r\n", p)), servicetest.Binary([]byte{0xFF, 0xFF, 'X'})) {
			return false
		}
		if i == 0 && !s.text(id, "audio.metadata", `{"Metadata":[{"Type":"SentenceBoundary","Data":{"Offset":500000,"Duration":5000000,"text":{"Text":"a","Length":1,"BoundaryType":"SentenceBoundary"}}}]}`) {
			return false
		}
	}
	return s.Say(servicetest.Binary(frame(id, "X-StreamId:S1\r\n", nil)))
}

// sound sends sound alone.
func (s *session) sound(id string, sound []byte) bool {
	return s.Say(servicetest.Binary(frame(id, "Content-Type:audio/mpeg\r\nX-StreamId:S1\r\n", sound)))
}

// text sends a message of text.
func (s *session) text(id, path, body string) bool {
	return s.Say(servicetest.Text(fmt.Sprintf(padding, id, "application/json; charset=utf-8", path) + body))
}

// frame is a message with sound: the length of its head, the head, the sound.
func frame(id, more string, sound []byte) []byte {
	head := "X-RequestId:" + id + "\r\n" + more + "Path:audio\r\n"
	return append(append(binary.BigEndian.AppendUint16(nil, uint16(len(head))), head...), sound...)
}
