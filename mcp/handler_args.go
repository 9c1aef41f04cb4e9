package mcp

import (
	"encoding/json"
	"fmt"
	"time"
)

// The handlers of a conversation that a tool can name with CallHandler (docs/mcp.md,
// Dialects 8). The tools of mcp/local name them, the conversation runs them.
const (
	HandlerExit       = "mcp_handler_exit"        // ExitArgs
	HandlerTakePhoto  = "mcp_handler_take_photo"  // PhotoArgs
	HandlerPlayMusic  = "mcp_handler_play_music"  // MusicArgs
	HandlerChangeRole = "mcp_handler_change_role" // RoleArgs
	HandlerForget     = "mcp_handler_forget"      // no arguments
	HandlerTimer      = "mcp_handler_timer"       // TimerArgs
	HandlerMemory     = "mcp_handler_memory"      // MemoryArgs
	HandlerQuiet      = "mcp_handler_quiet"       // QuietArgs
	HandlerRoutine    = "mcp_handler_routine"     // RoutineArgs
	HandlerEnrol      = "mcp_handler_enrol_voice" // EnrolArgs
)

// ExitArgs ask for the end of the conversation.
type ExitArgs struct {
	SayGoodbye string `json:"say_goodbye,omitempty"` // the farewell; "": the server's own
}

// PhotoArgs ask for a picture and what is to be seen on it.
type PhotoArgs struct {
	Question string `json:"question"`           // never ""
	Tool     string `json:"tool"`               // the device's camera tool, as the device names it
	Argument string `json:"argument,omitempty"` // the argument of Tool that takes the question; "": it takes none
}

// MusicAction is an order to the player.
type MusicAction string

// The orders to the player.
const (
	MusicPlay   MusicAction = "play"
	MusicStop   MusicAction = "stop"
	MusicPause  MusicAction = "pause"
	MusicResume MusicAction = "resume"
	MusicNext   MusicAction = "next"
)

// MusicArgs ask for music of the server's library, or to stop and the like.
type MusicArgs struct {
	Action MusicAction `json:"action"`
	Name   string      `json:"name,omitempty"`  // what was asked for; "": anything. Only with MusicPlay
	Song   string      `json:"song,omitempty"`  // the id of the song that was found. Only with MusicPlay
	Title  string      `json:"title,omitempty"` // of that song, as people say it. Only with MusicPlay
}

// RoleArgs ask for another role.
type RoleArgs struct {
	Role string `json:"role"` // the name of a prompt; "": back to the configured one
}

// TimerAction is an order about timers.
type TimerAction string

// The orders about timers.
const (
	TimerSet    TimerAction = "set"
	TimerList   TimerAction = "list"
	TimerCancel TimerAction = "cancel"
	TimerSnooze TimerAction = "snooze"
	TimerChange TimerAction = "change"
)

// TimerArgs ask to set a timer or reminder, to list them, to cancel them, to put off
// what has rung, or to change when one is due.
type TimerArgs struct {
	Action   TimerAction `json:"action"`
	Reminder bool        `json:"reminder,omitempty"` // set: it is for a time of day, not for a length of time
	Due      time.Time   `json:"due,omitzero"`       // set, snooze: when, in the turn's zone; of what recurs, when it begins
	Repeat   string      `json:"repeat,omitempty"`   // set: how a reminder recurs, as RFC 5545 writes it; "": once
	Kind     string      `json:"kind,omitempty"`     // cancel, change: "timer" or "alert"; "": either
	Text     string      `json:"text,omitempty"`     // set: what to tell, "" for a bare timer. cancel, change: words of the one meant
	All      bool        `json:"all,omitempty"`      // cancel: every one
	To       string      `json:"to,omitempty"`       // change: when it is due from now on, in the user's words
	By       int64       `json:"by,omitempty"`       // change, without To: so many seconds later, or earlier
}

// MemoryAction is an order about what is remembered.
type MemoryAction string

// The orders about what is remembered.
const (
	MemoryRemember  MemoryAction = "remember"
	MemoryRecall    MemoryAction = "recall"
	MemoryForget    MemoryAction = "forget"
	MemoryForgetAll MemoryAction = "forget_all"
)

// MemoryArgs ask to remember something, to tell what is remembered, or to forget it.
type MemoryArgs struct {
	Action MemoryAction `json:"action"`
	Text   string       `json:"text,omitempty"` // remember: what. recall, forget: words of it; "": everything, and what was spoken of last
}

// QuietArgs ask that a device says nothing unasked, or that it may again.
type QuietArgs struct {
	On    bool      `json:"on"`
	Until time.Time `json:"until,omitzero"` // in the turn's zone; zero: until somebody ends it
}

// RoutineAction is an order about routines.
type RoutineAction string

// The orders about routines.
const (
	RoutineSet    RoutineAction = "set"
	RoutineList   RoutineAction = "list"
	RoutineCancel RoutineAction = "cancel"
)

// RoutineArgs ask to set up what is done at times, to list it, or to cancel it.
type RoutineArgs struct {
	Action RoutineAction `json:"action"`
	When   string        `json:"when,omitempty"`   // set: the words for the times
	Repeat string        `json:"repeat,omitempty"` // set: a rule of RFC 5545; "": as When says
	Prompt string        `json:"prompt,omitempty"` // set: what is to be done then
	To     string        `json:"to,omitempty"`     // set: other devices; "": this one
	Name   string        `json:"name,omitempty"`   // set: of the routine. cancel: words of the one meant
	All    bool          `json:"all,omitempty"`    // cancel: every one of this device
}

// EnrolArgs ask for somebody's voice to be learned.
type EnrolArgs struct {
	Name string `json:"name,omitempty"` // of that one; "": it is asked for
}

// DecodeArgs reads the arguments that a CallHandler carries: a T, or anything that has T's
// form as JSON. nil is the zero T.
func DecodeArgs[T any](args any) (T, error) {
	var out T
	if given, ok := args.(T); ok || args == nil {
		return given, nil
	}
	data, err := json.Marshal(args)
	if err != nil {
		return out, fmt.Errorf("encode arguments of a handler: %w", err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return *new(T), fmt.Errorf("decode arguments of a handler: %w", err)
	}
	return out, nil
}
