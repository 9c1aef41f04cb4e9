// Package routine has something done at times, or when something happens: devices say what a model finds out, or a text, play a
// song, or a tool is run.
package routine

import (
	"errors"
	"time"

	"xiaozhi/internal/recur"
	"xiaozhi/internal/text"
)

// Source says where a routine comes from.
type Source string

// The sources.
const (
	ByFile  Source = "file"  // a file of data/routines, which alone changes it
	ByVoice Source = "voice" // the user of a device, which is the only one that it is for
	ByAPI   Source = "api"   // a program
)

// Here, as an address, is the device on which what a routine waits for has happened.
const Here = "here"

// Definition is a routine as people write it. One of When and On is set, or Repeat with or without When, and one of Prompt,
// Say, Play and Tool.
type Definition struct {
	Name     string `json:"name,omitempty" yaml:"name"`
	To       string `json:"to" yaml:"to"`                       // an address as [fleet.Meant] reads it, or [Here]
	When     string `json:"when,omitempty" yaml:"when"`         // words for the times, or RFC 3339
	Repeat   string `json:"repeat,omitempty" yaml:"repeat"`     // a rule of RFC 5545, which begins with When
	Zone     string `json:"zone,omitempty" yaml:"zone"`         // in which When counts; "": that of the device, or of the server
	On       *On    `json:"on,omitempty" yaml:"on"`             // what it waits for
	Prompt   string `json:"prompt,omitempty" yaml:"prompt"`     // is told to the model of each device, which may use its tools
	Say      string `json:"say,omitempty" yaml:"say"`           // is said as it is
	Play     string `json:"play,omitempty" yaml:"play"`         // a song: a name, or a URL
	Tool     *Tool  `json:"tool,omitempty" yaml:"tool"`         // is run
	Language string `json:"language,omitempty" yaml:"language"` // a tag; "": the text tells it, or the device
	Priority string `json:"priority,omitempty" yaml:"priority"` // as [mail.ParsePriority] reads it
	Late     Span   `json:"late,omitempty" yaml:"late"`         // how late it may still be done, or heard; 0: two hours
	Limit    int    `json:"limit,omitempty" yaml:"limit"`       // of On: how often an hour; 0: 30
	Disabled bool   `json:"disabled,omitempty" yaml:"disabled"`
}

// On is something that happens. One of Hook, Tool and Resource is set.
type On struct {
	Hook      bool   `json:"hook,omitempty" yaml:"hook"`         // POST /api/v1/hooks/ID with the token of the routine
	Token     string `json:"-" yaml:"token"`                     // of Hook, in a file
	TokenFile string `json:"-" yaml:"token_file"`                // a file that holds Token
	Tool      string `json:"tool,omitempty" yaml:"tool"`         // a tool has run whose name fits, as [mcp.Fits] reads it
	Device    string `json:"device,omitempty" yaml:"device"`     // of Tool: an id or a name; "": on any
	Failed    bool   `json:"failed,omitempty" yaml:"failed"`     // of Tool: it has failed; else it has not
	Contains  string `json:"contains,omitempty" yaml:"contains"` // what has happened holds this text, whatever its case
	Server    string `json:"server,omitempty" yaml:"server"`     // of Resource: the name of a server of tools
	Resource  string `json:"resource,omitempty" yaml:"resource"` // the URI of a resource of an MCP server, which has changed
}

// Tool is a call.
type Tool struct {
	Name      string         `json:"name" yaml:"name"`
	Arguments map[string]any `json:"arguments,omitempty" yaml:"arguments"`
	Say       bool           `json:"say,omitempty" yaml:"say"` // the devices say its result
}

// Outcome says how a routine went last.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"    // what devices are to say is kept until they have said it; a tool has run
	Failed  Outcome = "failed"  // State.Why says why
	Missed  Outcome = "missed"  // the server did not run at its time, and it was too late afterwards
	Limited Outcome = "limited" // it came too often, or a routine has caused it that was caused by one, and so on
)

// State tells how a routine went last, and when it comes next.
type State struct {
	Times   recur.Times `json:"times,omitzero"`
	Due     time.Time   `json:"due,omitzero"`   // zero: at no time
	Plan    string      `json:"plan,omitempty"` // from which Times and Due were made
	Ran     time.Time   `json:"ran,omitzero"`
	Outcome Outcome     `json:"outcome,omitempty"`
	Why     string      `json:"why,omitempty"` // of Failed
	Runs    int         `json:"runs,omitempty"`
	Missed  int         `json:"missed,omitempty"` // times
}

// Routine is a definition with its state. It is a value.
type Routine struct {
	ID     string // of a file the name that it has there
	Source Source
	File   string // of ByFile
	Device string // of ByVoice: the device that it is for
	ByID   string // id of the account of who has made it; "": of nobody
	By     string // name of that
	Hash   string // of the token of its hook
	Made   time.Time

	Definition
	State
}

// Lang is the language in which it was asked for; "": none was named.
func (r Routine) Lang() text.Lang { return text.Lang(r.Language) }

// Run is one time at which a routine is done.
type Run struct {
	Key    string    // of what devices are to say: each gets one with that key
	Ends   time.Time // nothing of it is to be heard afterwards
	Device string    // on which it has happened; "": nowhere
	Event  string    // what has happened; "": its time has come
}

// Errors of routines, beside [Mistake] and those of the store.
var (
	ErrNone   = errors.New("there is no such routine")
	ErrFile   = errors.New("the routine stands in a file, which alone changes it")
	ErrMany   = errors.New("there are too many routines")
	ErrDevice = errors.New("a routine that was set by voice is for its device alone")
	ErrOften  = errors.New("the routine was begun too often")
)
