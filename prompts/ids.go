package prompts

// The ids of the phrases. The phrase files of all languages hold exactly these.
const (
	Pardon       = "pardon"
	HintNoSpeech = "hint_no_speech"
	NoChineseASR = "no_chinese_asr"
	NoASR        = "no_asr"
	NoVoice      = "no_voice"

	FailASR      = "fail_asr"
	FailLLM      = "fail_llm"
	FailTTS      = "fail_tts"
	FailTool     = "fail_tool"
	FailInternal = "fail_internal"
	FailTimeout  = "fail_timeout"
	SlowASR      = "slow_asr"
	SlowLLM      = "slow_llm"
	SlowTTS      = "slow_tts"
	Overload     = "overload"
	ShuttingDown = "shutting_down"

	PairNeeded  = "pair_needed"
	PairCode    = "pair_code" // {code}
	PairClosed  = "pair_closed"
	PairRefused = "pair_refused"

	OK       = "ok"
	Goodbye  = "goodbye"
	Greeting = "greeting"
	Filler   = "filler"

	FillerLong = "filler_long"

	FillerQuarter = "filler_quarter"
	FillerHalf    = "filler_half"
	FillerMost    = "filler_most"

	UnknownTool = "unknown_tool"
	ToolFailed  = "tool_failed" // {tool}

	LateFailure = "late_failure" // {action}, {reason}
	LateUnknown = "late_unknown" // {action}
	ConsentAsk  = "consent_ask"  // {action}
	ConsentNo   = "consent_no"

	ConsentVoice  = "consent_voice"  // {people}
	ConsentOthers = "consent_others" // {people}

	EnrolName    = "enrol_name"
	EnrolBegin   = "enrol_begin" // {name}
	EnrolSecond  = "enrol_second"
	EnrolThird   = "enrol_third"
	EnrolShort   = "enrol_short"
	EnrolQuiet   = "enrol_quiet"
	EnrolDone    = "enrol_done"    // {name}
	EnrolOther   = "enrol_other"   // {name}
	EnrolConsole = "enrol_console" // {name}
	EnrolUnlike  = "enrol_unlike"
	EnrolFailed  = "enrol_failed"
	EnrolStopped = "enrol_stopped"
	EnrolOff     = "enrol_off"

	JobDone = "job_done" // {action}
	JobNote = "job_note" // {tool}, {result}; for the model, not for the ear
	JobLost = "job_lost" // {action}

	QuietUntil = "quiet_until" // {time}
	QuietOn    = "quiet_on"
	QuietOff   = "quiet_off"
	QuietHouse = "quiet_house"

	RoutineSet       = "routine_set"       // {when}, {what}
	RoutineCancelled = "routine_cancelled" // {name}
	RoutineNote      = "routine_note"      // {prompt}; for the model, not for the ear
	RoutineFailed    = "routine_failed"    // {what}
	RoutineNone      = "routine_none"
	RoutineList      = "routine_list"  // {routines}
	RoutineWhich     = "routine_which" // {routines}
	RoutineAsleep    = "routine_asleep"

	EarlierTalk = "earlier_talk" // {dialogue}, {words}; for the model, not for the ear

	Forgotten   = "forgotten"
	RoleChanged = "role_changed"

	RoleBack = "role_back"

	Remembered         = "remembered"         // {fact}
	RememberedAlready  = "remembered_already" // {fact}
	MemoryNone         = "memory_none"
	MemoryList         = "memory_list"       // {facts}
	MemoryForgot       = "memory_forgot"     // {fact}
	MemoryForgotAll    = "memory_forgot_all" // {count}
	MemoryForgetsLater = "memory_forgets_later"
	MemoryUnknown      = "memory_unknown"
	MemoryOff          = "memory_off"

	TimerSet    = "timer_set"    // {duration}
	ReminderSet = "reminder_set" // {time}

	ReminderRepeats = "reminder_repeats" // {rule}, {time}
	ReminderAsleep  = "reminder_asleep"

	TimerDue       = "timer_due"       //
	ReminderDue    = "reminder_due"    // {text}
	AlarmLate      = "alarm_late"      // {time}
	AlarmMissed    = "alarm_missed"    // {count}
	TimerCancelled = "timer_cancelled" //

	MusicPlay = "music_play" // {title}
	MusicNone = "music_none"

	LookPrompt   = "look_prompt"   // a model's instruction for looking at pictures
	LookQuestion = "look_question" // its question when there is none
	NoVision     = "no_vision"
	VisionDown   = "vision_down"

	NoLLM      = "no_llm"
	LLMDown    = "llm_down"
	WhatCanIDo = "what_can_i_do"
)

// brainPhrases are the ids that begin with this word: only providers/rules says
// them, and it holds their names.
const brainPhrases = "rules_"

// The ids of single words in prompts. They are never spoken alone.
const (
	wordPhrases     = "word_" // begins them all
	deviceName      = "word_speaker"
	languageChinese = "word_chinese"
	languageEnglish = "word_english"
	answerIn        = "word_answer_in" // {language}
)

// IDs lists the ids that have a constant here, in the order of the file.
func IDs() []string {
	return []string{
		Pardon, HintNoSpeech, NoChineseASR, NoASR, NoVoice,
		FailASR, FailLLM, FailTTS, FailTool, FailInternal, FailTimeout, SlowASR, SlowLLM, SlowTTS, Overload, ShuttingDown,
		PairNeeded, PairCode, PairClosed, PairRefused,
		OK, Goodbye, Greeting, Filler,
		FillerLong, FillerQuarter, FillerHalf, FillerMost, UnknownTool, ToolFailed,
		LateFailure, LateUnknown, ConsentAsk, ConsentNo, ConsentVoice, ConsentOthers, EnrolName, EnrolBegin, EnrolSecond, EnrolThird, EnrolShort, EnrolQuiet, EnrolDone, EnrolOther, EnrolConsole, EnrolUnlike, EnrolFailed,
		EnrolStopped, EnrolOff, JobDone, JobNote, JobLost,
		QuietUntil, QuietOn, QuietOff, QuietHouse, RoutineSet, RoutineCancelled, RoutineNote, RoutineFailed,
		RoutineNone, RoutineList, RoutineWhich, RoutineAsleep, EarlierTalk,
		Forgotten, RoleChanged, RoleBack,
		Remembered, RememberedAlready, MemoryNone, MemoryList, MemoryForgot, MemoryForgotAll, MemoryForgetsLater, MemoryUnknown, MemoryOff,
		TimerSet, ReminderSet, ReminderRepeats, ReminderAsleep, TimerDue, ReminderDue, AlarmLate, AlarmMissed, TimerCancelled,
		MusicPlay, MusicNone,
		LookPrompt, LookQuestion, NoVision, VisionDown,
		NoLLM, LLMDown, WhatCanIDo,
	}
}
