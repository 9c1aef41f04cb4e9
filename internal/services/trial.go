package services

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/probe"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

const (
	testTime = 10 * time.Second // of each part of a test
	testRate = 24000            // of sound that people hear, Hz
	maxTests = 2                // at the same time, beside the talks
	maxRuns  = 5                // of one test
)

// Why nothing is tried at this moment.
var (
	ErrBusy = errors.New(message.Both("services/busy")) // others try services
	ErrTwo  = errors.New(message.Both("services/two"))  // the same person does
)

// trying counts the tests that run: one of a person, and few of all, so that those who talk do not wait for them. Its zero
// value has none.
type trying struct {
	mu  sync.Mutex
	who map[string]bool // by the id of a person
}

// begin counts a test of a person, and returns what ends it; or [ErrTwo] or [ErrBusy].
func (t *trying) begin(person string) (end func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.who[person]:
		return nil, ErrTwo
	case len(t.who) >= maxTests:
		return nil, ErrBusy
	case t.who == nil:
		t.who = map[string]bool{}
	}
	t.who[person] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.who, person)
	}, nil
}

// Outcome holds what came of one role of a test.
type Outcome struct {
	Role       service.Role
	Fault      *Fault // it failed; nil: it worked
	First      time.Duration
	Total      time.Duration
	Said       string  // the words that were spoken, or asked
	Heard      string  // what was understood of them
	Wrong      int     // of a hundred signs, those that were misheard
	Text       string  // of the answer
	Called     bool    // the tool that the question needs
	Tool       bool    // there was one
	Clip       string  // by which the sound is fetched; "": there is none
	By         string  // whose ears or voice took part, where these are not its own
	Tokens     int     // that were used
	Dimensions int     // of vectors that were made
	Cost       float64 // in the owner's money; 0: no price is set

	Runs    int           // of which First and Total are the medians; 0: there was one
	Slowest time.Duration // of their totals
}

// Report holds what came of a test.
type Report struct {
	Name     string
	Outcomes []Outcome
	Language text.Lang
	Took     time.Duration
}

// OK reports whether all worked.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Fault != nil })
}

// Test tries a draft as somebody would use it: it speaks a sentence, hears it back, and answers a question with a tool. What
// was typed is used and not kept. The error says why it could not be tried at all, as [MistakesError].
// With more runs than one, the times are medians of those that worked.
func (s *Services) Test(ctx context.Context, by account.Person, d Draft, lang text.Lang, runs int) (r *Report, err error) {
	end, err := s.tests.begin(by.ID)
	if err != nil {
		return nil, err
	}
	defer end()
	if s.o.Audit != nil {
		defer func() { s.o.Audit(ctx, by, "service.test", d.Name, err) }()
	}
	d.Join = nil
	edits, err := s.edits(d)
	if err != nil {
		return nil, err
	}
	if settings.TypeSecrets(edits) {
		if err := by.Proven(time.Now()); err != nil {
			return nil, err
		}
	}
	cfg, err := s.drafted(ctx, d.Name, edits)
	if err != nil {
		return nil, err
	}
	if err := s.near(ctx, cfg, d.Name); err != nil {
		return nil, err
	}
	all := []*Report{s.try(ctx, by.ID, cfg, d, lang)}
	for len(all) < min(runs, maxRuns) && all[0].OK() && ctx.Err() == nil {
		all = append(all, s.try(ctx, by.ID, cfg, d, lang))
	}
	return summed(all), nil
}

// summed is the last of several reports, with medians for its times.
func summed(all []*Report) *Report {
	r := all[len(all)-1]
	if len(all) == 1 {
		return r
	}
	for i := range r.Outcomes {
		var first, total []int64
		for _, one := range all {
			if o := one.Outcomes[i]; o.Fault == nil {
				first, total = append(first, int64(o.First)), append(total, int64(o.Total))
			}
		}
		if o := &r.Outcomes[i]; len(total) > 0 {
			o.Runs, o.First, o.Total = len(total), time.Duration(middle(first)), time.Duration(middle(total))
			o.Slowest = time.Duration(slices.Max(total))
		}
	}
	return r
}

// middle returns the median of some numbers.
func middle(all []int64) int64 {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// trial is one test of one service.
type trial struct {
	s      *Services
	made   *engines.Services
	name   string
	person string
	lang   text.Lang
	price  config.Price
	free   bool
	hidden []string // that no answer may show
}

// try tries all roles of a service.
func (s *Services) try(ctx context.Context, person string, cfg *config.Config, d Draft, lang text.Lang) *Report {
	name := d.Name
	begun := time.Now()
	made := engines.OpenServices(cfg, slog.New(slog.DiscardHandler))
	defer made.Close()
	if made.Language(name) == "en" {
		lang = text.English
	}
	t := &trial{s, made, name, person, lang, made.Price(name), made.Free(name), cfg.Secrets()}
	r := &Report{Name: name, Language: lang}
	by := map[service.Role]engines.Tried{}
	does := slices.DeleteFunc(made.Roles(name), func(r service.Role) bool {
		return len(d.Try) > 0 && !slices.Contains(d.Try, r) && (r != service.LLM || !slices.Contains(d.Try, service.Vision))
	})
	for _, role := range does { // one after another: a maker is for one goroutine
		by[role] = made.Try(ctx, name, role)
	}
	results := map[service.Role]*Outcome{}
	for _, role := range does {
		results[role] = &Outcome{Role: role}
	}
	var parts sync.WaitGroup
	parts.Go(func() { t.speech(ctx, by, results) })
	if out, ok := results[service.LLM]; ok {
		parts.Go(func() { t.part(ctx, by[service.LLM], out, t.think) })
	}
	if out, ok := results[service.Embed]; ok {
		parts.Go(func() { t.part(ctx, by[service.Embed], out, t.embed) })
	}
	parts.Wait()
	for _, role := range []service.Role{service.TTS, service.ASR, service.LLM, service.Realtime, service.Embed} {
		if out, ok := results[role]; ok {
			r.Outcomes = append(r.Outcomes, *out)
		}
	}
	r.Took = time.Since(begun)
	return r
}

// speech tries the roles with sound, one after another: the ears hear what the voice has said.
func (t *trial) speech(ctx context.Context, by map[service.Role]engines.Tried, results map[service.Role]*Outcome) {
	var said []int16
	if out, ok := results[service.TTS]; ok {
		t.part(ctx, by[service.TTS], out, func(ctx context.Context, one engines.Tried, out *Outcome) (err error) {
			said, err = t.speak(ctx, one.TTS, out)
			return err
		})
	}
	if out, ok := results[service.ASR]; ok {
		t.part(ctx, by[service.ASR], out, func(ctx context.Context, one engines.Tried, out *Outcome) error {
			return t.hear(ctx, one.ASR, said, out)
		})
	} else if out := results[service.TTS]; out != nil && out.Fault == nil && len(said) > 0 {
		t.heardBack(ctx, said, out)
	}
	if out, ok := results[service.Realtime]; ok {
		t.part(ctx, by[service.Realtime], out, t.converse)
	}
}

// part tries one role within its time.
func (t *trial) part(ctx context.Context, one engines.Tried, out *Outcome, do func(context.Context, engines.Tried, *Outcome) error) {
	if one.Err != nil {
		out.Fault = t.fault(one.Err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.s.o.Limit)
	defer cancel()
	if err := do(ctx, one, out); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		out.Fault = t.fault(err)
	}
}

// fault says why a role failed, without what nobody may see.
func (t *trial) fault(err error) *Fault {
	f := faultOf(err, t.free)
	for _, secret := range t.hidden {
		if secret != "" {
			f.raw, f.both = strings.ReplaceAll(f.raw, secret, "••••"), strings.ReplaceAll(f.both, secret, "••••")
		}
	}
	return f
}

func (t *trial) words(id string) string { return message.In(t.lang, id) }

// speak has a voice say the sentence, which people can hear then.
func (t *trial) speak(ctx context.Context, voice providers.TTS, out *Outcome) ([]int16, error) {
	out.Said = t.words("services/sentence")
	spoken, err := probe.SpeakAt(ctx, voice, providers.TTSRequest{Text: out.Said, Language: string(t.lang)}, testRate)
	if err != nil {
		return nil, err
	}
	out.First, out.Total = spoken.First, spoken.Total
	out.Cost = t.price.Spoken(utf8.RuneCountInString(out.Said))
	out.Clip = t.s.clips.keep(t.person, spoken.PCM, testRate)
	return audible(spoken.PCM)
}

// audible is sound at the rate of recognition.
func audible(pcm []int16) ([]int16, error) {
	r, err := audio.NewResampler(testRate, audio.Recognition.Rate)
	if err != nil {
		return nil, err
	}
	return r.Flush(r.Write(nil, pcm)), nil
}

// hear has a recogniser hear what its own voice has said, or else that of all.
func (t *trial) hear(ctx context.Context, ears providers.ASR, said []int16, out *Outcome) error {
	words := t.words("services/sentence")
	if len(said) == 0 {
		if t.s.o.Voice == nil {
			return errNoVoice
		}
		voice := t.s.o.Voice()
		spoken, err := probe.SpeakAt(ctx, voice, providers.TTSRequest{Text: words, Language: string(t.lang)}, testRate)
		if err != nil {
			return errNoVoice
		}
		out.By = voice.Name()
		out.Clip = t.s.clips.keep(t.person, spoken.PCM, testRate)
		if said, err = audible(spoken.PCM); err != nil {
			return err
		}
	}
	out.Said = words
	heard, err := probe.Hear(ctx, ears, said, string(t.lang), words)
	if err != nil {
		return err
	}
	out.Heard, out.First, out.Total, out.Wrong = heard.Text, heard.Partial, heard.Final, int(heard.Wrong*100+0.5)
	out.Cost = t.price.Hearing(audio.Recognition.Duration(len(said)))
	return nil
}

// errNoVoice says that a recogniser could not be tried.
var errNoVoice = errors.New(message.Both("services/no-test-voice"))

// heardBack has the recogniser of all hear what a voice without ears has said. That it does not says nothing of the voice.
func (t *trial) heardBack(ctx context.Context, said []int16, out *Outcome) {
	if t.s.o.Ears == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.s.o.Limit)
	defer cancel()
	ears := t.s.o.Ears()
	heard, err := probe.Hear(ctx, ears, said, string(t.lang), out.Said)
	if err != nil {
		return
	}
	out.Heard, out.By, out.Wrong = heard.Text, ears.Name(), int(heard.Wrong*100+0.5)
}

// think asks a model a question that takes a tool; the commands that need no model are asked one of those that they know.
func (t *trial) think(ctx context.Context, one engines.Tried, out *Outcome) error {
	q := probe.Thermometer(t.words("services/question"), string(t.lang))
	if t.made.IsRules(t.name) {
		q = probe.Question{Text: t.words("services/command"), Language: string(t.lang)}
	}
	out.Said, out.Tool = q.Text, q.Tool.Name != ""
	thought, err := probe.Think(ctx, one.LLM, q)
	if err != nil {
		return err
	}
	out.Text, out.First, out.Total, out.Called = thought.Text, thought.First, thought.Total, thought.Called
	out.Tokens, out.Cost = thought.Usage.Prompt+thought.Usage.Completion, t.price.Tokens(thought.Usage)
	return nil
}

// converse says the question to a service that hears and speaks by itself.
func (t *trial) converse(ctx context.Context, one engines.Tried, out *Outcome) error {
	words := t.words("services/question")
	if t.s.o.Voice == nil {
		return errNoVoice
	}
	voice := t.s.o.Voice()
	spoken, err := probe.Speak(ctx, voice, providers.TTSRequest{Text: words, Language: string(t.lang)})
	if err != nil {
		return errNoVoice
	}
	out.Said, out.By = words, voice.Name()
	out.Tool = !providers.CapabilitiesOf(one.Duplex).OwnTools
	all, err := probe.Converse(ctx, one.Duplex, probe.Thermometer(words, string(t.lang)), probe.Utterance{Said: words, PCM: spoken.PCM})
	if err != nil {
		return err
	}
	for _, c := range all {
		out.Heard, out.Text, out.First, out.Total, out.Called = c.Heard, c.Text, c.First, c.Total, c.Called
		out.Wrong, out.Tokens, out.Cost = int(c.Wrong*100+0.5), c.Usage.Prompt+c.Usage.Completion, t.price.Tokens(c.Usage)
	}
	return nil
}

// embed makes vectors of sentences of which two mean something alike.
func (t *trial) embed(ctx context.Context, one engines.Tried, out *Outcome) error {
	out.Said = t.words("services/embed-asked")
	near, err := probe.Embed(ctx, one.Embed, out.Said, t.words("services/embed-near"), t.words("services/embed-far"))
	if err != nil {
		return err
	}
	out.First, out.Total, out.Dimensions = near.Took, near.Took, near.Dimensions
	out.Text = t.words(map[bool]string{true: "services/embed-near", false: "services/embed-far"}[near.Right])
	out.Tokens, out.Cost = near.Tokens, t.price.Embedding(near.Tokens)
	return nil
}

// wave is sound as a file.
func wave(pcm []int16, rate int) []byte {
	var b bytes.Buffer
	_ = file.WriteWAV(&b, pcm, rate) // a buffer takes all
	return b.Bytes()
}
