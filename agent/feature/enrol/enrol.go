// Package enrol learns the voice of somebody who asks for it: it has them say a few sentences, and keeps prints of their voice if
// all of them are of one person.
package enrol

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
	"xiaozhi/voices"
)

// Book keeps the voices. [voices.Book] is one. Its methods may be called at the same time.
type Book interface {
	// Engine names what tells people apart; "": nothing does.
	Engine() string
	// Named returns the person of a name, whatever its letters.
	Named(name string) (voices.Person, bool)
	// Voices lists those of a person.
	Voices(person string) ([]voices.Voice, map[string]bool)
	// Learn keeps the voice of a person who speaks in all samples, or nothing.
	Learn(ctx context.Context, name, by string, source voices.Source, device string, samples [][]int16) (voices.Person, error)
}

// Feature learns voices in conversations.
type Feature struct {
	book   Book
	rights func(name string) bool
	child  func() (context.Context, context.CancelFunc)
}

// New makes the feature; what it learns ends with ctx. rights reports whether a name gives rights in the settings: whoever has a
// voice that is not known cannot take it by saying so.
func New(ctx context.Context, b Book, rights func(name string) bool) Feature {
	return Feature{b, rights, func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }}
}

// Name is the name of its state, which it does not have.
func (Feature) Name() string { return "enrol" }

// Attach makes the instance of a conversation.
func (f Feature) Attach(h feature.Host, _ feature.State) feature.Instance {
	e := &enrol{Host: h, f: f}
	e.ctx, e.cancel = f.child, func() {}
	return e
}

const (
	samples  = 3                // that are learned from
	attempts = 4                // that may be no use
	within   = 30 * time.Second // after a question, to say something
	longest  = time.Minute      // until a question was told
	maxName  = 32               // characters
)

type enrol struct {
	feature.Host

	f      Feature
	ctx    func() (context.Context, context.CancelFunc)
	cancel context.CancelFunc
	wg     sync.WaitGroup

	now *lesson // nil: nothing is learned
}

// lesson is one voice that is being learned.
type lesson struct {
	lang     text.Lang
	name     string // "": it was asked for
	said     [][]int16
	useless  int
	question uint64    // the announcement whose answer is awaited; 0: the voice is being looked at
	due      time.Time // when nothing is awaited any more
}

var (
	_ feature.Handling = (*enrol)(nil)
	_ feature.Timed    = (*enrol)(nil)
)

// Expects implements [feature.Instance].
func (e *enrol) Expects(time.Time) bool { return e.now != nil }

// Detach implements [feature.Instance].
func (e *enrol) Detach() feature.State {
	e.cancel()
	e.wg.Wait()
	return nil
}

// Deadline implements [feature.Timed].
func (e *enrol) Deadline() time.Time {
	if e.now == nil || e.now.question == 0 {
		return time.Time{}
	}
	return e.now.due
}

// Tick implements [feature.Timed].
func (e *enrol) Tick(now time.Time) {
	if at := e.Deadline(); !at.IsZero() && !now.Before(at) {
		e.Withdraw(e.now.question)
		e.end(prompts.EnrolStopped)
	}
}

// Handler implements [feature.Handling].
func (e *enrol) Handler(name string) feature.Handler {
	if name != mcp.HandlerEnrol {
		return nil
	}
	return e.begin
}

// begin takes the order to learn a voice.
func (e *enrol) begin(from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.EnrolArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	phrase := func(id string, args ...string) think.Handled {
		words := e.Env().Texts.Phrase(id, string(from.Lang), args...)
		return think.Handled{Say: words, Result: words}
	}
	name, s := nameIn(a.Name), e.Env().Session
	switch {
	case s.Unknown, s.Private, e.f.book.Engine() == "":
		return phrase(prompts.EnrolOff), nil
	case from.Turn == 0: // nobody in front of the device has asked for it
		return think.Handled{}, errors.New(message.In(from.Lang, "agent/enrol-outside"))
	case name != "" && !e.may(name, from.Speaker):
		return phrase(prompts.EnrolConsole, "name", name), nil
	}
	if !e.KeepSound(true) {
		return phrase(prompts.EnrolOff), nil
	}
	if e.now != nil {
		e.Withdraw(e.now.question)
		e.cancel() // of a voice that is being looked at nothing is kept
	}
	e.now = &lesson{lang: from.Lang, name: name}
	first := prompts.EnrolBegin
	if name == "" {
		first = prompts.EnrolName
	}
	if !e.ask(first, "name", name) {
		return phrase(prompts.EnrolStopped), nil
	}
	return phrase(prompts.OK), nil
}

// may reports whether somebody may have a voice learned under a name: a new one, or their own. One that gives rights, or is that of
// a voice that is known, is only given to that voice.
func (e *enrol) may(name string, by mcp.Speaker) bool {
	p, there := e.f.book.Named(name)
	if there && by.ID == p.ID && by.Told() {
		return true
	}
	if e.f.rights(name) {
		return false
	}
	known, _ := e.f.book.Voices(p.ID)
	return !there || len(known) == 0
}

// ask asks a question, whose answer is what is learned from. False: it cannot be asked.
func (e *enrol) ask(id string, args ...string) bool {
	l := e.now
	n, err := e.Announce(feature.Announcement{
		Lang: l.lang, Text: e.Env().Texts.Phrase(id, string(l.lang), args...), Asked: true, Answer: e.answered,
		Done: func(t feature.Told) {
			if e.now != l {
				return
			}
			if l.due = time.Now().Add(within); t.Heard == "" {
				e.end("") // it was cut, or given up: whoever wants it asks again
			}
		},
	})
	if err != nil {
		e.end("")
		return false
	}
	l.question, l.due = n, time.Now().Add(longest)
	return true
}

// end ends what is being learned, and says why; "": nothing.
func (e *enrol) end(id string, args ...string) {
	l := e.now
	if l == nil {
		return
	}
	e.now = nil
	e.KeepSound(false)
	if id == "" {
		return
	}
	if _, err := e.Announce(feature.Announcement{Lang: l.lang, Text: e.Env().Texts.Phrase(id, string(l.lang), args...), Asked: true}); err != nil {
		e.Env().Log.Debug("it is not told what became of a voice", "err", err)
	}
}

// answered takes what was said to a question.
func (e *enrol) answered(a feature.Answer) {
	l := e.now
	if l == nil {
		return
	}
	l.question = 0
	words := e.Env().Texts.Words(l.lang)
	switch {
	case text.In(a.Words, words.Stop), text.In(a.Words, words.Exit), text.In(a.Words, message.List(l.lang, "agent/enrol-stop")):
		e.end(prompts.EnrolStopped)
	case l.name == "":
		e.named(a)
	default:
		e.heard(a)
	}
}

// named takes the name that was asked for.
func (e *enrol) named(a feature.Answer) {
	l := e.now
	l.name = nameIn(a.Words)
	switch {
	case l.name == "":
		e.again(prompts.EnrolName)
	case !e.may(l.name, a.Speaker):
		e.end(prompts.EnrolConsole, "name", l.name)
	default:
		e.ask(prompts.EnrolBegin, "name", l.name)
	}
}

// again asks once more, unless that has been done often enough.
func (e *enrol) again(id string) {
	if e.now.useless++; e.now.useless > attempts {
		e.end(prompts.EnrolFailed)
		return
	}
	e.ask(id, "name", e.now.name)
}

// heard takes a sample.
func (e *enrol) heard(a feature.Answer) {
	l := e.now
	switch _, err := voices.Check(a.Sound); {
	case errors.Is(err, voices.ErrQuiet):
		e.again(prompts.EnrolQuiet)
		return
	case err != nil || a.Doubtful:
		e.again(prompts.EnrolShort)
		return
	}
	l.said = append(l.said, a.Sound)
	switch len(l.said) {
	case samples:
		e.learn(l)
	case samples - 1:
		e.ask(prompts.EnrolThird)
	default:
		e.ask(prompts.EnrolSecond)
	}
}

// learn keeps the voice, beside the conversation.
func (e *enrol) learn(l *lesson) {
	e.KeepSound(false)
	ctx, cancel := e.ctx()
	e.cancel = cancel
	device := e.Env().Session.DeviceID
	e.wg.Go(func() {
		defer cancel()
		_, err := e.f.book.Learn(ctx, l.name, device, voices.Talk, device, l.said)
		l.said = nil
		e.Post(func() { e.learned(l, err) })
	})
}

// learned tells what became of a voice.
func (e *enrol) learned(l *lesson, err error) {
	if e.now != l {
		return
	}
	var other *voices.OtherError
	switch {
	case err == nil:
		e.Env().Log.Info("a voice was enrolled", "device_id", e.Env().Session.DeviceID)
		e.end(prompts.EnrolDone, "name", l.name)
	case errors.As(err, &other):
		e.end(prompts.EnrolOther, "name", other.Name)
	case errors.Is(err, voices.ErrUnlike):
		e.end(prompts.EnrolUnlike)
	default:
		e.Env().Log.Warn("a voice is not enrolled", "err", err)
		e.end(prompts.EnrolFailed)
	}
}

// nameIn returns the name in what somebody says to the question for it; "": there is none.
func nameIn(words string) string {
	name := strings.TrimFunc(strings.Join(strings.Fields(words), " "), func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) })
	for again := true; again; {
		again = false
		for _, lang := range []text.Lang{text.Chinese, text.English} {
			for _, before := range message.List(lang, "agent/enrol-name") {
				if n := len(before); len(name) > n && strings.EqualFold(name[:n], before) && (lang == text.Chinese || name[n] == ' ') {
					name, again = strings.TrimLeftFunc(name[n:], func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) }), true
				}
			}
		}
	}
	name, err := voices.CleanName(name)
	if err != nil || utf8.RuneCountInString(name) > maxName {
		return ""
	}
	if name == strings.ToLower(name) { // as some recognisers write all words
		first := true
		name = strings.Map(func(r rune) rune {
			up := first
			if first = !unicode.IsLetter(r) && r != '\''; up {
				return unicode.ToUpper(r)
			}
			return r
		}, name)
	}
	return name
}
