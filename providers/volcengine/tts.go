package volcengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/synthesis"
	"xiaozhi/providers/transport"
	"xiaozhi/providers/volcframe"
)

const (
	bidirection    = "bidirection"    // a session for each sentence on a socket that is kept
	unidirectional = "unidirectional" // a message for each
	lines          = "http"           // a plain request for each
	old            = "v1"             // the same of the old service
	speakPath      = "/api/v3/tts/"
	speakRate      = 24000 // Hz
	speakBits      = 64000 // bit/s of compressed sound: the service's own choice may be 8000
	firstTime      = 5 * time.Second
	longestText    = 1024 // characters, and bytes of the old service
	keepTime       = 50   // seconds in which a connection waits for the next sentence
	defaultVoice   = "zh_female_vv_uranus_bigtts"
)

// voices are the voices of a section. A connection belongs to one resource, and so does a
// voice: there is a driver for each resource.
type voices struct {
	section service.Section
	model   string // a resource for all voices; "": by the voice
	mode    string
	client  *http.Client // of plain requests; nil: there are none
	first   time.Duration
	drivers map[string]*synthesis.Voice
}

// newTTS makes the voices of a section.
func newTTS(s service.Section) (providers.TTS, error) {
	v := &voices{
		section: s, model: resource(s, service.TTS), mode: s.Text("tts_mode", bidirection),
		first: cmp.Or(s.Timeouts.First, firstTime), drivers: map[string]*synthesis.Voice{},
	}
	keep := time.Duration(s.Number("keep", keepTime)) * time.Second
	if v.mode == lines || v.mode == old {
		keep = 0
		if v.client = s.Client; v.client == nil {
			var err error
			if v.client, err = transport.NewHTTPClient(transport.HTTPOptions{Connect: s.Timeouts.Connect, Proxy: s.Proxy, Careful: s.Careful}); err != nil {
				return nil, err
			}
		}
	}
	for _, resource := range []string{cmp.Or(v.model, speaks2), speaks1, clones2} {
		c, err := newClient(s, resource)
		if err != nil {
			return nil, err
		}
		v.drivers[resource] = synthesis.New(synthesis.Options{
			Account: c.dialer.Account(), Tries: s.Tries(), Dial: func(ctx context.Context) (synthesis.Conn, error) { return v.dial(ctx, c) },
			Format: decoded(v.format()), Rate: v.rate(), Text: v.longest(), Keep: keep, Idle: 1,
			First: v.first, Next: s.Timeouts.Next,
		})
	}
	return v, nil
}

// Name returns the section's name.
func (v *voices) Name() string { return v.section.Name }

// Retire closes the connections that are kept and keeps none from now on.
func (v *voices) Retire() {
	for _, d := range v.drivers {
		d.Retire()
	}
}

// Close is Retire, for the end of the program.
func (v *voices) Close() error {
	v.Retire()
	return nil
}

// Warm gets a connection ready for the voice that speaks as a rule.
func (v *voices) Warm(ctx context.Context) error {
	return v.driver(v.voice(providers.TTSRequest{})).Warm(ctx)
}

// Synthesize streams the sound of one sentence.
func (v *voices) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	req.Voice = v.voice(req)
	return v.driver(req.Voice).Synthesize(ctx, req)
}

// voice returns the voice of a request.
func (v *voices) voice(req providers.TTSRequest) string {
	if v.mode == old {
		return v.section.Voice(req, oldVoice)
	}
	return v.section.Voice(req, defaultVoice)
}

// driver returns the driver of the resource that a voice belongs to.
func (v *voices) driver(voice string) *synthesis.Voice {
	return v.drivers[cmp.Or(v.model, resourceOf(voice))]
}

// resourceOf returns the resource that a voice belongs to.
func resourceOf(voice string) string {
	switch {
	case strings.HasPrefix(voice, "S_"): // one that was cloned
		return clones2
	case strings.Contains(voice, "_uranus_") || strings.HasPrefix(voice, "saturn_"):
		return speaks2
	}
	return speaks1
}

// format is the service's name of the format of the sound.
func (v *voices) format() string {
	switch v.section.Format {
	case "mp3":
		return "mp3"
	case "opus", "ogg_opus":
		return "ogg_opus"
	}
	return "pcm"
}

// decoded is the format as our decoder calls it.
func decoded(format string) string { return strings.TrimPrefix(format, "ogg_") }

func (v *voices) rate() int { return cmp.Or(v.section.Rate, speakRate) }

// longest bounds the text of a request: the service refuses more.
func (v *voices) longest() sound.Longest {
	if v.mode == old {
		return sound.Longest{Most: longestText, Size: utf8.RuneLen}
	}
	return sound.Longest{Most: longestText}
}

// params say how a text is to be spoken.
func (v *voices) params(voice string) speechText {
	a := &speechAudio{Format: v.format(), Rate: v.rate(), Speed: speechRate(v.section.Speed), Loudness: int(v.section.Within("loudness", 0, -50, 100))}
	if a.Format != "pcm" {
		a.BitRate = speakBits
	}
	return speechText{Speaker: voice, Audio: a}
}

// message makes the JSON of a message about a text, with what the settings add.
func (v *voices) message(event int, params speechText, extra map[string]any) ([]byte, error) {
	m := speaking{User: hearingUser{UID: cmp.Or(v.section.ID, "xiaozhi")}, Event: event, Params: params}
	if event != 0 {
		m.Namespace = "BidirectionalTTS"
	}
	return merge(m, extra)
}

// dial opens a connection that is ready for a sentence.
func (v *voices) dial(ctx context.Context, c *client) (synthesis.Conn, error) {
	if v.client != nil {
		return v.post(ctx, c), nil
	}
	path, one := speakPath+bidirection, v.mode == unidirectional
	if one {
		path = speakPath + "unidirectional/stream"
	}
	socket, err := c.dial(ctx, path)
	if err != nil {
		return nil, err
	}
	l := &voiceLine{Socket: socket, v: v, one: one}
	if !one {
		err = l.connect()
	}
	if err != nil {
		socket.Close()
		return nil, err
	}
	return l, nil
}

// voiceLine is a connection of the voices.
type voiceLine struct {
	*transport.Socket
	v       *voices
	one     bool // a message holds the whole text
	req     providers.TTSRequest
	session string // that speaks; "" where a message holds the whole text: the service names it
}

// connect says hello.
func (l *voiceLine) connect() error {
	if err := l.WriteBinary(volcframe.Frame{Kind: volcframe.TypeRequest, Flags: volcframe.FlagEvent, JSON: true, Event: volcframe.EventStartConnection, Payload: []byte("{}")}.Bytes()); err != nil {
		return err
	}
	for {
		f, err := l.next(l.v.first)
		switch {
		case err != nil:
			return err
		case f.Event == volcframe.EventConnectionStarted:
			return nil
		}
	}
}

// next returns the next frame. Events that say that something failed are a [*transport.Refusal].
func (l *voiceLine) next(within time.Duration) (volcframe.Frame, error) {
	f, err := volcframe.Read(l.Socket, within)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && strings.Contains(refused.Text, "non-exist session") {
		return f, fmt.Errorf("%w: %w", synthesis.ErrForgotten, refused)
	}
	if err != nil {
		return f, err
	}
	if f.Event == volcframe.EventConnectionFailed || f.Event == volcframe.EventSessionFailed && l.mine(f) {
		return f, volcframe.Refusal(0, f.Payload, l.Header().Get(volcframe.LogHeader))
	}
	return f, nil
}

// mine reports whether a frame is of the sentence that is spoken. Where a message holds the
// whole text, nothing of another can come: the next one is sent when all of it has.
func (l *voiceLine) mine(f volcframe.Frame) bool {
	return l.session == "" || f.ID == "" || f.ID == l.session
}

// send sends an event of the session.
func (l *voiceLine) send(event int, payload []byte) error {
	return l.WriteBinary(volcframe.Frame{Kind: volcframe.TypeRequest, Flags: volcframe.FlagEvent, JSON: true, Event: int32(event), ID: l.session, Payload: payload}.Bytes())
}

// Say begins a sentence.
func (l *voiceLine) Say(req providers.TTSRequest) error {
	l.req = req
	params := l.v.params(req.Voice)
	if l.one {
		params.Text = req.Text
		b, err := l.v.message(0, params, l.v.section.Extra)
		if err != nil {
			return err
		}
		return l.WriteBinary(volcframe.Frame{Kind: volcframe.TypeRequest, JSON: true, Payload: b}.Bytes())
	}
	l.session = volcframe.NewID() // one is never used again
	b, err := l.v.message(volcframe.EventStartSession, params, l.v.section.Extra)
	if err != nil {
		return err
	}
	return l.send(volcframe.EventStartSession, b)
}

// text sends the text, which may not come before the session has started, and its end.
func (l *voiceLine) text() error {
	b, err := l.v.message(volcframe.EventTaskRequest, speechText{Text: l.req.Text}, nil)
	if err != nil {
		return err
	}
	return errors.Join(l.send(volcframe.EventTaskRequest, b), l.send(volcframe.EventFinishSession, []byte("{}")))
}

// Receive returns more of the sound.
func (l *voiceLine) Receive(within time.Duration) ([]byte, error) {
	f, err := l.next(within)
	if err != nil {
		return nil, err
	}
	if !l.mine(f) {
		return nil, nil // of the sentence before
	}
	switch f.Event {
	case volcframe.EventSessionStarted:
		if !l.one {
			return nil, l.text()
		}
	case volcframe.EventSessionFinished, volcframe.EventSessionCanceled:
		return nil, io.EOF
	case volcframe.EventTTSResponse:
		if f.Kind == volcframe.TypeSound {
			return f.Payload, nil
		}
	}
	return nil, nil
}

// Cancel gives the connection up: all of the text was sent, and what is left of its sound
// would have to be waited for.
func (l *voiceLine) Cancel() bool { return false }
