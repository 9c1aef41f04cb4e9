package rules

// The ids of the phrases that the brain says. Their texts live in prompts.
const (
	phraseOK              = "ok"
	phraseGoodbye         = "goodbye"
	phraseNoLLM           = "no_llm"
	phraseLLMDown         = "llm_down"
	phraseWhatCanIDo      = "what_can_i_do"
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
	phraseTimerSet        = "rules_timer_set"        // {duration}
	phraseNoTimer         = "rules_no_timer"         //
	phraseTimers          = "rules_timers"           // {count} {timers}
	phraseOneTimer        = "rules_one_timer"        // {timers}
	phraseTimerLeft       = "rules_timer_left"       // {length} {left}
	phraseTimerNamed      = "rules_timer_named"      // {text} {left}
	phraseTimerDue        = "rules_timer_due"        // {text} {due}
	phraseNoPhoto         = "rules_no_photo"         //
	phraseHello           = "rules_hello"            // {name}
	phraseThanks          = "rules_thanks"           //
	phraseWho             = "rules_who"              // {name}
	phraseDone            = "rules_done"             //
	phraseFailed          = "rules_failed"           // {reason}
	phraseFailedPlain     = "rules_failed_plain"     //
)

// PhraseIDs lists the phrases that Options.Prompts is asked for.
func PhraseIDs() []string {
	return []string{
		phraseOK, phraseGoodbye, phraseNoLLM, phraseLLMDown, phraseWhatCanIDo,
		phraseTime, phraseDate, phraseVolumeSet, phraseVolumeIs, phraseBrightnessSet, phraseBrightnessIs,
		phraseNoVolume, phraseNoBrightness, phraseNotTold, phraseNoStatus, phraseBattery, phraseBatteryCharging,
		phraseStatus, phraseNoMusic, phraseTimerSet, phraseNoTimer,
		phraseTimers, phraseOneTimer, phraseTimerLeft, phraseTimerNamed, phraseTimerDue, phraseNoPhoto,
		phraseHello, phraseThanks, phraseWho, phraseDone, phraseFailed, phraseFailedPlain,
	}
}
