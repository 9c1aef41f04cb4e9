package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A moment is one line of a scene's expect part: how long after the line before it
// something reached the device, and what that was (testdata/README.md).
type moment struct {
	after time.Duration // the line before, or the beginning of the scene
	exact bool          // to the millisecond; else within slack
	what  string        // with a dash for each gap
	gaps  []time.Duration
}

const (
	slack   = 20 * time.Millisecond // less than any step of a frame, a detector window or the guard
	rounded = 10 * time.Millisecond // in what -update writes
)

// gap is a stretch without frames in a run of them.
var gap = regexp.MustCompile(`, [0-9.]+m?s,`)

// moments lists what a device got.
func (b *box) moments() (out []moment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := time.Duration(0)
	for _, l := range together(b.lines) {
		text := l.text
		if l.frames != nil {
			text = "frames " + runs(l.frames)
		}
		out = append(out, newMoment(l.at-before, text))
		before = l.at
	}
	return out
}

// together puts what the loop of the answer tells, chunks and thoughts, between the start of a reply and the sentence and the frames
// that were sent in the same moment: which of them a device gets first is chance.
func together(lines []boxLine) []boxLine {
	lines = slices.Clone(lines)
	for i := 1; i < len(lines); i++ {
		for at := i; at > 0 && besides(lines[at-1], lines[at]); at-- {
			lines[at].at = lines[at-1].at
			lines[at-1], lines[at] = lines[at], lines[at-1]
			if at < len(lines)-1 && lines[at].frames != nil && lines[at+1].frames != nil && lines[at].turn == lines[at+1].turn {
				lines[at].frames = slices.Concat(lines[at].frames, lines[at+1].frames)
				lines = slices.Delete(lines, at+1, at+2)
			}
		}
	}
	return lines
}

// besides reports whether a line could as well have come before another one, and is to stand there.
func besides(l, next boxLine) bool {
	told := func(l boxLine) bool {
		return strings.HasPrefix(l.text, "chunk ") || strings.HasPrefix(l.text, "thought ")
	}
	return next.at-l.at < playedFrame && (told(next) && (l.frames != nil || strings.HasPrefix(l.text, "sentence ")) || told(l) && next.text == "tts start")
}

// playedFrame is how long a device plays one.
const playedFrame = 60 * time.Millisecond

func newMoment(after time.Duration, text string) moment {
	m := moment{after: after.Round(time.Millisecond)}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "frames ") {
		text = gap.ReplaceAllStringFunc(text, func(length string) string {
			d, err := time.ParseDuration(strings.Trim(length, ", "))
			if err != nil {
				panic(err)
			}
			m.gaps = append(m.gaps, d)
			return ", -,"
		})
	}
	m.what = text
	return m
}

// readMoments reads an expect part.
func readMoments(text string) (out []moment, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		at, what, _ := strings.Cut(line, " ")
		ms, err := strconv.Atoi(strings.TrimLeft(at, "+="))
		if err != nil || at[0] != '+' && at[0] != '=' {
			return nil, fmt.Errorf("no time in front of %q", line)
		}
		m := newMoment(time.Duration(ms)*time.Millisecond, what)
		m.exact = at[0] == '='
		out = append(out, m)
	}
	return out, nil
}

// String is the line that -update writes.
func (m moment) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(rounded) }
	sign := "+"
	if m.exact {
		sign, round = "=", func(d time.Duration) time.Duration { return d }
	}
	what := m.what
	for _, d := range m.gaps {
		what = strings.Replace(what, "-", round(d).String(), 1)
	}
	return fmt.Sprintf("%7s %s", sign+strconv.FormatInt(round(m.after).Milliseconds(), 10), what)
}

// holds reports whether got is what a scene expects.
func (m moment) holds(got moment) bool {
	most := slack
	if m.exact {
		most = 0
	}
	if m.what != got.what || (m.after-got.after).Abs() > most {
		return false
	}
	for i, d := range m.gaps {
		if (d - got.gaps[i]).Abs() > most {
			return false
		}
	}
	return true
}

// A change is a line that is not as expected: one of both may be missing.
type change struct{ want, got *moment }

// align pairs what is expected with what came, so that as many lines as possible
// tell the same, whatever their times.
func align(want, got []moment) (pairs []change) {
	same := make([][]int, len(want)+1) // the most pairs from here on
	for i := range same {
		same[i] = make([]int, len(got)+1)
	}
	for i := range slices.Backward(want) {
		for j := range slices.Backward(got) {
			same[i][j] = max(same[i+1][j], same[i][j+1])
			if want[i].what == got[j].what {
				same[i][j] = max(same[i][j], same[i+1][j+1]+1)
			}
		}
	}
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && j < len(got) && want[i].what == got[j].what && same[i][j] == same[i+1][j+1]+1:
			pairs = append(pairs, change{&want[i], &got[j]})
			i, j = i+1, j+1
		case j == len(got) || i < len(want) && same[i+1][j] >= same[i][j+1]:
			pairs = append(pairs, change{want: &want[i]})
			i++
		default:
			pairs = append(pairs, change{got: &got[j]})
			j++
		}
	}
	return pairs
}

// renew returns an expect part that holds for got. Lines that hold already stay as
// they are; exact ones stay exact.
func renew(want, got []moment) string {
	var b strings.Builder
	for _, p := range align(want, got) {
		switch {
		case p.got == nil:
			continue
		case p.want == nil:
		case p.want.holds(*p.got):
			p.got = p.want
		default:
			p.got.exact = p.want.exact
		}
		fmt.Fprintln(&b, p.got)
	}
	return b.String()
}

// differences lists what does not hold; "": all does.
func differences(want, got []moment) string {
	var b strings.Builder
	for _, p := range align(want, got) {
		if p.want != nil && p.got != nil && p.want.holds(*p.got) {
			fmt.Fprintf(&b, "  %v\n", p.want)
			continue
		}
		if p.want != nil {
			fmt.Fprintf(&b, "- %v\n", p.want)
		}
		if p.got != nil {
			p.got.exact = true // so that it says by how much
			fmt.Fprintf(&b, "+ %v\n", p.got)
		}
	}
	if text := b.String(); strings.Contains("\n"+text, "\n+") || strings.Contains("\n"+text, "\n-") {
		return text
	}
	return ""
}

// TestMoments: an expect part fails for another order, another count and a time
// beyond its bound, and -update rewrites only those lines.
func TestMoments(t *testing.T) {
	const is = "  +1310 stt hello\n     +0 tts start\n   =105 sentence Hi.\n     +0 frames 30, 340ms, 45\n  +4600 tts stop\n"
	lines := []struct {
		after time.Duration
		text  string
	}{{1308, "stt hello"}, {0, "tts start"}, {105, "sentence Hi."}, {0, "frames 30, 343ms, 45"}, {4610, "tts stop"}}
	for _, c := range []struct {
		name   string
		change func(got []moment) []moment
		want   string // after -update
	}{
		{"the same", func(got []moment) []moment { return got }, is},
		{"within bounds", func(got []moment) []moment {
			got[0].after, got[3].gaps[0] = 1330*time.Millisecond, 320*time.Millisecond
			return got
		}, is},
		{"later", func(got []moment) []moment { got[0].after = 1331 * time.Millisecond; return got }, strings.Replace(is, "+1310", "+1330", 1)},
		{"not exactly", func(got []moment) []moment { got[2].after = 106 * time.Millisecond; return got }, strings.Replace(is, "=105", "=106", 1)},
		{"a longer gap", func(got []moment) []moment { got[3].gaps[0] = 403 * time.Millisecond; return got }, strings.Replace(is, "340ms", "400ms", 1)},
		{"a frame less", func(got []moment) []moment { got[3].what = "frames 30, -, 44"; return got }, strings.Replace(is, "45", "44", 1)},
		{"a line less", func(got []moment) []moment { return append(got[:1], got[2:]...) }, strings.Replace(is, "     +0 tts start\n", "", 1)},
		{"a line more", func(got []moment) []moment { return append(got, newMoment(44*time.Millisecond, "final Hi.")) }, is + "    +40 final Hi.\n"},
		{"another order", func(got []moment) []moment { got[0], got[1] = got[1], got[0]; return got }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, err := readMoments(is)
			if err != nil {
				t.Fatal(err)
			}
			var got []moment
			for _, l := range lines {
				got = append(got, newMoment(l.after*time.Millisecond, l.text))
			}
			got = c.change(got)
			if differs := differences(want, got) != ""; differs != (c.want != is) {
				t.Errorf("it differs: %v\n%s", differs, differences(want, got))
			}
			for i := range got {
				got[i].exact = false
			}
			text := renew(want, got)
			if c.want != "" && text != c.want {
				t.Errorf("it becomes\n%s\nwant\n%s", text, c.want)
			}
			again, err := readMoments(text)
			if err != nil || differences(again, got) != "" {
				t.Errorf("the new one does not hold: %v\n%s", err, differences(again, got))
			}
		})
	}
	for _, bad := range []string{"stt hello", "1310 stt hello", "+x stt hello", "+ stt"} {
		if _, err := readMoments(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
