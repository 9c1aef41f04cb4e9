package router

import (
	_ "embed"
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
	By        mcp.Asker     `json:"-"`                   // who wanted it
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
	data, err := json.Marshal(masked(arguments))
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
		if data, err := json.Marshal(masked(value)); err == nil {
			result = string(data)
		}
	}
	return text.Shorten(result, limit)
}

// masked returns value without its secrets.
func masked(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if out[name] = masked(member); isSecret(name) {
				out[name] = "***"
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = masked(item)
		}
		return out
	case string:
		return text.Shorten(v, 64)
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
