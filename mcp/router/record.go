package router

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/lru"
	"xiaozhi/internal/text"
	"xiaozhi/mcp"
)

// Record describes one call that has ended, for the log and the API.
type Record struct {
	CallID    string        `json:"call_id"`
	Tool      string        `json:"tool"`
	Source    string        `json:"source"`
	Kind      mcp.Kind      `json:"kind"`
	Arguments string        `json:"arguments,omitempty"` // with [Options.Words]: JSON, secrets masked, cut at 256 bytes
	Result    string        `json:"result,omitempty"`    // with [Options.Words]: the beginning, secrets of JSON masked
	Started   time.Time     `json:"started"`             // when it was sent; zero if it never was
	Took      time.Duration `json:"took"`                // nanoseconds
	Outcome   string        `json:"outcome"`             // the action's name
	Awaited   bool          `json:"awaited"`             // false: its success was assumed
	Late      bool          `json:"late"`                // it failed after its success was assumed
	Refusal   Refusal       `json:"refusal,omitempty"`   // why it was not made; "": it was
	By        mcp.Asker     `json:"-"`                   // who wanted it

	ArgumentsDigest string `json:"arguments_digest,omitempty"` // tells the same arguments from others without showing them
	ResultDigest    string `json:"result_digest,omitempty"`    // of a call that was made
}

// Refusal says why a call was not made.
type Refusal string

// The refusals.
const (
	RefusedUnknown Refusal = "not_found" // there is no such tool
	RefusedDenied  Refusal = "denied"    // by a setting, or by the rights of who calls
	RefusedInvalid Refusal = "invalid"   // its arguments cannot be used
	RefusedConsent Refusal = "consent"   // nobody has said yes, where somebody must
	RefusedLimit   Refusal = "limit"     // one of a turn or a day is reached
	RefusedBusy    Refusal = "busy"      // too many calls wait, or the same one runs
	RefusedClosed  Refusal = "closed"    // the conversation ends
)

// Refusals lists all of them, in a stable order.
func Refusals() []Refusal {
	return []Refusal{RefusedUnknown, RefusedDenied, RefusedInvalid, RefusedConsent, RefusedLimit, RefusedBusy, RefusedClosed}
}

// digestBytes is how much of a hash a digest shows: enough that no two things are taken for one.
const digestBytes = 16

// Digest returns what tells a text from others without showing it; "" for none.
func Digest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:digestBytes])
}

// DigestOf returns the digest of arguments as a model writes them, whatever their order; "" for what is no JSON. Secrets leave
// no trace in it: a PIN of four digits is soon found for a digest.
func DigestOf(arguments string) string {
	var value any
	if json.Unmarshal([]byte(cmp.Or(arguments, "{}")), &value) != nil {
		return "" // nothing is known of it
	}
	return digestOf(value)
}

func digestOf(value any) string {
	data, err := json.Marshal(masked(value, wholeText))
	if err != nil {
		return ""
	}
	return Digest(string(data))
}

// digest is that of the arguments of a call, as they are sent.
func (p Prepared) digest() string {
	if p.Arguments == nil { // they were not read
		return DigestOf(p.Call.Arguments)
	}
	return digestOf(p.Arguments)
}

// Bytes of a call's arguments in a record, and of its result in the log.
const (
	maxSummary       = 256
	maxResultSummary = 128
	maxKeptResult    = 1 << 10 // in a record
)

// summary returns the arguments of a call as they may be shown: values with the
// name of a secret are masked, long ones are cut.
func summary(arguments map[string]any) string {
	data, err := json.Marshal(masked(arguments, shortText))
	if err != nil {
		return "{}"
	}
	return text.Shorten(string(data), maxSummary)
}

// resultSummary returns the beginning of a result as it may be shown: without
// secrets if it is JSON.
func resultSummary(result string, limit int) string {
	var value any
	if strings.ContainsAny(result, "{[") && json.Unmarshal([]byte(result), &value) == nil {
		if data, err := json.Marshal(masked(value, shortText)); err == nil {
			result = string(data)
		}
	}
	return text.Shorten(result, limit)
}

// shortText cuts the texts of a value that is shown; wholeText keeps them.
func shortText(s string) string { return text.Shorten(s, 64) }
func wholeText(s string) string { return s }

// masked returns value without its secrets, and with its texts as of makes them.
func masked(value any, of func(string) string) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if out[name] = masked(member, of); isSecret(name) {
				out[name] = "***"
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = masked(item, of)
		}
		return out
	case string:
		return of(v)
	}
	return value
}

// secretWords are parts of the names of secrets, one a line.
//
//go:embed secret.txt
var secretWords string

// isSecret reports whether an argument of that name is likely to be a secret.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	for word := range strings.FieldsSeq(secretWords) {
		if strings.Contains(name, word) {
			return true
		}
	}
	return name == "key" || name == "pin"
}

// Limits of a Journal.
const (
	journalDepth   = 64   // records of one device
	journalDevices = 1024 // devices; the one without a call for longest makes room
)

// Journal keeps the last calls of each device. Its methods may be called at the same time.
type Journal struct{ calls *lru.Cache[string, []Record] }

// NewJournal makes an empty journal.
func NewJournal() *Journal { return &Journal{lru.New[string, []Record](journalDevices, 0)} }

// Add notes a call of a device.
func (j *Journal) Add(deviceID string, r Record) {
	j.calls.Update(deviceID, func(records []Record) ([]Record, int) {
		records = append(records, r)
		if over := len(records) - journalDepth; over > 0 {
			records = slices.Clone(records[over:])
		}
		return records, 0
	})
}

// Forget drops the calls of a device.
func (j *Journal) Forget(deviceID string) { j.calls.Remove(deviceID) }

// Calls returns the last calls of a device, the oldest first. The caller owns the slice.
func (j *Journal) Calls(deviceID string) []Record {
	records, _ := j.calls.Peek(deviceID)
	return slices.Clone(records)
}
