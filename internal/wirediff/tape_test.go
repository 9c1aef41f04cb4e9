package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/devicetest"
)

// tape is the record of one talk: lines in streams whose order among each other
// does not count, and the sound of replies.
type tape struct {
	mu      sync.Mutex
	streams map[string][]string
	sounds  map[string][]sound // by device, in order
	loose   bool               // of sounds only the lengths are compared
}

// goesOn is part of every text that a talk cuts before its end.
const goesOn = "the story goes on"

// sound is the frames of one reply, or of what stands outside of replies.
type sound struct {
	frames    []string // hashes of the binary messages
	sentences []int    // frames before each subtitle
	cut       bool
}

func newTape() *tape {
	return &tape{streams: make(map[string][]string), sounds: make(map[string][]sound)}
}

// add writes a line into a stream.
func (t *tape) add(stream, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams[stream] = append(t.streams[stream], line)
}

func (t *tape) lines() int {
	n := 0
	for _, s := range t.streams {
		n += len(s)
	}
	for _, s := range t.sounds {
		for _, r := range s {
			n += len(r.frames)
		}
	}
	return n
}

// frame is a binary message from the server.
type frame struct {
	at   time.Time
	hash string
}

// device writes down what a device got and sent.
func (t *tape) device(name string, events []devicetest.Event, frames []frame) {
	var replies []sound
	var current sound
	open, next := false, 0
	take := func(until time.Time) {
		for ; next < len(frames) && !frames[next].at.After(until); next++ {
			current.frames = append(current.frames, frames[next].hash)
		}
	}
	flush := func() {
		if open || len(current.frames) > 0 {
			replies = append(replies, current)
		}
		current = sound{}
	}
	for _, e := range events {
		line := string(e.Raw)
		switch e.Kind {
		case devicetest.KindReceived:
			take(e.At)
			t.add(name+" "+channel(e)+" from server", line)
			switch {
			case e.Type == "tts" && e.State == "start":
				flush()
				open = true
			case e.Type == "tts" && e.State == "sentence_start":
				current.sentences = append(current.sentences, len(current.frames))
				current.cut = current.cut || strings.Contains(e.Text, goesOn)
			case e.Type == "tts" && e.State == "stop" && open:
				flush()
				open = false
			}
		case devicetest.KindSent:
			t.add(name+" "+channel(e)+" to server", line)
			current.cut = current.cut || open && (e.Type == "abort" || e.Type == "listen")
		case devicetest.KindViolation:
			if !devicetest.Rule(e.Type).Timed() {
				t.add(name+" breaches", e.Type+": "+e.Text)
			}
		case devicetest.KindClosed:
			t.add(name+" talk from server", "closed "+e.Text)
		case devicetest.KindFrame, devicetest.KindState, devicetest.KindTool, devicetest.KindReply: // seen on the wire
		}
	}
	take(time.Now())
	if open {
		current.cut = true
	}
	flush()
	t.sounds[name] = append(t.sounds[name], replies...)
}

// channel tells tools and talk apart: their messages do not wait for each other.
func channel(e devicetest.Event) string {
	switch e.Type {
	case "mcp", "iot", devicetest.LightCalled, devicetest.LightConfirmed:
		return "tools"
	}
	if bytes.HasPrefix(e.Raw, []byte(`{"jsonrpc"`)) && e.Type != devicetest.LightSaid {
		return "tools"
	}
	return "talk"
}

// hash is a frame without the time in its header.
func hash(protocol int, message []byte) string {
	if protocol == 2 && len(message) >= 12 {
		message = slices.Clone(message)
		clear(message[8:12])
	}
	sum := sha256.Sum256(message)
	return hex.EncodeToString(sum[:6])
}

// volatile are parts of texts that differ from run to run. Those named ID keep
// their identity: the first of a stream is ID1 wherever it comes again.
var volatile = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"HOST", regexp.MustCompile(`127\.0\.0\.1:\d+`)},
	{"TIME", regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?`)},
	{"TIME", regexp.MustCompile(`[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT`)},
	{`"token":"TOKEN"`, regexp.MustCompile(`"token":"[^"]{8,}"`)},
	{`"executionTime":TIME`, regexp.MustCompile(`"executionTime":[\d.]+`)},
	{"Content-Length: N", regexp.MustCompile(`Content-Length: \d+`)},
	{"ID", regexp.MustCompile(`tool-call-\d+-[a-z0-9]{6}`)},
	{`"uptime":TIME`, regexp.MustCompile(`"uptime":[\d.]+`)},
	{"TIME", regexp.MustCompile(`\d+点(\d+分)?|\b\d+:\d\d [AP]M|(\d+分钟)?\d+秒`)},
	{`"timestamp":TIME`, regexp.MustCompile(`"timestamp":\d+`)},
	// The WebSocket library ends a message over its limit by itself, without the reason that an own reader gave.
	{"close 1009", regexp.MustCompile(`close 1009 ?(message too big)?`)},
	{"ID", regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)},
	{"ID", regexp.MustCompile(`\b[0-9a-f]{16,64}\b`)},
	{"ID", regexp.MustCompile(`\b[A-Z2-7]{26}\b`)}, // base32, as of crypto/rand.Text
}

// normal evens out what differs from run to run.
func normal(lines []string) []string {
	ids := make(map[string]string)
	out := make([]string, len(lines))
	for i, line := range lines {
		for _, v := range volatile {
			line = v.pattern.ReplaceAllStringFunc(line, func(s string) string {
				if v.name != "ID" {
					return v.name
				}
				if ids[s] == "" {
					ids[s] = fmt.Sprintf("ID%d", len(ids)+1)
				}
				return ids[s]
			})
		}
		out[i] = line
	}
	return out
}

// unordered streams are compared as sets: the same request may be made once or
// twice, as speculation has it.
func unordered(stream string) bool { return strings.HasPrefix(stream, "cloud ") }

func (t *tape) stream(name string) []string {
	lines := normal(t.streams[name])
	if unordered(name) {
		slices.Sort(lines)
		lines = slices.Compact(lines)
	}
	return lines
}

// compare lists how another tape differs.
func (t *tape) compare(other *tape) []string {
	var found []string
	names := slices.Sorted(maps.Keys(t.streams))
	for name := range other.streams {
		if _, ok := t.streams[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		found = append(found, compareLines(name, t.stream(name), other.stream(name))...)
	}
	for _, name := range slices.Sorted(maps.Keys(t.sounds)) {
		found = append(found, compareSounds(name, t.sounds[name], other.sounds[name], t.loose)...)
	}
	return found
}

// compareLines shows the first lines that differ.
func compareLines(name string, a, b []string) []string {
	if slices.Equal(a, b) {
		return nil
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	at := func(lines []string) string {
		if i < len(lines) {
			return lines[i]
		}
		return "(nothing)"
	}
	return []string{
		fmt.Sprintf("%s: %d lines, %d lines; the first that differs is line %d", name, len(a), len(b), i+1),
		"old: " + around(at(a), at(b)), "new: " + around(at(b), at(a)),
	}
}

// around cuts a long line to where it differs from another.
func around(line, other string) string {
	const before, most = 80, 400
	i := 0
	for i < len(line) && i < len(other) && line[i] == other[i] {
		i++
	}
	from := max(0, i-before)
	if len(line) <= most {
		from = 0
	}
	return string(bytes.ToValidUTF8([]byte(line[from:min(len(line), from+most)]), []byte("?")))
}

// compareSounds compares replies frame by frame. Of those that were cut only the
// common part counts, but for the fade at its end; where it is loose, the length.
func compareSounds(name string, a, b []sound, loose bool) []string {
	if len(a) != len(b) {
		return []string{fmt.Sprintf("%s: sound of %d and of %d replies", name, len(a), len(b))}
	}
	var found []string
	for i := range a {
		x, y := a[i], b[i]
		n := min(len(x.frames), len(y.frames))
		bad := ""
		switch {
		case loose:
			if max(len(x.frames), len(y.frames))-n > 2 {
				bad = "they are not as long"
			}
		case x.cut != y.cut:
			bad = fmt.Sprintf("cut %v, %v", x.cut, y.cut)
		case x.cut:
			const fade = 4
			if m := max(0, n-fade); !slices.Equal(x.frames[:m], y.frames[:m]) {
				bad = "the frames before the cut differ"
			}
			if more := max(len(x.frames), len(y.frames)) - n; more > max(12, n/2) {
				bad = "one is much longer"
			}
		case !slices.Equal(x.frames, y.frames):
			k := 0
			for k < n && x.frames[k] == y.frames[k] {
				k++
			}
			bad = fmt.Sprintf("frame %d differs", k)
		case !slices.EqualFunc(x.sentences, y.sentences, func(p, q int) bool { return max(p, q)-min(p, q) <= 1 }): // they go out of two queues
			bad = fmt.Sprintf("subtitles before frames %v, %v", x.sentences, y.sentences)
		}
		if bad != "" {
			found = append(found, fmt.Sprintf("%s, sound of reply %d (%d and %d frames): %s", name, i+1, len(x.frames), len(y.frames), bad))
		}
	}
	return found
}

// String prints the tape for people.
func (t *tape) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.streams)) {
		fmt.Fprintf(&b, "-- %s\n", name)
		for _, line := range t.stream(name) {
			if len(line) > 600 {
				line = line[:600] + "…"
			}
			fmt.Fprintln(&b, line)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.sounds)) {
		for i, s := range t.sounds[name] {
			fmt.Fprintf(&b, "-- %s sound %d: %d frames, cut %v, subtitles before %v\n", name, i+1, len(s.frames), s.cut, s.sentences)
		}
	}
	return b.String()
}
