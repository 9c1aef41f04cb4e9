// Package rules is the small brain that needs no language model: a table of
// things people say to a speaker, in Chinese and English, and what follows from
// each. It works in steps like a model (it asks for a tool, and turns the
// tool's result into a sentence) but it is pure arithmetic on the request: it
// keeps nothing, waits for nothing, and never fails.
//
// It has two lives. As the last member of the LLM chain
// (Generate) it does all it can, and says plainly that no language model is
// configured, or that it failed, for everything else. As the fast path beside a
// real model (Answer) it takes only stop, volume, brightness, next and time.
//
// In a turn of any other language no rule applies: what is said then is a phrase of prompts.
package rules

import (
	"cmp"
	"context"
	"iter"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
)

// Options are the surroundings of a Brain. The zero value works, but says the
// ids of its phrases instead of their texts.
type Options struct {
	Prompts         func(id, lang string, args ...string) string // texts of the phrases below; nil gives the id back
	Name            string                                       // what the assistant calls itself; "": as the catalogue says
	Now             func() time.Time                             // nil is time.Now
	Zone            *time.Location                               // of times in requests that name no zone; nil is the machine's
	ModelConfigured bool                                         // a language model is configured, so that being asked means it failed
}

// Brain answers from rules. It is safe for many goroutines at once.
type Brain struct {
	options Options
}

var _ providers.LLM = (*Brain)(nil)

// New makes a Brain.
func New(o Options) *Brain {
	if o.Prompts == nil {
		o.Prompts = func(id, _ string, _ ...string) string { return id }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Name, o.Zone = cmp.Or(o.Name, assistantName()), cmp.Or(o.Zone, time.Local)
	chinese(fastOnly) // now: in the first turn that would take 20 ms of it
	english(fastOnly)
	if !o.ModelConfigured {
		chinese(everything)
		english(everything)
	}
	return &Brain{options: o}
}

// assistantName returns the name of the assistant where nothing else is set.
func assistantName() string { return message.In(text.Chinese, "agent/name") }

// Name is the name of every brain.
const Name = "rules"

// Name is [Name].
func (b *Brain) Name() string { return Name }

// Generate yields the whole step as one delta. What no rule covers is answered
// with the sentence that there is no language model, marked as a fallback. The
// only error is that of ctx.
func (b *Brain) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(providers.Delta{}, err)
			return
		}
		delta, ok := b.step(req, everything)
		if !ok {
			id := phraseNoLLM
			if b.options.ModelConfigured {
				id = phraseLLMDown
			}
			delta = providers.Delta{Text: b.say(id, langOf(req)), Fallback: true}
		}
		delta.Provider = b.Name()
		yield(delta, nil)
	}
}

// Answer returns the fast path beside a language model: the step, if it is one of
// stop, volume, brightness, next and time and the tools for it are there; else
// false, and the model is to be asked. It follows up only on its own calls.
func (b *Brain) Answer(req providers.LLMRequest) (providers.Delta, bool) {
	delta, ok := b.step(req, fastOnly)
	delta.Provider = b.Name()
	return delta, ok
}

// say returns the text of a phrase.
func (b *Brain) say(id string, lang text.Lang, args ...string) string {
	return b.options.Prompts(id, string(lang), args...)
}

// The ids of the phrases that the brain says. Their texts live in prompts.
const (
	phraseOK              = "ok"
	phraseGoodbye         = "goodbye"
	phraseNoLLM           = "no_llm"
	phraseLLMDown         = "llm_down"
	phraseWhatCanIDo      = "what_can_i_do"          // {things}, of those that follow
	phraseCanTell         = "rules_can_tell"         //
	phraseCanRing         = "rules_can_ring"         //
	phraseCanVolume       = "rules_can_volume"       //
	phraseCanBrightness   = "rules_can_brightness"   //
	phraseCanBattery      = "rules_can_battery"      //
	phraseCanPlay         = "rules_can_play"         //
	phraseCanLook         = "rules_can_look"         //
	phraseCanRead         = "rules_can_read"         //
	phraseCanSwitch       = "rules_can_switch"       //
	phraseCanWeather      = "rules_can_weather"      //
	phraseCanNews         = "rules_can_news"         //
	phraseCanSearch       = "rules_can_search"       //
	phraseCanRemember     = "rules_can_remember"     //
	phraseCanHome         = "rules_can_home"         //
	phraseFound           = "rules_found"            // {site} {text}
	phraseNetwork         = "rules_network"          // {name}
	phraseWhichRoom       = "rules_which_room"       // {rooms}
	phraseTime            = "rules_time"             // {time}
	phraseDate            = "rules_date"             // {date} {weekday}
	phraseVolumeSet       = "rules_volume_set"       // {value}
	phraseVolumeIs        = "rules_volume_is"        // {value}
	phraseBrightnessSet   = "rules_brightness_set"   // {value}
	phraseBrightnessIs    = "rules_brightness_is"    // {value}
	phraseNoVolume        = "rules_no_volume"        //
	phraseNoBrightness    = "rules_no_brightness"    //
	phraseNotTold         = "rules_not_told"         //
	phraseNoStatus        = "rules_no_status"        //
	phraseBattery         = "rules_battery"          // {level}
	phraseBatteryCharging = "rules_battery_charging" // {level}
	phraseStatus          = "rules_status"           // {volume}
	phraseNoMusic         = "rules_no_music"         //
	phraseNoSongs         = "rules_no_songs"         //
	phraseTimerSet        = "rules_timer_set"        // {duration}
	phraseNoTimer         = "rules_no_timer"         //
	phraseTimers          = "rules_timers"           // {count} {timers}
	phraseOneTimer        = "rules_one_timer"        // {timers}
	phraseTimerLeft       = "rules_timer_left"       // {length} {left}
	phraseTimerNamed      = "rules_timer_named"      // {text} {left}
	phraseTimerDue        = "rules_timer_due"        // {text} {due}
	phraseTimerRepeats    = "rules_timer_repeats"    // {text} {repeats}
	phraseWhichTimer      = "rules_which_timer"      //
	phraseWhen            = "rules_when"             //
	phraseItIsTime        = "rules_it_is_time"       // what a reminder of nothing says
	phraseGetUp           = "rules_get_up"           // what an alarm in the morning says
	phraseNoPhoto         = "rules_no_photo"         //
	phraseNoDocuments     = "rules_no_documents"     //
	phraseDocumentSays    = "rules_document_says"    // {source} {text}
	phraseHello           = "rules_hello"            // {name}
	phraseThanks          = "rules_thanks"           //
	phraseWho             = "rules_who"              // {name}
	phraseRoutine         = "routine_note"           // {prompt}
	phraseDone            = "rules_done"             //
	phraseFailed          = "rules_failed"           // {reason}
	phraseFailedPlain     = "rules_failed_plain"     //
)
