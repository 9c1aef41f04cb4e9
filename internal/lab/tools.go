package lab

import (
	"bytes"
	"encoding/json"
	"reflect"

	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
)

// Recorded is a call of a tool that was made in the kept turn, and what it answered.
type Recorded struct {
	Name      string
	Arguments string // JSON
	Result    string
	// Ends says that the model was not asked again after it: Said is what was said in that step then.
	Ends bool
	Said string
}

// From says where the answer to a call of a trial comes from.
type From string

// The origins.
const (
	FromRecord From = "record" // the same call was made in the kept turn
	FromOther  From = "other"  // the tool was called there with other arguments
	FromNone   From = "none"   // it was not called there: nothing was asked of it, which the model is told
	FromTurn   From = "turn"   // it is the kept turn itself
)

// CallRow is a call that a model asked for.
type CallRow struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Result    string `json:"result"`
	From      From   `json:"from"`

	ends bool // it ended the kept turn
	said string
}

// answers gives the results of a record. No tool is called.
type answers struct {
	record []Recorded
	used   map[int]bool
}

// answer answers a call: by the result of the same call, else of the same tool, else by a text that says it was not made. Each
// result of the same call is given once before it is given again.
func (a *answers) answer(call providers.ToolCall) CallRow {
	row := CallRow{Name: call.Name, Arguments: call.Arguments, Result: message.Both("lab/not-called"), From: FromNone}
	again := -1
	for i, r := range a.record {
		switch {
		case r.Name != call.Name:
			continue
		case !sameJSON(r.Arguments, call.Arguments):
			if row.From == FromNone {
				row.Result, row.From = r.Result, FromOther
			}
			continue
		case a.used[i]:
			again = i
			continue
		}
		if a.used == nil {
			a.used = map[int]bool{}
		}
		a.used[i] = true
		row.Result, row.From, row.ends, row.said = r.Result, FromRecord, r.Ends, r.Said
		return row
	}
	if again >= 0 {
		row.Result, row.From = a.record[again].Result, FromRecord
	}
	return row
}

// sameJSON reports whether two texts are the same JSON, or the same text.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	read := func(s string) (v any, ok bool) {
		if len(bytes.TrimSpace([]byte(s))) == 0 {
			s = "{}"
		}
		d := json.NewDecoder(bytes.NewReader([]byte(s)))
		d.UseNumber()
		return v, d.Decode(&v) == nil
	}
	x, isX := read(a)
	y, isY := read(b)
	return isX && isY && reflect.DeepEqual(x, y)
}
