package dashscope

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// silence is the pause in ms after which the service ends a sentence by itself: its
// longest, for we decide when an utterance ends.
const silence = 6000

func newASR(s service.Section) (providers.ASR, error) {
	at, err := newSite(s)
	if err != nil {
		return nil, err
	}
	model := s.Model(service.ASR, hearingModel)
	dial := func(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
		return at.listen(ctx, model, req)
	}
	if strings.HasPrefix(model, "qwen3-asr") {
		dial = func(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
			return at.converse(ctx, model, req)
		}
	}
	return recognition.New(recognition.Options{Account: at.account, Tries: s.Tries(), Dial: dial, Final: at.first}), nil
}

// languages are those that can be hinted to the models of the inference protocol.
func languages(model string) []string {
	if strings.HasPrefix(model, "paraformer") {
		return []string{"zh", "en", "ja", "yue", "ko", "de", "fr", "ru"}
	}
	return []string{"zh", "en", "ja"}
}

// parameters are those of a recognition.
func (s *site) parameters(model string, req providers.ASRRequest) map[string]any {
	p := map[string]any{
		"format": "pcm", "sample_rate": req.Rate, "semantic_punctuation_enabled": false,
		"max_sentence_silence": int(s.section.Number("max_sentence_silence", silence)),
	}
	base, _, _ := strings.Cut(req.Language, "-")
	if slices.Contains(languages(model), base) {
		p["language_hints"] = []string{base}
	}
	if v := s.section.Text("vocabulary_id", ""); v != "" {
		p["vocabulary_id"] = v
	}
	maps.Copy(p, s.section.Extra)
	return p
}

// realtimeLanguages are those that can be told to Qwen-ASR. It finds out others by itself.
const realtimeLanguages = "zh yue en ja de ko ru fr pt ar it es hi id th tr uk vi cs da fil fi is ms no pl sv"

// listen opens a session of the inference protocol.
func (s *site) listen(ctx context.Context, model string, req providers.ASRRequest) (recognition.Session, error) {
	socket, err := s.dial(ctx, inferencePath)
	if err != nil {
		return nil, err
	}
	t := newTask(socket)
	if err := t.run("asr", "recognition", model, s.parameters(model, req), s.first); err != nil {
		socket.Close()
		return nil, err
	}
	return &listening{t}, nil
}

// listening is a session of the inference protocol.
type listening struct{ *task }

// Send hands over sound.
func (l *listening) Send(pcm []int16) error { return l.socket.WriteBinary(recognition.Bytes(pcm)) }

// Finish says that the sound is complete.
func (l *listening) Finish() error { return l.finish() }

// Close ends the session.
func (l *listening) Close() { l.socket.Close() }

// Receive returns the next result.
func (l *listening) Receive() (recognition.Result, error) {
	m, err := l.receive(0)
	if err != nil {
		if refused, ok := errors.AsType[*transport.Refusal](err); ok && nothingHeard(refused.Code, refused.Text) {
			return recognition.Result{Kind: recognition.Over}, nil
		}
		return recognition.Result{}, err
	}
	said := m.report.Payload.Output.Sentence
	switch {
	case m.report.Header.Event == taskFinished:
		return recognition.Result{Kind: recognition.Over}, nil
	case m.report.Header.Event != taskResult || said == nil || said.Heartbeat:
		return recognition.Result{}, nil
	case said.ended():
		return recognition.Result{Kind: recognition.Sentence, Text: said.Text, Part: string(said.ID)}, nil
	}
	return recognition.Result{Kind: recognition.Partial, Text: said.Text, Part: string(said.ID)}, nil
}

// converse opens a session of the realtime protocol.
func (s *site) converse(ctx context.Context, model string, req providers.ASRRequest) (recognition.Session, error) {
	socket, err := s.dial(ctx, realtimePath+"?model="+url.QueryEscape(model))
	if err != nil {
		return nil, err
	}
	a := &conversing{socket: socket, manual: s.manual()}
	if err := s.begin(socket, s.hearing(req)); err != nil {
		socket.Close()
		return nil, err
	}
	return a, nil
}

// hearing returns the settings of a session of the realtime protocol that hears.
func (s *site) hearing(req providers.ASRRequest) map[string]any {
	transcription := map[string]any{}
	if base, _, _ := strings.Cut(req.Language, "-"); slices.Contains(strings.Fields(realtimeLanguages), base) {
		transcription["language"] = base
	}
	if len(req.Phrases) > 0 {
		transcription["corpus"] = map[string]any{"text": strings.Join(req.Phrases, "\n")}
	}
	session := map[string]any{
		"modalities": []string{"text"}, "input_audio_format": "pcm", "sample_rate": req.Rate,
		"input_audio_transcription": transcription,
		"turn_detection":            nil,
	}
	if !s.manual() {
		session["turn_detection"] = map[string]any{
			"type": serverTurns, "threshold": 0.0, "silence_duration_ms": int(s.section.Number("max_sentence_silence", silence)),
		}
	}
	maps.Copy(session, s.section.Extra)
	return session
}

// The ways in which Qwen-ASR finds the end of a sentence: by itself, which makes it show
// what it hears before, or when it is told, and then it says nothing before that.
const (
	serverTurns = "server_vad"
	noTurns     = "none"
)

// manual says whether Qwen-ASR is told where the sentence ends.
func (s *site) manual() bool { return s.section.Text("turn_detection", serverTurns) == noTurns }

// begin waits for a session of the realtime protocol and tells it what to do.
func (s *site) begin(socket *transport.Socket, session map[string]any) error {
	for sent := false; ; {
		var e event
		if err := socket.ReadJSON(s.first, &e); err != nil {
			return err
		}
		if err := e.failure(); err != nil {
			return err
		}
		switch {
		case e.Type == "session.created" && !sent:
			if err := sendEvent(socket, "session.update", map[string]any{"session": session}); err != nil {
				return err
			}
			sent = true
		case e.Type == "session.updated" && sent:
			return nil
		}
	}
}

// conversing is a session of the realtime protocol.
type conversing struct {
	socket *transport.Socket
	manual bool
}

// Send hands over sound.
func (a *conversing) Send(pcm []int16) error {
	return sendEvent(a.socket, "input_audio_buffer.append", map[string]any{"audio": base64.StdEncoding.EncodeToString(recognition.Bytes(pcm))})
}

// Finish says that the sound is complete.
func (a *conversing) Finish() error {
	if a.manual {
		if err := sendEvent(a.socket, "input_audio_buffer.commit", nil); err != nil {
			return err
		}
	}
	return sendEvent(a.socket, "session.finish", nil)
}

// Close ends the session.
func (a *conversing) Close() { a.socket.Close() }

// Receive returns the next result.
func (a *conversing) Receive() (recognition.Result, error) {
	var e event
	if err := a.socket.ReadJSON(0, &e); err != nil {
		return recognition.Result{}, err
	}
	switch e.Type {
	case "":
		return recognition.Result{}, errNoType
	case "conversation.item.input_audio_transcription.text":
		return recognition.Result{Kind: recognition.Partial, Text: e.Text + e.Stash, Part: e.Item, Language: e.Language}, nil
	case "conversation.item.input_audio_transcription.completed":
		return recognition.Result{Kind: recognition.Sentence, Text: e.Transcript, Part: e.Item, Language: e.Language}, nil
	case "session.finished":
		return recognition.Result{Kind: recognition.Over}, nil
	}
	err := e.failure()
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && a.manual && strings.Contains(strings.ToLower(refused.Text), "buffer") {
		return recognition.Result{}, nil // there was too little sound to commit: the end of the session follows
	}
	return recognition.Result{}, err
}
