package agent

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/identify"
	"xiaozhi/agent/speak"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// Options hold what all conversations share. VAD, ASR, LLM, TTS, Prompts and
// Devices must be set; every other zero value works.
type Options struct {
	VAD providers.VAD
	ASR providers.ASR
	LLM providers.LLM
	TTS providers.TTS
	// Realtime answers utterances in their place; nil: nothing does. Where it fails they do.
	Realtime providers.Duplex

	FastPath think.FastPath // asked before the model; nil: there is none
	// Phrases lists what is likely to be said, for recognisers that want to know; nil: nothing.
	Phrases   func(language string, tools []providers.ToolSpec) []string
	NoChinese bool // no recogniser that is configured knows Chinese

	// Persona returns the agent of a name, and the device's own one of ""; false: there is
	// none. It may be called at any time and does not wait. What it returns counts from the next turn on.
	// nil: there are those of the options and, by their names, of Prompts.
	Persona func(name string) (Persona, bool)

	// AgentOf names the agent that a person talks to on the device; "": the device's own. It may be called at any time and does
	// not wait. nil: they all talk to that.
	AgentOf func(person string) string
	// Voices know people by their voices; nil: nobody is told apart.
	Voices identify.Book

	// Latest returns the options as they are now: they count from the next turn on, but for those that say what the
	// conversation is of and who is told of it: VAD, Features, Prompts, Devices, Tokens, Reply, Log, Keeper and all
	// functions but FastPath, Phrases and Persona. It returns nil as long as nothing has changed since these Options, or
	// since it was called last. It is called often, by one goroutine at a time, and does not wait. nil: they stay as they are.
	Latest func() *Options
	// Renewed is called when other options count, on the goroutine of the conversation. It must not wait. nil: nobody is told.
	Renewed func()
	// Limits are those of the tools, from the next turn on; nil: as the router has them.
	Limits *router.Limits

	// Features are what conversations can do beside answering; their names differ.
	Features []feature.Feature
	Quiet    feature.Quiet // when nothing is told that nobody has asked for; nil: never
	Prompts  *prompts.Set
	Devices  *Devices
	Tokens   func(string) int // of a text (history.Tokens); nil: bytes are counted

	Name          string         // of the assistant; "": as the catalogue says
	Prompt        string         // name of the system prompt; "" means default
	MaxCalls      int            // tool calls in a turn; 0 means 16
	MaxDaily      int            // tool calls of a device's turns in a day (UTC); 0 means 2000
	MaxSteps      int            // model calls in a turn, before one forced answer; 0 means 5
	HistoryTokens int            // budget of the dialogue; 0 means 6000
	WakeWords     []string       // nil: those of the stock firmwares
	StopWords     []string       // what ends music, and a reply in realtime mode, when it is all that was said; nil: a short list
	ExitWords     []string       // what ends the conversation when it is all that was said; nil: a short list
	Zone          *time.Location // nil: the machine's

	IdleClose time.Duration // neither speech nor turn for so long: hang up; 0 means 100 s
	Guard     time.Duration // from tts start to the first frame; 0 means 105 ms
	StopAfter time.Duration // from the end of play-out to tts stop; 0 means 100 ms
	// BargeIn is how much voice pauses or cuts a reply in realtime mode; 0 means
	// 280 ms: nine detector windows, which are there 300 ms after the voice began.
	BargeIn     time.Duration
	NoEchoGuard bool // words of the reply itself interrupt it
	// Drafts limits how often the answer to one utterance may begin at a pause that may
	// be its end; 0 means 3, less than 0 never.
	Drafts int
	// SlowAfter is how long a recogniser or a model may give nothing before the
	// user is told so; 0 means 2.5 s, less than 0 never.
	SlowAfter        time.Duration
	StepTimeout      time.Duration // how long the model may give nothing; 0 means 60 s
	SoundTimeout     time.Duration // how long a synthesiser may give no sound; 0 means 30 s
	RecognizeTimeout time.Duration // from the end of an utterance to its text; 0 means 30 s
	Lead             int           // frames sent ahead; 0 means 4
	Sounds           *speak.Cache  // of fixed phrases; nil: they are synthesised each time
	Levels           *audio.Levels // how loud voices are, to bring them to one loudness; nil: they stay as they are
	Endpoint         audio.EndpointOptions
	Reply            audio.Format // zero: audio.Reply
	Coding           audio.Coding // of Reply; zero: audio.Usual
	Log              *slog.Logger // nil: discarded

	Keeper Keeper // of what outlives the process; nil: nothing does

	// Recall is given what the device's record holds when a conversation begins,
	// on its goroutine, before it does anything; nil: nobody wants to know.
	Recall func(Memory)

	// Report is told what comes of hearing and answering, on the goroutine of the conversation. It must not wait. nil:
	// nobody is told.
	Report func(Report)
	// Phase is told each other phase of the conversation, on its goroutine. It must not wait. nil: nobody is told.
	Phase func(turn.Phase)
	// Meter sees the sound of the microphone, at 16 kHz, before anything is found in it. It must neither wait nor keep it,
	// and may be called by two goroutines at the same time, while the device changes its mode. nil: nobody looks.
	Meter func(pcm []int16)
}

// with returns the options with what of others counts from the next turn on.
func (o Options) with(latest *Options) Options {
	now := *latest
	now.VAD, now.Features, now.Prompts, now.Devices, now.Tokens = o.VAD, o.Features, o.Prompts, o.Devices, o.Tokens
	now.Reply, now.Log, now.Keeper, now.Quiet = o.Reply, o.Log, o.Keeper, o.Quiet
	now.Latest, now.Renewed, now.Recall, now.Report, now.Phase, now.Meter = o.Latest, o.Renewed, o.Recall, o.Report, o.Phase, o.Meter
	return now
}

func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, message.In(text.Chinese, "agent/name"))
	o.Prompt = cmp.Or(o.Prompt, "default")
	o.MaxSteps = cmp.Or(o.MaxSteps, 5)
	o.MaxCalls = cmp.Or(o.MaxCalls, 16)
	o.MaxDaily = cmp.Or(o.MaxDaily, 2000)
	o.HistoryTokens = cmp.Or(o.HistoryTokens, 6000)
	o.IdleClose = cmp.Or(o.IdleClose, 100*time.Second)
	o.Guard = cmp.Or(o.Guard, 105*time.Millisecond)
	o.StopAfter = cmp.Or(o.StopAfter, 100*time.Millisecond)
	o.BargeIn = cmp.Or(o.BargeIn, 280*time.Millisecond)
	o.StepTimeout = cmp.Or(o.StepTimeout, 60*time.Second)
	o.Drafts = cmp.Or(o.Drafts, 3)
	o.SlowAfter = cmp.Or(o.SlowAfter, 2500*time.Millisecond)
	o.SoundTimeout = cmp.Or(o.SoundTimeout, 30*time.Second)
	o.RecognizeTimeout = cmp.Or(o.RecognizeTimeout, 30*time.Second)
	o.Lead = cmp.Or(o.Lead, 4)
	o.Reply = cmp.Or(o.Reply, audio.Reply)
	o.Coding = cmp.Or(o.Coding, audio.Usual())
	o.Zone = cmp.Or(o.Zone, time.Local)
	o.WakeWords = wordsOr(o.WakeWords, "agent/wake-words")
	o.ExitWords = wordsOr(o.ExitWords, "agent/exit-words")
	o.StopWords = wordsOr(o.StopWords, "agent/stop-words")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// StopWords are the words that stop music and a reply when nothing else is set.
func StopWords() []string { return wordsOr(nil, "agent/stop-words") }

// wordsOr returns words; if they are nil, those of the catalogue in both languages.
func wordsOr(words []string, id string) []string {
	if words != nil {
		return words
	}
	return slices.Concat(message.List(text.Chinese, id), message.List(text.English, id))
}

func (o Options) speak() speak.Options {
	return speak.Options{
		TTS: o.TTS, Prompts: o.Prompts, Cache: o.Sounds, Levels: o.Levels, Reply: o.Reply, Coding: o.Coding, Lead: o.Lead,
		Guard: o.Guard, StopAfter: o.StopAfter, SlowAfter: o.SlowAfter, SoundTimeout: o.SoundTimeout,
	}
}

// Preload encodes what is said when the server is overloaded or ends into o.Sounds ([speak.Preload]).
func Preload(o Options) error {
	s := o.withDefaults().speak()
	return speak.Preload(&s, prompts.Overload, prompts.ShuttingDown)
}

// Prewarm speaks fixed phrases in a voice, "" is that of o.TTS, into o.Sounds ([speak.Prewarm]).
func Prewarm(ctx context.Context, o Options, ids []string, languages []text.Lang, voice string) error {
	s := o.withDefaults().speak()
	return speak.Prewarm(ctx, &s, ids, languages, voice)
}
