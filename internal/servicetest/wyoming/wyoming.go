// Package wyoming is a fake of programs that speak the Wyoming protocol of Home
// Assistant, a recogniser and a voice in one, and of the HTTP server of Piper.
package wyoming

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

const (
	rate  = 22050                // Hz, of the voice
	piece = 2048                 // bytes of sound in an event: 1024 samples
	pause = 5 * time.Millisecond // between two events of sound
	most  = 1 << 20              // bytes of a header, data or payload that it takes
)

// Voice is the only voice. Language is that of the recogniser and of the voice.
const (
	Voice    = "zh_CN-huayan-medium"
	Language = "zh_CN"
)

// faults are those of both servers.
func faults(more ...servicetest.Fault) []servicetest.Fault {
	return append(more, servicetest.WrongVoice, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed,
		servicetest.Broken, servicetest.Huge, servicetest.Odd)
}

// New starts a server that hears and speaks by Wyoming. It wants no key.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{ready: make(chan struct{})}
	f.Server = servicetest.NewTCP(t, f.talk, faults(servicetest.WrongModel, servicetest.Stale, servicetest.Late)...)
	close(f.ready)
	return f.Server
}

// fake is a server.
type fake struct {
	*servicetest.Server
	ready chan struct{} // closed when Server is set
}

// event is a message of either side.
type event struct {
	Type    string
	Data    map[string]any
	Payload []byte
}

// header is the first line of an event.
type header struct {
	Type          string         `json:"type"`
	Data          map[string]any `json:"data,omitempty"`
	DataLength    int            `json:"data_length,omitempty"`
	PayloadLength int            `json:"payload_length,omitempty"`
	Version       string         `json:"version,omitempty"`
}

var errEvent = errors.New("not an event")

// read reads an event.
func read(r *bufio.Reader) (e event, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return e, err
	}
	var h header
	if json.Unmarshal(line, &h) != nil || h.Type == "" || h.DataLength < 0 || h.DataLength > most || h.PayloadLength < 0 || h.PayloadLength > most {
		return e, errEvent
	}
	e = event{Type: h.Type, Data: h.Data}
	block := make([]byte, h.DataLength)
	if _, err = io.ReadFull(r, block); err != nil {
		return e, err
	}
	if len(block) > 0 && json.Unmarshal(block, &e.Data) != nil {
		return e, errEvent
	}
	e.Payload = make([]byte, h.PayloadLength)
	_, err = io.ReadFull(r, e.Payload)
	return e, err
}

// write writes an event: its data in a block of its own as the official programs do, or
// in the first line.
func (e event) write(inline bool) []byte {
	h := header{Type: e.Type, PayloadLength: len(e.Payload), Version: "1.5.4"}
	var data []byte
	if inline {
		h.Data = e.Data
	} else if len(e.Data) > 0 {
		data = servicetest.JSON(e.Data).Data
		h.DataLength = len(data)
	}
	out := append(servicetest.JSON(h).Data, '\n')
	return append(append(out, data...), e.Payload...)
}

// talk is one connection.
type talk struct {
	*fake
	c     net.Conn
	r     *bufio.Reader
	fault servicetest.Fault
	began bool // a result was sent
	ear   servicetest.Ear
	rate  int
	text  string // to be spoken, as it comes
	flows bool   // it comes in pieces
	said  string // what was spoken before this
}

// talk answers events until the client has gone.
func (f *fake) talk(c net.Conn) {
	<-f.ready
	fault := f.Fault()
	t := &talk{fake: f, c: c, r: bufio.NewReaderSize(c, 64<<10), fault: fault}
	if fault == servicetest.Silent {
		_, _ = io.Copy(io.Discard, c)
		return
	}
	for {
		e, err := read(t.r)
		if err != nil {
			if errors.Is(err, errEvent) || errors.Is(err, bufio.ErrBufferFull) {
				t.say(failure("broken event", "protocol-error"))
			}
			return
		}
		f.Note(servicetest.Request{Method: e.Type, Path: string(servicetest.JSON(e.Data).Data)})
		if !t.take(e) {
			return
		}
	}
}

// failure is the event of an error.
func failure(text, code string) event {
	return event{Type: "error", Data: map[string]any{"text": text, "code": code}}
}

// take handles an event. It reports false when the connection is to be closed.
func (t *talk) take(e event) bool {
	switch e.Type {
	case "describe":
		return t.say(info())
	case "ping":
		return t.say(event{Type: "pong", Data: map[string]any{"text": e.Data["text"]}})
	case "transcribe", "audio-start", "audio-chunk", "audio-stop":
		return t.hear(e)
	case "synthesize":
		if t.flows {
			return true // for older servers
		}
		text, _ := e.Data["text"].(string)
		return t.voice(e.Data) && t.speak(text) && t.said != ""
	case "synthesize-start":
		t.flows, t.text = true, ""
		return t.voice(e.Data)
	case "synthesize-chunk":
		text, _ := e.Data["text"].(string)
		t.text += text
		return t.flows || t.refuse("no synthesize-start")
	case "synthesize-stop":
		flows := t.flows
		t.flows = false
		return flows && t.speak(t.text) && t.say(event{Type: "synthesize-stopped"})
	}
	return true // others are none of its business
}

// refuse sends an error, after which the connection is closed.
func (t *talk) refuse(text string) bool {
	t.say(failure(text, "ValueError"))
	return false
}

// info describes the server.
func info() event {
	program := map[string]any{"name": "fake", "installed": true, "attribution": map[string]string{"name": "n", "url": "u"}}
	part := func(name, list string, more map[string]any) []any {
		p := map[string]any{list: []any{map[string]any{"name": name, "languages": []string{Language, "en_US"}, "installed": true}}}
		for _, from := range []map[string]any{program, more} {
			maps.Copy(p, from)
		}
		return []any{p}
	}
	return event{Type: "info", Data: map[string]any{
		"asr": part("tiny", "models", map[string]any{"supports_transcript_streaming": true, "requires_external_vad": true}),
		"tts": part(Voice, "voices", map[string]any{"supports_synthesize_streaming": true}),
	}}
}

// hear takes sound until it ends, answers, and closes the connection.
func (t *talk) hear(e event) bool {
	number := func(key string) int {
		n, _ := e.Data[key].(float64)
		return int(n)
	}
	switch e.Type {
	case "transcribe":
		if name, _ := e.Data["name"].(string); t.fault == servicetest.WrongModel || name != "" && name != "tiny" {
			return t.refuse("unknown model " + name)
		}
	case "audio-start":
		if t.rate = number("rate"); t.rate != 16000 || number("width") != 2 || number("channels") != 1 {
			return t.refuse("unsupported format")
		}
		t.ear = servicetest.Ear{Rate: t.rate}
		return !t.odd() || t.say(event{Type: "voice-started", Data: map[string]any{"timestamp": 0}})
	case "audio-chunk":
		if t.rate == 0 || number("rate") != t.rate || number("width") != 2 || number("channels") != 1 || len(e.Payload)%2 != 0 {
			return t.refuse("audio-chunk without audio-start, or of another format")
		}
		t.ear.Hear(e.Payload)
	case "audio-stop":
		if t.fault == servicetest.Late {
			_, _ = io.Copy(io.Discard, t.c)
			return false
		}
		text := t.ear.Rest()
		ok := t.say(event{Type: "transcript-start", Data: map[string]any{"language": "zh"}})
		for rest := text; ok && rest != ""; {
			word, after, _ := strings.Cut(rest, " ")
			if after != "" {
				word += " "
			}
			ok = t.result(event{Type: "transcript-chunk", Data: map[string]any{"text": word}})
			rest = after
		}
		if ok && t.result(event{Type: "transcript", Data: map[string]any{"text": text, "language": "zh"}}) {
			t.say(event{Type: "transcript-stop"})
		}
		return false
	}
	return true
}

// voice says whether the voice that is asked for is there.
func (t *talk) voice(data map[string]any) bool {
	voice, _ := data["voice"].(map[string]any)
	if name, _ := voice["name"].(string); t.fault == servicetest.WrongVoice || name != "" && name != Voice {
		return t.refuse("unable to find voice: " + name)
	}
	return true
}

// speak sends the sound of a text.
func (t *talk) speak(text string) bool {
	format := map[string]any{"rate": rate, "width": 2, "channels": 1}
	if !t.say(event{Type: "audio-start", Data: format}) {
		return false
	}
	sound := servicetest.Speech(text, rate)
	if t.fault == servicetest.Stale && t.said != "" {
		sound = append(servicetest.Speech(t.said, rate), sound...)
	}
	for _, p := range servicetest.Pieces(sound, piece) {
		if t.odd() && !t.say(event{Type: "audio-chunk", Data: format}, event{Type: "unheard-of", Payload: []byte{1}}) {
			return false
		}
		if !t.result(event{Type: "audio-chunk", Data: format, Payload: p}) {
			return false
		}
		time.Sleep(pause)
	}
	t.said = text
	return t.say(event{Type: "audio-stop"})
}

func (t *talk) odd() bool { return t.fault == servicetest.Odd }

// say sends events that are no result.
func (t *talk) say(events ...event) bool {
	for _, e := range events {
		out := [][]byte{e.write(t.odd())}
		if t.odd() {
			out = servicetest.Pieces(out[0], 7)
		}
		for _, p := range out {
			if _, err := t.c.Write(p); err != nil {
				return false
			}
		}
	}
	return true
}

// result sends words or sound, the first as the fault has it.
func (t *talk) result(e event) bool {
	first := !t.began
	t.began = true
	if !first {
		return t.say(e)
	}
	switch t.fault {
	case servicetest.Slow:
		time.Sleep(300 * time.Millisecond)
	case servicetest.Broken:
		_, _ = io.WriteString(t.c, "{\"type\":\"audio-chunk\",\"payload_length\":-1}\n")
		_, _ = io.Copy(io.Discard, t.c)
		return false
	case servicetest.Huge:
		t.flood(e)
		return false
	case servicetest.Cut:
		t.say(e)
		servicetest.Drop(t.c)
		return false
	case servicetest.Closed:
		t.say(e)
		return false
	default:
	}
	return t.say(e)
}

// flood sends an event with a payload that does not end.
func (t *talk) flood(e event) {
	const endless = 80 << 20
	line := servicetest.JSON(header{Type: e.Type, Data: e.Data, PayloadLength: endless}).Data
	block := make([]byte, 64<<10)
	_, err := t.c.Write(append(line, '\n'))
	for sent := 0; sent < endless && err == nil; sent += len(block) {
		_, err = t.c.Write(block)
	}
}
