package iflytek

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	pause     = 5 * time.Millisecond // between two pieces of sound
	longText  = 8000                 // bytes, of the online voices
	longTexts = 64 << 10             // bytes, of the others
	beginsAt  = 11                   // characters, when a super-humanoid voice begins to speak
)

// say sends the sound of a text in pieces; last ends the speech with the last piece, or
// after it with an empty one.
func say(l *servicetest.Line, coding, text string, rate, status int, last bool, message func(audio string, status int) servicetest.Message) bool {
	sound, size := servicetest.MP3(text), 1440
	if coding == "raw" {
		sound, size = servicetest.Speech(text, rate), rate/8
	}
	odd := l.Fault() == servicetest.Odd
	if odd {
		size = 1001
		if !l.Say(message("", status)) {
			return false
		}
	}
	pieces := servicetest.Pieces(sound, size)
	for i, p := range pieces {
		now := max(status, 1)
		if last && !odd && i == len(pieces)-1 {
			now = 2
		}
		if !l.Result(message(base64.StdEncoding.EncodeToString(p), now), broken) {
			return false
		}
		if !l.Pause(pause) {
			return false
		}
	}
	return !last || !odd && len(pieces) > 0 || l.Say(message("", 2))
}

// rateOf reads the rate of a format such as audio/L16;rate=16000, or gives 0.
func rateOf(auf string) int {
	switch auf {
	case "", "audio/L16;rate=16000":
		return 16000
	case "audio/L16;rate=8000":
		return 8000
	}
	return 0
}

// speakOnline speaks one text.
func speakOnline(l *servicetest.Line) {
	var m struct {
		Common struct {
			AppID string `json:"app_id"`
		}
		Business struct {
			Aue, Auf, Vcn, Tte   string
			Sfl                  int
			Speed, Volume, Pitch *int
		}
		Data struct {
			Status int
			Text   string
		}
	}
	bad, ok := next(l, &m, timedOut)
	if !ok {
		return
	}
	if bad == nil {
		bad = admit(m.Common.AppID, l.Fault())
	}
	text, err := base64.StdEncoding.DecodeString(m.Data.Text)
	b := m.Business
	rate := rateOf(b.Auf)
	switch {
	case bad != nil:
	case err != nil:
		bad = &noBase64
	case b.Vcn == "" || m.Data.Status != 2:
		bad = &missing
	case l.Fault() == servicetest.WrongVoice:
		bad = &unlicensed
	case b.Aue != "raw" && b.Aue != "lame", rate == 0, outside(b.Speed), outside(b.Volume), outside(b.Pitch), b.Tte != "" && !utf8Coded(b.Tte):
		bad = &illegal
	case len(text) == 0 || len(text) > longText || !utf8.Valid(text):
		bad = &tooMuchText
	}
	if bad != nil {
		if l.Say(classic{}.fail(*bad)) {
			l.End(websocket.CloseNormalClosure, bad.words)
		}
		return
	}
	message := func(audio string, status int) servicetest.Message {
		return servicetest.JSON(map[string]any{
			"code": 0, "message": "success", "sid": sid, "data": map[string]any{"audio": audio, "ced": "1", "status": status},
		})
	}
	if say(l, b.Aue, string(text), rate, 1, true, message) {
		l.End(websocket.CloseNormalClosure, "")
	}
}

// outside says whether a setting of 0 to 100 is none.
func outside(v *int) bool { return v != nil && (*v < 0 || *v > 100) }

// humanoid is a message to the super-humanoid voices.
type humanoid struct {
	Header struct {
		AppID  string `json:"app_id"`
		Status *int
	}
	Parameter struct {
		TTS *struct {
			Vcn                  string
			Speed, Volume, Pitch *int
			Audio                struct {
				Encoding   string
				SampleRate int `json:"sample_rate"`
			}
		}
	}
	Payload struct {
		Text struct {
			Encoding, Text string
			Status         *int
			Seq            *int
		}
	}
}

// refusal says what is wrong with a message, if anything: the nth.
func (m humanoid) refusal(n int, fault servicetest.Fault) *failure {
	tts, text := m.Parameter.TTS, m.Payload.Text
	switch {
	case m.Header.Status == nil || text.Status == nil || *m.Header.Status != *text.Status:
		return &missing
	case n > 0 && (*m.Header.Status == 0 || text.Seq != nil && *text.Seq != n):
		return &illegal
	case n > 0:
		return nil
	case tts == nil || tts.Vcn == "":
		return &missing
	case fault == servicetest.WrongVoice:
		return &unlicensed
	case tts.Audio.Encoding != "raw" && tts.Audio.Encoding != "lame" || outside(tts.Speed) || outside(tts.Volume) || outside(tts.Pitch):
		return &illegal
	}
	switch tts.Audio.SampleRate {
	case 0, 8000, 16000, 24000:
		return admit(m.Header.AppID, fault)
	}
	return &illegal
}

// piece is the text of a message that follows so many bytes.
func (m humanoid) piece(before int) (text []byte, bad *failure) {
	text, err := base64.StdEncoding.DecodeString(m.Payload.Text.Text)
	switch {
	case err != nil:
		return nil, &noBase64
	case before+len(text) > longTexts || !utf8.Valid(text):
		return nil, &tooMuchText
	}
	return text, nil
}

// speakHumanoid speaks a text that comes in pieces.
func speakHumanoid(l *servicetest.Line) {
	fail := func(f failure) {
		if l.Say(spark{}.fail(f)) {
			l.End(websocket.CloseNormalClosure, f.words)
		}
	}
	var text, coding string
	rate, seq, total, status := 24000, 0, 0, 0
	message := func(audio string, status int) servicetest.Message {
		seq++
		return servicetest.JSON(map[string]any{
			"header":  map[string]any{"code": 0, "message": "success", "sid": sid, "status": status},
			"payload": map[string]any{"audio": map[string]any{"audio": audio, "encoding": coding, "sample_rate": rate, "status": status, "seq": seq}},
		})
	}
	for n := 0; ; n++ {
		var m humanoid
		bad, ok := next(l, &m, quiet)
		if !ok {
			return
		}
		if bad == nil {
			bad = m.refusal(n, l.Fault())
		}
		piece, badText := m.piece(total)
		if bad == nil {
			bad = badText
		}
		if bad != nil {
			fail(*bad)
			return
		}
		total += len(piece)
		if n == 0 {
			if coding = m.Parameter.TTS.Audio.Encoding; m.Parameter.TTS.Audio.SampleRate > 0 {
				rate = m.Parameter.TTS.Audio.SampleRate
			}
		}
		text += string(piece)
		last := *m.Header.Status == 2
		if last || utf8.RuneCountInString(text) >= beginsAt {
			if !say(l, coding, text, rate, status, last, message) {
				return
			}
			text, status = "", 1
		}
		if last {
			l.End(websocket.CloseNormalClosure, "")
			return
		}
	}
}
