package iflytek

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	second  = 32000       // bytes of sound
	longest = 60 * second // of a session
	largest = 64 << 10    // bytes of sound in a message
)

// sound is a message of a client, in either dialect.
type sound struct {
	app     string
	status  *int
	audio   string
	wpgs    bool
	silence int // ms of silence that end the session
}

// result is a piece of text, in either dialect.
type result struct {
	SN   int              `json:"sn"`
	Last bool             `json:"ls"`
	PGS  string           `json:"pgs,omitempty"`
	RG   []int            `json:"rg,omitempty"`
	WS   []map[string]any `json:"ws"`
}

// dialect reads and writes the messages of one of the two services.
type dialect interface {
	// read takes a message; first ones hold the settings.
	read(l *servicetest.Line, first bool) (s sound, bad *failure, ok bool)
	say(r result, status int, odd bool) servicetest.Message
	fail(failure) servicetest.Message
}

// hearing is a recognition.
type hearing struct {
	line    *servicetest.Line
	as      dialect
	ear     servicetest.Ear
	setting sound
	bytes   int
	quiet   int // bytes of silence after what was said
	sn      int // of the last piece
	from    int // the first piece of the sentence that is spoken
	last    string
}

// hear recognises one utterance.
func hear(l *servicetest.Line, as dialect) {
	h := &hearing{line: l, as: as, from: 1, ear: servicetest.Ear{Rate: 16000, Parts: l.Fault() == servicetest.Parts}}
	bad := h.run()
	if bad == nil {
		return
	}
	if l.Say(as.fail(*bad)) {
		l.End(websocket.CloseNormalClosure, bad.words)
	}
}

// run takes messages until the session ends. It returns the failure that ends it.
func (h *hearing) run() *failure {
	for first := true; ; first = false {
		s, bad, ok := h.as.read(h.line, first)
		if bad != nil || !ok {
			return bad
		}
		if s.status == nil || first != (*s.status == 0) {
			return &badHandle
		}
		if first {
			if h.setting = s; s.silence == 0 {
				return &illegal
			}
			if bad := admit(s.app, h.line.Fault()); bad != nil {
				return bad
			}
		}
		pcm, err := base64.StdEncoding.DecodeString(s.audio)
		if err != nil {
			return &noBase64
		}
		if h.bytes += len(pcm); len(pcm) > largest || h.bytes > longest {
			return &tooLong
		}
		over := h.hear(pcm)
		if *s.status == 2 || over {
			return h.finish(*s.status == 2)
		}
	}
}

// hear takes sound and tells what was heard. It reports true when the session is to end.
func (h *hearing) hear(pcm []byte) bool {
	sentence, ended := h.ear.Hear(pcm)
	if servicetest.Loud(pcm) {
		h.quiet = 0
	} else if h.ear.Heard() {
		h.quiet += len(pcm)
	}
	if h.setting.wpgs && sentence != "" && sentence != h.last {
		h.last = sentence
		h.tell(sentence, 1)
	}
	if ended {
		if !h.setting.wpgs {
			h.tell(sentence, 1)
		}
		h.from, h.last = h.sn+1, ""
	}
	return h.quiet*1000/second > h.setting.silence || h.line.Fault() == servicetest.Ends && h.bytes > second/2
}

// tell sends a piece that replaces what was heard of the sentence.
func (h *hearing) tell(text string, status int) bool {
	h.sn++
	r := result{SN: h.sn, Last: status == 2, WS: []map[string]any{}}
	if h.from > 1 && text != "" && h.sn >= h.from {
		text = " " + text
	}
	for _, w := range words.FindAllString(text, -1) {
		r.WS = append(r.WS, map[string]any{"bg": 0, "cw": []map[string]any{{"w": w, "sc": 0}}})
	}
	if h.setting.wpgs {
		r.PGS = "apd"
		if h.sn > h.from {
			r.PGS, r.RG = "rpl", []int{h.from, h.sn - 1}
		}
	}
	return h.line.Result(h.as.say(r, status, h.line.Fault() == servicetest.Odd), broken)
}

// finish sends the last result. Sound that comes later is refused.
func (h *hearing) finish(asked bool) *failure {
	if asked && h.line.Fault() == servicetest.Late {
		h.line.Hold()
		return nil
	}
	text := h.ear.Rest()
	if !asked && h.line.Fault() == servicetest.Ends {
		text = h.last
	}
	if h.line.Fault() == servicetest.Odd && h.setting.wpgs && text != "" {
		h.tell(text, 1) // and the last piece is an empty one
		h.from, text = h.sn+1, ""
	}
	if !h.tell(strings.TrimSpace(text), 2) {
		return nil
	}
	if asked {
		h.line.End(websocket.CloseNormalClosure, "")
		return nil
	}
	if _, err := h.line.Next(Idle); err == nil {
		return &badHandle
	}
	h.line.End(websocket.CloseNormalClosure, "server read msg timeout")
	return nil
}

// classic is the dialect of IAT.
type classic struct{}

func (classic) read(l *servicetest.Line, first bool) (s sound, bad *failure, ok bool) {
	var m struct {
		Common struct {
			AppID string `json:"app_id"`
		}
		Business struct {
			Language, Domain, Accent, Dwa string
			VadEOS                        *int `json:"vad_eos"`
		}
		Data struct {
			Status                  *int
			Format, Encoding, Audio string
		}
	}
	if bad, ok = next(l, &m, timedOut); bad != nil || !ok {
		return s, bad, ok
	}
	s = sound{app: m.Common.AppID, status: m.Data.Status, audio: m.Data.Audio, wpgs: m.Business.Dwa == "wpgs", silence: 2000}
	if m.Business.VadEOS != nil {
		s.silence = *m.Business.VadEOS
	}
	switch {
	case !first:
	case m.Business.Language == "" || m.Business.Domain == "":
		return s, &missing, true
	case m.Data.Format != "audio/L16;rate=16000" || m.Data.Encoding != "raw":
		return s, &illegal, true
	}
	return s, nil, true
}

func (classic) say(r result, status int, odd bool) servicetest.Message {
	m := map[string]any{"code": 0, "message": "success", "sid": sid, "data": map[string]any{"status": status, "result": r}}
	if odd { // numbers may come as texts
		m["unheard_of"], m["code"], m["data"].(map[string]any)["status"] = []int{1}, "0", fmt.Sprint(status)
	}
	return servicetest.JSON(m)
}

func (classic) fail(f failure) servicetest.Message {
	return servicetest.JSON(map[string]any{"code": f.code, "message": f.words, "sid": sid, "data": nil})
}

// spark is the dialect of Spark IAT.
type spark struct{}

func (spark) read(l *servicetest.Line, first bool) (s sound, bad *failure, ok bool) {
	var m struct {
		Header struct {
			AppID  string `json:"app_id"`
			Status *int
		}
		Parameter struct {
			IAT *struct {
				Domain, Language, Accent, Dwa string
				EOS                           *int
			}
		}
		Payload struct {
			Audio struct {
				Encoding, Audio string
				SampleRate      int `json:"sample_rate"`
				Status          *int
			}
		}
	}
	if bad, ok = next(l, &m, timedOut); bad != nil || !ok {
		return s, bad, ok
	}
	audio, iat := m.Payload.Audio, m.Parameter.IAT
	s = sound{app: m.Header.AppID, status: m.Header.Status, audio: audio.Audio, silence: 6000}
	if audio.Status == nil || s.status == nil || *audio.Status != *s.status {
		return s, &illegal, true
	}
	if !first {
		return s, nil, true
	}
	if iat == nil || iat.Domain != "slm" || iat.Language == "" {
		return s, &missing, true
	}
	if audio.Encoding != "raw" || audio.SampleRate != 16000 {
		return s, &illegal, true
	}
	if s.wpgs = iat.Dwa == "wpgs"; iat.EOS != nil {
		if s.silence = *iat.EOS; s.silence < 600 || s.silence > 60000 {
			return s, &illegal, true
		}
	}
	return s, nil, true
}

func (spark) say(r result, status int, odd bool) servicetest.Message {
	text := base64.StdEncoding.EncodeToString(servicetest.JSON(r).Data)
	m := map[string]any{
		"header":  map[string]any{"code": 0, "message": "success", "sid": sid, "status": status},
		"payload": map[string]any{"result": map[string]any{"compress": "raw", "encoding": "utf8", "format": "json", "seq": r.SN, "status": status, "text": text}},
	}
	if odd {
		m["unheard_of"], m["header"].(map[string]any)["status"] = nil, fmt.Sprint(status)
	}
	return servicetest.JSON(m)
}

func (spark) fail(f failure) servicetest.Message {
	return servicetest.JSON(map[string]any{"header": map[string]any{"code": f.code, "message": f.words, "sid": sid}})
}
