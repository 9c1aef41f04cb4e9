package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"xiaozhi/agent/speak"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// newDuplex makes the conversation's.
func newDuplex(c *Conversation) *duplex {
	return &duplex{
		whom: &c.whom, log: c.env.Log, kept: map[uint64]*keptSound{},
		onset: func() {
			c.post(func() {
				if c.state.Consent.ID == 0 && c.state.Asked == 0 { // else the words decide who answers
					c.prepareDuplex()
				}
			})
		},
		child: func() (context.Context, context.CancelCauseFunc) { return c.life.child() },
		start: c.mic.o.Go,
	}
}

// prepareDuplex has a session ready with whom the device talks to.
func (c *Conversation) prepareDuplex() {
	persona, session := c.recast(), c.env.Session
	session.Language = string(c.rules.DeviceLang)
	lang := cmp.Or(c.state.Learned.Lang, c.rules.DeviceLang, text.Chinese)
	p := partner{
		provider: persona.Realtime, name: c.o.Name, agent: persona.Name, revision: persona.Revision, prompt: persona.Prompt + "\x00" + persona.Text,
		language: session.Language, voice: persona.RealtimeVoice, version: c.dev.history.Said(),
	}
	if p.provider != nil {
		p.tools = think.Specs(c.env.Tools, false)
		if notes := notesOf(c, persona.Name, text.Lang(session.Language)); notes != nil {
			ctx, end := c.life.child()
			end(nil) // what is not there yet is not waited for
			p.notes = notes(mcp.WithInfo(ctx, mcp.Info{Speaker: c.speaking(turn.Speaker{})}), "").Always
		}
	}
	c.duplex.prepare(p, func() (providers.DuplexRequest, error) {
		told, err := think.Instructions(&c.think, think.Turn{
			Role: persona.Prompt, Text: persona.Text, Session: session, Lang: lang,
		})
		if p.notes != "" {
			told = strings.TrimSpace(told) + "\n\n" + p.notes
		}
		return providers.DuplexRequest{
			Instructions: told, History: spokenWords(c.dev.history.Snapshot()), Tools: p.tools, Language: p.language, Voice: p.voice, Zone: c.o.Zone,
		}, err
	})
}

// spokenWords are those messages that were said.
func spokenWords(history []providers.Message) (said []providers.Message) {
	for _, m := range history {
		if (m.Role == providers.RoleUser || m.Role == providers.RoleAssistant) && m.Content != "" {
			said = append(said, providers.Message{Role: m.Role, Content: m.Content})
		}
	}
	return said
}

// aloud is a turn whose utterances are answered by their sound.
type aloud struct {
	answer  *think.Aloud // set when the turn's responder is there
	sounds  *sounds
	reader  reader
	home    text.Lang // of the device
	instead bool      // the chain of three answers
}

// newAloud prepares the answer to an order's utterances.
func newAloud(c *Conversation, persona Persona, o *order) *aloud {
	c.prepareDuplex()
	home := c.rules.DeviceLang
	return &aloud{sounds: c.duplex.of(o.Heard), home: home, reader: c.mic.reader(persona, cmp.Or(expected(home, o.Lang), text.Chinese))}
}

// expected is the language that a recogniser is told: that of a turn, or the device's own if
// that is neither Chinese nor English.
func expected(home, lang text.Lang) text.Lang {
	if home != "" && !home.IsOwn() {
		return home
	}
	return lang
}

// aloud answers by the sound of the utterances. When nothing comes of that, the recogniser hears
// the same sound, and the turn is answered as any other.
func (r *reply) answerAloud(ctx context.Context) error {
	err := speak.Protect(r.log, "realtime", func() error { return r.aloud.answer.Answer(ctx) })
	if err == nil && text.In(r.answer.Words(), r.exits) {
		r.answer.Goodbye()
	}
	if err == nil || ctx.Err() != nil || r.aloud.answer.Begun() {
		return err
	}
	r.log.Warn("the realtime service gives no answer", "err", err)
	r.aloud.instead = true
	if r.aloud.reader.asr == nil && r.order.Words == "" && r.answer.Words() == "" {
		return err
	}
	said := turn.Text{Status: turn.Final, Words: r.order.Words}
	if said.Words == "" {
		over := r.AwaitsModel()
		said = r.aloud.reader.read(timeline.WithAttempts(ctx, r.times.Attempt), r.aloud.sounds.pcm...)
		over()
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case said.Status == turn.Final && text.Bare(said.Words) != "":
	case text.Bare(r.answer.Words()) != "":
		said.Words, said.Lang = r.answer.Words(), ""
	case said.Status == turn.Failed:
		r.order.Err = errors.Join(err, said.Err)
		return r.answer.SayPhrase(ctx, prompts.FailASR)
	default:
		r.order.Cause = turn.ErrNoSpeech
		return r.answer.SayPhrase(ctx, prompts.Pardon)
	}
	if text.Of(said.Words) != "" {
		r.order.Lang = text.Resolve(said.Words, said.Lang, r.aloud.home)
	}
	r.order.Words = said.Words
	r.aloud.answer.Instead(said.Words, r.order.Lang)
	return r.answerWords(ctx)
}

// heardAloud tells who answered aloud what was heard of that, if that is not all.
func (r *reply) heardAloud(now time.Time) {
	if r.aloud != nil && !r.aloud.instead && (r.out.cut || r.out.err != nil) {
		r.aloud.sounds.truncate(r.player.HeardAloud(now))
	}
}

// reader recognises what was kept of an utterance.
type reader struct {
	log     *slog.Logger
	asr     providers.ASR // nil: there is none
	lang    text.Lang
	phrases func() []string // nil: nothing is known
}

func (m *microphone) reader(p Persona, lang text.Lang) reader {
	return reader{m.o.Log, p.ASR, lang, m.o.Phrases}
}

// read returns the words of sounds that belong together. It waits for them.
func (r reader) read(ctx context.Context, sounds ...[]int16) turn.Text {
	var last providers.Transcript
	err := errNoRecogniser
	if r.asr != nil {
		err = speak.Protect(r.log, "recogniser", func() (err error) {
			last, err = r.transcribe(ctx, sounds)
			return err
		})
	}
	said := turn.Text{Status: turn.Final, Words: last.Text, Lang: text.LangNamed(last.Language), Provider: last.Provider}
	switch {
	case err != nil:
		return turn.Text{Status: turn.Failed, Err: err}
	case last.Rejected:
		said.Status = turn.Rejected
	}
	return said
}

var errNoRecogniser = errors.New("there is no recogniser")

func (r reader) transcribe(ctx context.Context, sounds [][]int16) (last providers.Transcript, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := providers.ASRRequest{Rate: audio.Recognition.Rate, Language: string(r.lang)}
	if r.phrases != nil {
		req.Phrases = r.phrases()
	}
	stream, err := r.asr.Open(ctx, req)
	if err != nil {
		return last, err
	}
	var refused error
	for _, pcm := range sounds {
		refused = errors.Join(refused, stream.Write(pcm))
	}
	if refused = errors.Join(refused, stream.CloseWrite()); refused != nil {
		cancel() // it is read all the same: that frees it
	}
	for last, err = range stream.Transcripts() {
		if err != nil || last.Final {
			return last, cmp.Or(refused, err)
		}
	}
	return last, fmt.Errorf("%w: the recogniser gave no final transcript", turn.ErrFailed)
}

// read has the words of an utterance recognised whose sound was kept.
func (m *microphone) read(id uint64) {
	ctx, cancel := m.o.Child()
	ctx, stop := context.WithTimeout(ctx, m.c.o.RecognizeTimeout)
	sound, ok := m.c.duplex.sound(id, func() { cancel(turn.ErrDone) })
	if !ok {
		stop()
		cancel(turn.ErrDone)
		return
	}
	persona := m.c.whom.now()
	reader := m.reader(persona, expected(m.c.rules.DeviceLang, cmp.Or(m.c.state.Learned.Lang, m.c.rules.DeviceLang, text.Chinese)))
	report := m.o.Report
	m.o.Go(func() {
		defer stop()
		defer cancel(turn.ErrDone)
		var asked []timeline.Attempt
		said := reader.read(timeline.WithAttempts(ctx, func(a timeline.Attempt) { asked = append(asked, a) }), sound)
		said.Attempts = asked
		report(turn.Transcript{ID: id, Attempt: 1, Text: said})
	})
}
