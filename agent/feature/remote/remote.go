// Package remote lets others have a device do something: a script, a home
// automation, a tool of the outward server.
package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/intent"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

const (
	maxSay       = 4000             // characters that may be spoken at once
	answerWithin = 30 * time.Second // after a question
)

// Errors of what is asked from outside, beside [feature.ErrOver], [feature.ErrQueueFull] and [feature.ErrQuiet].
var (
	ErrManual   = errors.New("the device listens only while its button is pressed")
	ErrNoAnswer = errors.New("the user has not answered")
	ErrUnheard  = errors.New("the user has interrupted it before anything was heard")
)

// Device is a connected device as others use it. Its methods may be called at any
// time. They return when what they are about is done, or when their context or
// the conversation ends.
type Device interface {
	// Say speaks a text at the next pause, or at once if now is set, which cuts what
	// is being said. It returns when the text has been played or was cut.
	Say(ctx context.Context, words string, now bool) (Said, error)
	// Ask speaks a text at the next pause and returns the user's next words, which are
	// not answered by anybody else. They must come within 30 s.
	Ask(ctx context.Context, words string) (answer string, err error)
	// Listen opens the microphone of a device that waits, by an empty reply. While
	// the device listens, speaks or thinks it does nothing.
	Listen(ctx context.Context) error
	// Stop ends the reply, as the button of the device does, and reports whether
	// there was one.
	Stop(ctx context.Context) (stopped bool, err error)
	// Offers lists the tools that the device's model is offered.
	Offers() []router.Offer
	// Survey lists them with those that it is not offered, and why.
	Survey() []router.Listed
	// Call runs one of them as a call of the model would be, and waits for its true
	// result. A tool that needs the user's yes is run when the user, who is asked
	// aloud, has said so. invalid says why the arguments cannot be used, if the
	// response is about that.
	Call(ctx context.Context, call mcp.Call) (response mcp.ActionResponse, invalid string)
}

// ByHand marks what a person does at a page, who waits for it: it is done in quiet mode too.
func ByHand(ctx context.Context) context.Context {
	info := mcp.InfoFrom(ctx)
	info.Hand = true
	return mcp.WithInfo(ctx, info)
}

// Said tells what became of words that somebody outside had spoken.
type Said struct {
	Heard string // what the user has heard of them
	Whole bool   // that is all of it
}

// Conversation is the part of the conversation that a [Device] uses.
type Conversation interface {
	// Do runs f on the conversation's goroutine. The error is f's, or why f was not run.
	Do(ctx context.Context, f func(feature.Host) error) error
	// Over is closed when the conversation has ended.
	Over() <-chan struct{}
}

// device is the Device of a conversation in this process.
type device struct {
	Conversation

	id    string
	tools *router.Router
}

// New returns the device of a conversation, with the tools that its model is offered.
func New(c Conversation, id string, tools *router.Router) Device { return &device{c, id, tools} }

func (d *device) Offers() []router.Offer { return d.tools.Offers() }

func (d *device) Survey() []router.Listed { return d.tools.Survey() }

func (d *device) Say(ctx context.Context, words string, now bool) (Said, error) {
	_, said, err := d.speak(ctx, feature.Announcement{Text: words, Now: now})
	return said, err
}

func (d *device) Ask(ctx context.Context, words string) (string, error) {
	answer, err := d.ask(ctx, words)
	return answer.Words, err
}

// ask is Ask with all that is known of the answer.
func (d *device) ask(ctx context.Context, question string) (feature.Answer, error) {
	answer := make(chan feature.Answer, 1)
	id, said, err := d.speak(ctx, feature.Announcement{Text: question, Answer: func(a feature.Answer) { answer <- a }})
	switch {
	case err != nil:
		return feature.Answer{}, err
	case said.Heard == "":
		return feature.Answer{}, ErrUnheard
	}
	given := func(a feature.Answer) (feature.Answer, error) {
		a.Doubtful = a.Doubtful || !think.HeardQuestion(said.Heard, question)
		return a, nil
	}
	timer := time.NewTimer(answerWithin)
	defer timer.Stop()
	select {
	case a := <-answer:
		return given(a)
	case <-timer.C:
		err = ErrNoAnswer
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-d.Over():
		err = feature.ErrOver
	}
	d.withdraw(ctx, id)
	select {
	case a := <-answer: // it came at the last moment
		return given(a)
	default:
		return feature.Answer{}, err
	}
}

func (d *device) Listen(ctx context.Context) error {
	return d.Do(ctx, func(h feature.Host) error {
		if h.State().Mic.Mode == wire.Manual {
			return ErrManual
		}
		h.Step(turn.Invite{})
		return nil
	})
}

func (d *device) Stop(ctx context.Context) (stopped bool, err error) {
	err = d.Do(ctx, func(h feature.Host) error {
		state := h.State()
		stopped = state.Busy() && !state.Speculates()
		h.Step(turn.StopReply{})
		return nil
	})
	return stopped, err
}

// speak has a text told, and returns the number of its announcement.
func (d *device) speak(ctx context.Context, a feature.Announcement) (id uint64, said Said, err error) {
	a.Text = strings.TrimSpace(a.Text)
	if n := len([]rune(a.Text)); n == 0 || n > maxSay {
		return 0, Said{}, fmt.Errorf("a text of %d characters, want 1 to %d", n, maxSay)
	}
	a.Asked = mcp.InfoFrom(ctx).Hand
	done := make(chan feature.Told, 1)
	a.Done = func(t feature.Told) { done <- t }
	err = d.Do(ctx, func(h feature.Host) (err error) {
		if h.State().Farewell.Step != turn.Staying {
			return feature.ErrOver
		}
		a.Lang = text.Resolve(a.Text, "", h.Lang())
		id, err = h.Announce(a)
		return err
	})
	if err != nil {
		return 0, Said{}, err
	}
	select {
	case t := <-done:
		if errors.Is(t.Err, feature.ErrQuiet) {
			return id, Said{}, t.Err
		}
		return id, Said{t.Heard, t.Whole}, nil
	case <-ctx.Done():
		d.withdraw(ctx, id)
		return id, Said{}, context.Cause(ctx)
	case <-d.Over():
		return id, Said{}, feature.ErrOver
	}
}

// withdraw says that nobody waits for an announcement any more, nor for its answer.
// It returns when no answer can come, also where ctx has ended.
func (d *device) withdraw(ctx context.Context, id uint64) {
	_ = d.Do(context.WithoutCancel(ctx), func(h feature.Host) error { // over: nothing comes any more
		h.Withdraw(id)
		return nil
	})
}

// Call goes by the router and the checks that calls of the model go through, behind
// those in the device's queue. The limits of the model, per turn and per day, are
// not for calls from outside.
func (d *device) Call(ctx context.Context, call mcp.Call) (response mcp.ActionResponse, invalid string) {
	call.By = mcp.ByOutside
	info := mcp.InfoFrom(ctx)
	info.DeviceID, info.Language = d.id, call.Language
	ctx = mcp.WithInfo(ctx, info)
	p, bad := d.tools.Prepare(call)
	if bad != nil {
		return *bad, p.Invalid
	}
	if p.Asks() {
		return d.permitted(ctx, p), ""
	}
	return d.run(ctx, p), ""
}

// run runs a call from outside. A handler of the conversation completes it: its words
// are the result and are not spoken, what it has the device do is waited for.
func (d *device) run(ctx context.Context, p router.Prepared) mcp.ActionResponse {
	response := d.tools.Run(ctx, p)
	if response.Action != mcp.ActionTypeCallHandler {
		return response
	}
	var did think.Handled
	lang := mcp.InfoFrom(ctx).Language
	named, err := mcp.DecodeArgs[mcp.ActionResponseCall](response.Result)
	if err == nil {
		err = d.Do(ctx, func(h feature.Host) (err error) {
			handler := h.HandlerOf(named.FuncName)
			if handler == nil {
				return fmt.Errorf("there is no handler named %q", named.FuncName)
			}
			did, err = handler(feature.Caller{Lang: text.Lang(lang), Hand: mcp.InfoFrom(ctx).Hand, Speaker: mcp.InfoFrom(ctx).Speaker}, named.Args)
			if err == nil && did.HangUp {
				h.Step(turn.Leave{Cause: turn.ErrGoodbye})
			}
			return err
		})
	}
	if err == nil {
		did, err = did.Finished(ctx)
	}
	switch {
	case errors.Is(err, feature.ErrQuiet):
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: message.In(text.Lang(lang), "app/device-quiet")}
	case err != nil:
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}
	case did.Call != nil:
		did.Call.Language = lang
		response, _ := d.Call(ctx, *did.Call)
		return response
	case did.Result != "":
		return mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: did.Result}
	}
	return mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: did.Say}
}

// permitted asks the user whether to do what somebody outside wants, and does it
// after a yes. The user hears what has become of it.
func (d *device) permitted(ctx context.Context, p router.Prepared) mcp.ActionResponse {
	refuse := func(id, why string) mcp.ActionResponse {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: message.In(text.Lang(p.Call.Language), id) + why}
	}
	var lang text.Lang
	var texts *prompts.Set
	if err := d.Do(ctx, func(h feature.Host) error {
		lang, texts = h.Lang(), h.Env().Texts
		return nil
	}); err != nil {
		return refuse("agent/consent-gone", "")
	}
	action := think.ActionWords(p.Offer.Tool.Name, p.Offer.Tool.Description, lang)
	q := question{action: action, by: p.By(), texts: texts, lang: lang}
	yes, err := d.consents(ctx, &q)
	if errors.Is(err, feature.ErrQuiet) {
		return refuse("app/device-quiet", "")
	}
	if err != nil {
		why := ""
		if !text.Lang(p.Call.Language).IsChinese() {
			why = ": " + err.Error()
		}
		return refuse("agent/consent-unanswered", why)
	}
	mention := func(id string, args ...string) {
		_ = d.Do(ctx, func(h feature.Host) error { // a conversation that is over says nothing any more
			_, err := h.Announce(feature.Announcement{Lang: lang, Text: texts.Phrase(id, string(lang), args...), Asked: true})
			return err
		})
	}
	now, bad := d.tools.Prepare(p.Call) // the user was asked about this tool, as it was
	switch {
	case q.others:
		mention(prompts.ConsentOthers, "people", text.List(q.by, lang))
		return refuse("agent/consent-others", "")
	case !yes, bad != nil, now.Offer.Identity() != p.Offer.Identity():
		mention(prompts.ConsentNo)
		return refuse("agent/consent-refused", "")
	}
	response := d.run(ctx, d.tools.Consent(now, q.person))
	if e := response.Outcome(string(lang)); e.Failed {
		mention(prompts.LateFailure, "action", action, "reason", think.ReasonWords(e.Reason))
	} else {
		mention(prompts.OK)
	}
	return response
}

// question holds what the user is asked to allow, and what came of it.
type question struct {
	action string
	by     []string // names of the people who may say yes; nil: whoever speaks
	texts  *prompts.Set
	lang   text.Lang

	person string // who has said yes, by their voice; "": it is not known
	others bool   // it was nobody who may
}

// phrase asks it.
func (q *question) phrase(id string) string {
	return q.texts.Phrase(id, string(q.lang), "action", q.action, "people", text.List(q.by, q.lang))
}

// consents asks the user whether to do an action, and again if the answer is not clear or
// may not be the user's. What is not clear then is a no.
func (d *device) consents(ctx context.Context, q *question) (yes bool, err error) {
	asks := prompts.ConsentAsk
	for range 2 {
		a, err := d.ask(ctx, q.phrase(asks))
		if err != nil {
			return false, err
		}
		spoken := text.Resolve(a.Words, "", q.lang)
		own := intent.Tongue{Lang: spoken, Words: q.texts.Words(spoken)}
		switch answer := own.YesNo(a.Words, q.action); {
		case answer == intent.Yes && !a.Doubtful && a.Speaker.MayAllow(q.by):
			q.person, q.others = a.Speaker.Name, false
			return true, nil
		case answer == intent.Yes && !a.Doubtful:
			asks, q.others = prompts.ConsentVoice, true
			if a.Speaker.Told() {
				return false, nil
			}
		case answer == intent.No, answer == intent.Unclear && !own.Answering(a.Words):
			q.others = false
			return false, nil
		default:
			q.others = false
		}
	}
	return false, nil
}
