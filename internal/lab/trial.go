package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent/think"
	"xiaozhi/internal/config"
	"xiaozhi/internal/probe"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/sentence"
	"xiaozhi/internal/timeline"
	"xiaozhi/providers"
	"xiaozhi/store"
)

// Setup says in what a trial differs from how a device is answered now. What is "" does not differ.
type Setup struct {
	Agent  string          `json:"agent,omitempty"` // by name
	Doc    json.RawMessage `json:"doc,omitempty"`   // an agent that is not saved, in the shape of agents.NAME
	ASR    string          `json:"asr,omitempty"`   // services by name, in place of a chain
	LLM    string          `json:"llm,omitempty"`
	TTS    string          `json:"tts,omitempty"`
	Voice  string          `json:"voice,omitempty"`
	Prompt string          `json:"prompt,omitempty"` // text of the system prompt
}

// Cast holds the services and the prompt that a setup stands for on a device.
type Cast struct {
	Agent    string
	ASR      providers.ASR // nil: the recorded words are answered
	LLM      providers.LLM
	TTS      providers.TTS
	Voice    string
	Language text.Lang
	Think    think.Options // prompts, name, zone, steps
	Turn     think.Turn    // role or text of the prompt, session
	Tools    []providers.ToolSpec
	Close    func() // frees what was made for it
}

// Prices says what services cost their owner: nothing, where nobody pays for one. ok is false where no price is set.
type Prices func(service string) (p config.Price, ok bool)

// free reports whether nobody pays for a service.
func (p Prices) free(service string) bool {
	price, known := p(service)
	return known && price == config.Price{}
}

// Input holds an utterance with the dialogue before it, for a trial to answer.
type Input struct {
	Sound   []int16 // of the utterance at 16 kHz; nil: Words are answered
	Words   string
	Lang    text.Lang
	History []providers.Message
	Record  []Recorded // what tools have answered
}

// Cost is money, as far as prices are set.
type Cost struct {
	Micros  int64  `json:"micros"`            // millionths of the currency
	Missing string `json:"missing,omitempty"` // services that were asked and whose cost is not known, by commas; it is not in Micros
}

// Result tells what came of a turn: of the kept one, or of a trial. Times are in milliseconds; 0 is not known.
type Result struct {
	Agent string `json:"agent,omitempty"`
	Heard string `json:"heard"`
	Said  string `json:"said"`

	ASR  string `json:"asr,omitempty"` // services that answered
	LLM  string `json:"llm,omitempty"`
	TTS  string `json:"tts,omitempty"`
	Sums Sums   `json:"times"`

	Steps      int       `json:"steps"`
	TokensIn   int       `json:"tokens_in"`
	TokensOut  int       `json:"tokens_out"`
	Characters int       `json:"characters"` // spoken
	Cost       Cost      `json:"cost"`
	Calls      []CallRow `json:"calls"`
	Sound      string    `json:"sound,omitempty"` // id of what was spoken
	Fault      string    `json:"fault,omitempty"`
	Why        error     `json:"-"`             // of Fault, in a trial
	Cut        bool      `json:"cut,omitempty"` // the user did not hear all of it
	Rating     int       `json:"rating,omitempty"`
}

// Sums are the parts of the time that a user waits for an answer, in milliseconds.
type Sums struct {
	EOU  int64 `json:"eou,omitempty"`  // from the last word to the endpoint
	ASR  int64 `json:"asr,omitempty"`  // to the transcript
	TTFT int64 `json:"ttft,omitempty"` // from the transcript to the model's first token
	TTFS int64 `json:"ttfs,omitempty"` // to the first sentence
	TTFB int64 `json:"ttfb,omitempty"` // from there to the first sound
	Work int64 `json:"work,omitempty"` // of these what a trial does: recognition, where there is some, first sentence and first sound
	Wait int64 `json:"wait,omitempty"` // in all; of a kept turn
	All  int64 `json:"all,omitempty"`  // to the end of the work
}

// trial is a turn that is answered beside the talks. It is for one goroutine, but for what the voice does beside it.
type trial struct {
	cast   Cast
	in     Input
	prices Prices
	out    Result
	tools  answers

	begun time.Time // the words are known
	mu    sync.Mutex
	spent []timeline.Attempt

	voice voice
}

// voice speaks the sentences of a trial, one after the other, on a goroutine of its own.
type voice struct {
	first time.Time // its first sound
	pcm   []int16
	err   error
}

const (
	maxSentences = 64 // of an answer that wait for the voice: the model waits then
	trialSteps   = 6  // requests to the model, if the settings do not say
)

// answer has a cast answer an input.
func answer(ctx context.Context, cast Cast, in Input, prices Prices) (Result, []int16) {
	t := &trial{cast: cast, in: in, prices: prices, tools: answers{record: in.Record}}
	t.out = Result{Agent: cast.Agent, Heard: in.Words, Calls: []CallRow{}}
	ctx = timeline.WithAttempts(ctx, func(a timeline.Attempt) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.spent = append(t.spent, a)
	})
	err := t.hear(ctx)
	if err == nil {
		err = t.converse(ctx)
	}
	if err != nil {
		t.out.Fault, t.out.Why = inWords(err), err
	}
	t.count()
	return t.out, t.voice.pcm
}

// hear finds the words, where there is sound and somebody to hear it.
func (t *trial) hear(ctx context.Context) error {
	if t.cast.ASR == nil || len(t.in.Sound) == 0 {
		return nil
	}
	h, err := probe.Hear(ctx, t.cast.ASR, t.in.Sound, string(t.in.Lang), t.in.Words)
	if err != nil {
		return err
	}
	t.out.Heard, t.out.Sums.ASR = h.Text, max(1, h.Final.Milliseconds())
	if strings.TrimSpace(h.Text) == "" {
		return refuse(Invalid, "lab/nothing-heard")
	}
	return nil
}

// converse asks the model, with tools from the record between its steps, while the voice speaks.
func (t *trial) converse(ctx context.Context) error {
	if strings.TrimSpace(t.out.Heard) == "" {
		return refuse(Invalid, "lab/no-words")
	}
	t.begun = time.Now()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sentences := make(chan string, maxSentences)
	var speaking sync.WaitGroup
	speaking.Go(func() { t.speak(ctx, sentences) })
	err := t.think(ctx, sentences)
	close(sentences)
	if err != nil {
		stop()
	}
	speaking.Wait()
	t.out.Sums.All = time.Since(t.begun).Milliseconds()
	if !t.voice.first.IsZero() {
		t.out.Sums.TTFB = max(0, t.voice.first.Sub(t.begun).Milliseconds()-t.out.Sums.TTFS)
		t.out.Sums.Work = t.out.Sums.ASR + t.out.Sums.TTFS + t.out.Sums.TTFB
	}
	return errors.Join(err, t.voice.err)
}

// think runs the steps of the model.
func (t *trial) think(ctx context.Context, sentences chan<- string) error {
	turn := t.cast.Turn
	turn.Words, turn.Lang, turn.History, turn.Agent, turn.Dialog = t.out.Heard, t.lang(), t.in.History, t.cast.Agent, "trial-"+store.NewID()
	req, err := think.Request(&t.cast.Think, turn, t.cast.Tools)
	if err != nil {
		return err
	}
	most := t.cast.Think.MaxSteps
	if most <= 0 {
		most = trialSteps
	}
	for n := 0; ; n++ {
		req.NoTools = n >= most
		m, err := t.step(ctx, req, sentences)
		if err != nil {
			return err
		}
		if len(m.ToolCalls) == 0 || req.NoTools {
			if t.out.Said == "" {
				return refuse(Invalid, "lab/no-answer")
			}
			return nil
		}
		req.Messages = append(req.Messages, m)
		ends, said := true, ""
		for _, call := range m.ToolCalls {
			row := t.tools.answer(call)
			t.out.Calls = append(t.out.Calls, row)
			req.Messages = append(req.Messages, providers.Message{Role: providers.RoleTool, ToolCallID: call.ID, Content: row.Result})
			ends, said = ends && row.ends, cmp.Or(said, row.said)
		}
		if ends { // as in the kept turn: these tools have the last word
			return t.repeat(ctx, m.Content, said, sentences)
		}
	}
}

// repeat says what was said in the kept turn with the calls that ended it, unless the model has said something itself.
func (t *trial) repeat(ctx context.Context, own, said string, sentences chan<- string) error {
	if strings.TrimSpace(own) != "" || said == "" {
		return nil
	}
	t.out.Said = text.Join(t.out.Said, said)
	return t.say(ctx, []string{said}, sentences)
}

// say gives pieces of the answer to the voice.
func (t *trial) say(ctx context.Context, pieces []string, sentences chan<- string) error {
	for _, piece := range pieces {
		if t.out.Sums.TTFS == 0 {
			t.out.Sums.TTFS = max(1, time.Since(t.begun).Milliseconds())
		}
		select {
		case sentences <- piece:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// lang is the language of the turn.
func (t *trial) lang() text.Lang { return text.Resolve(t.out.Heard, t.in.Lang, t.cast.Language) }

// step runs one request to the model, and gives its sentences to the voice.
func (t *trial) step(ctx context.Context, req providers.LLMRequest, sentences chan<- string) (providers.Message, error) {
	m := providers.Message{Role: providers.RoleAssistant}
	split := sentence.Splitter{Lang: t.lang(), Words: t.cast.Think.Prompts.Words(t.lang())}
	t.out.Steps++
	for d, err := range t.cast.LLM.Generate(ctx, req) {
		if err != nil {
			return m, err
		}
		if t.out.Sums.TTFT == 0 && (d.Text != "" || len(d.ToolCalls) > 0) {
			t.out.Sums.TTFT = max(1, time.Since(t.begun).Milliseconds())
		}
		if m.Content += d.Text; d.Echo.JSON != "" {
			m.Echo = d.Echo
		}
		for _, call := range d.ToolCalls {
			if call.ID == "" {
				call.ID = "call_" + time.Now().Format("150405.000000000")
			}
			m.ToolCalls = append(m.ToolCalls, call)
		}
		if err := t.say(ctx, split.Feed(d.Text), sentences); err != nil {
			return m, err
		}
	}
	if err := t.say(ctx, split.Flush(), sentences); err != nil {
		return m, err
	}
	t.out.Said = text.Join(t.out.Said, strings.TrimSpace(m.Content))
	return m, ctx.Err()
}

// speak has sentences spoken until there are no more. What fails is t.voice.err, after which they are only taken.
func (t *trial) speak(ctx context.Context, sentences <-chan string) {
	for words := range sentences {
		words = sentence.New(words, t.lang()).Speech
		if t.cast.TTS == nil || t.voice.err != nil || strings.TrimSpace(words) == "" {
			continue
		}
		began := time.Now()
		s, err := probe.Speak(ctx, t.cast.TTS, providers.TTSRequest{Text: words, Language: string(text.Resolve(words, t.lang(), t.cast.Language)), Voice: t.cast.Voice})
		if err != nil {
			t.voice.err = err
			continue
		}
		if t.voice.first.IsZero() {
			t.voice.first = began.Add(s.First)
		}
		if len(t.voice.pcm) < maxClip {
			t.voice.pcm = append(t.voice.pcm, s.PCM...)
		}
	}
}

// count sums up what services were asked, and what that costs.
func (t *trial) count() {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := map[string]*string{"recognize": &t.out.ASR, "think": &t.out.LLM, "speak": &t.out.TTS}
	money, missing := 0.0, []string{}
	for _, a := range t.spent {
		t.out.TokensIn += a.Tokens.Prompt
		t.out.TokensOut += a.Tokens.Completion
		t.out.Characters += a.Characters
		if name := names[a.Op]; name != nil && a.Outcome == timeline.Answered {
			*name = a.Provider
		}
		price, ok := t.prices(a.Provider)
		ok = ok && (price == config.Price{} || a.Op != "think" || a.Tokens != timeline.Tokens{}) // a model that does not say what it took has no cost that is known
		if !ok && !slices.Contains(missing, a.Provider) {
			missing = append(missing, a.Provider)
		}
		money += price.Tokens(providers.Usage{Prompt: a.Tokens.Prompt, Cached: a.Cached, Completion: a.Tokens.Completion}) +
			price.Hearing(a.Sound) + price.Spoken(a.Characters)
	}
	if t.out.LLM == "" && t.out.Steps > 0 {
		t.out.LLM = t.cast.LLM.Name()
	}
	t.out.Cost = Cost{int64(math.Round(money * 1e6)), strings.Join(missing, ", ")}
}
