package record

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
)

// maxLine is how long a line of a recording may be, in bytes.
const maxLine = 16 << 20

// errNoRecord says that something else was read.
var errNoRecord = errors.New("this is no recording")

// Recording holds what was written of one conversation.
type Recording struct {
	Entries []Entry // the first is Begin
	Torn    bool    // its last line was not whole: the server was stopped
}

// Begin is the first entry; nil if there is none.
func (r *Recording) Begin() *Begin {
	if len(r.Entries) == 0 {
		return nil
	}
	return r.Entries[0].Begin
}

// Write writes a recording as lines.
func (r *Recording) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	lines := json.NewEncoder(b)
	for _, e := range r.Entries {
		if err := lines.Encode(e); err != nil {
			return fmt.Errorf("write a recording: %w", err)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write a recording: %w", err)
	}
	return nil
}

// Read reads a recording, plain or in gzip. One whose last line is torn is read
// up to there.
func Read(from io.Reader) (*Recording, error) {
	in := bufio.NewReader(from)
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		plain, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("read a recording: gzip: %w", err)
		}
		in = bufio.NewReader(plain)
	}
	r := &Recording{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if r.Torn {
			return nil, fmt.Errorf("read a recording: line %d is no entry", n-1)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			if n == 1 {
				return nil, fmt.Errorf("read a recording: line 1: %w: %w", errNoRecord, err)
			}
			r.Torn = true
			continue
		}
		r.Entries = append(r.Entries, e)
		switch b := r.Begin(); {
		case b == nil:
			return nil, fmt.Errorf("read a recording: line 1: %w", errNoRecord)
		case b.Version != Version:
			return nil, fmt.Errorf("read a recording: line 1: %w: its version is %d, this program reads %d", errNoRecord, b.Version, Version)
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read a recording: after %d lines: %w", len(r.Entries), err)
	}
	if r.Begin() == nil {
		return nil, fmt.Errorf("read a recording: %w", errNoRecord)
	}
	return r, nil
}

// Settings are the members of a struct that are plain values and not zero, by
// their names: numbers, words, and lists and structs of such. Functions and
// engines are none.
type Settings map[string]json.RawMessage

// settingsOf reads them from a struct.
func settingsOf(from any) Settings {
	out := Settings{}
	v := reflect.ValueOf(from)
	for f, value := range v.Fields() {
		if !f.IsExported() || !isPlain(f.Type) || value.IsZero() {
			continue
		}
		if data, err := json.Marshal(value.Interface()); err == nil {
			out[f.Name] = data
		}
	}
	return out
}

// Apply sets them in the struct that to points to.
func (s Settings) Apply(to any) error {
	v := reflect.ValueOf(to).Elem()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		f := v.FieldByName(name)
		if !f.IsValid() || !f.CanSet() || !isPlain(f.Type()) {
			return fmt.Errorf("setting %q of the recording is not known here", name)
		}
		if err := json.Unmarshal(s[name], f.Addr().Interface()); err != nil {
			return fmt.Errorf("setting %q of the recording: %w", name, err)
		}
	}
	return nil
}

// isPlain reports whether values of a type say all there is of them as JSON.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return isPlain(t.Elem())
	case reflect.Map:
		return t.Key().Kind() == reflect.String && isPlain(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if !f.IsExported() || !isPlain(f.Type) {
				return false
			}
		}
		return true
	case reflect.Bool, reflect.String:
		return true
	default:
		return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 && t.Kind() != reflect.Uintptr
	}
}
