package rules

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/testall"
	"xiaozhi/internal/text"
)

// TestHousehold asks what people ask a speaker at home, of the files of testdata/household: each
// must have the right tool called, with the right arguments, and the right words said.
func TestHousehold(t *testing.T) {
	testall.Arithmetic(t)
	for _, file := range householdFiles(t, "*.*.txt") {
		if strings.HasPrefix(filepath.Base(file), "nothing.") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			rows := tableRows(t, file)
			wrong, h := 0, newHome(t, fileLang(file))
			for _, row := range rows {
				if err := h.try(row); err != nil {
					wrong++
					t.Errorf("%s\n\t%v", row, err)
				}
			}
			t.Logf("%d of %d", len(rows)-wrong, len(rows))
		})
	}
}

// TestNothing says what is no request: no tool may be called, and it must be said that there is no model.
func TestNothing(t *testing.T) {
	testall.Arithmetic(t)
	for _, file := range householdFiles(t, "nothing.*.txt") {
		h := newHome(t, fileLang(file))
		for _, row := range tableRows(t, file) {
			h.past = nil
			if h.turn(row); len(h.calls) > 0 || !h.fallback {
				t.Errorf("%s: %s %s", row, h.calls, h.said)
			}
		}
	}
}

// householdFiles are the tables of a pattern.
func householdFiles(t *testing.T, pattern string) []string {
	files, err := filepath.Glob("testdata/household/" + pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	return files
}

// fileLang is the language of a table: NAME.en.txt or en.NAME.txt.
func fileLang(file string) text.Lang {
	if slices.Contains(strings.Split(filepath.Base(file), "."), "zh") {
		return text.Chinese
	}
	return text.English
}

// tableRows reads the lines of a table that are neither empty nor comments.
func tableRows(t *testing.T, file string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(data)), "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "#")
	})
}

// try plays the request of a row: WORDS >> WORDS => TOOL(NAME=VALUE,…) => WORDS; WORDS. Only the last of
// the words before => is looked at. The tool - is none.
func (h *home) try(row string) error {
	parts := strings.Split(row, "=>")
	if len(parts) != 3 {
		return fmt.Errorf("%d parts", len(parts))
	}
	h.past, h.timers = nil, nil
	for words := range strings.SplitSeq(parts[0], ">>") {
		h.turn(strings.TrimSpace(words))
	}
	name, want, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(parts[1]), ")"), "(")
	last := "- {}"
	if len(h.calls) > 0 {
		last = h.calls[len(h.calls)-1]
	}
	called, raw, _ := strings.Cut(last, " ")
	if called != name {
		return fmt.Errorf("%s %q, want %s", h.calls, h.said, name)
	}
	var arguments map[string]any
	if err := json.Unmarshal([]byte(raw), &arguments); err != nil {
		return err
	}
	for pair := range strings.SplitSeq(want, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if ok && fmt.Sprint(arguments[key]) != value {
			return fmt.Errorf("%s %q, want %s", h.calls, h.said, pair)
		}
	}
	for part := range strings.SplitSeq(parts[2], ";") {
		if !strings.Contains(h.said, strings.TrimSpace(part)) {
			return fmt.Errorf("%s %q, want %q", h.calls, h.said, part)
		}
	}
	return nil
}

// householdTime is when the requests are made: a Tuesday.
var householdTime = time.Date(2026, 11, 24, 15, 4, 0, 0, time.FixedZone("CST", 8*3600))

// TestCoverage: each wish is made of meanings that there are.
func TestCoverage(t *testing.T) {
	for _, c := range []*coverage{chineseCover(), englishCover()} {
		for _, w := range c.Wishes {
			for _, s := range w.sets {
				for _, name := range slices.Concat(append(s.must, s.may)...) {
					if _, known := c.Meanings[name]; !known && !strings.HasPrefix(name, "<") {
						t.Errorf("%s %q: what is %s?", w.Act, w.When, name)
					}
				}
			}
		}
	}
}

// TestFastPathStaysNarrow: beside a model that answers, what households ask is the model's.
func TestFastPathStaysNarrow(t *testing.T) {
	b := newBrain(t, true)
	for _, said := range []string{
		"what's 15 percent of 80", "how long till christmas", "you're shouting", "i can't hear you", "wake me at half six", "how many grams in a pound",
		"play some music", "what can you do", "what's your battery at", "keep it down", "what month is it", "ten minute timer", "what time will it be in an hour",
		"离圣诞节还有多久", "三加五等于几", "我听不见", "你嗓门太大了", "明早六点半叫我", "一斤是多少克", "来首歌", "你会什么", "还剩百分之几的电", "今天农历几号", "计时二十分钟",
	} {
		if d, ok := b.Answer(ask(said, languageOf(said), deviceTools())); ok {
			t.Errorf("%q is answered by the fast path: %s", said, show(d))
		}
	}
}

// TestSpokenSums: every number up to 2999 is read as it is said, also in a sum.
func TestSpokenSums(t *testing.T) {
	small := strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tens := strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety")
	var say func(n int, and string) string
	say = func(n int, and string) string {
		switch rest := ""; {
		case n < 20:
			return small[n]
		case n < 100:
			if n%10 > 0 {
				rest = " " + small[n%10]
			}
			return tens[n/10] + rest
		case n < 1000:
			if n%100 > 0 {
				rest = and + say(n%100, and)
			}
			return small[n/100] + " hundred" + rest
		default:
			if n%1000 > 0 {
				rest = " " + say(n%1000, and)
				if n%1000 < 100 {
					rest = and + say(n%1000, and)
				}
			}
			return small[n/1000] + " thousand" + rest
		}
	}
	k := english(everything)
	for n := range 3000 {
		for _, and := range []string{" ", " and "} {
			said := say(n, and)
			if got := strings.Join(k.englishWords(said+" times three"), " "); got != fmt.Sprintf("<%d> times <3>", n) {
				t.Fatalf("%s: %s", said, got)
			}
		}
	}
	b := newBrain(t, false)
	for said, want := range map[string]string{
		"ten percent of a hundred and twenty": "12", "what's a thousand minus a hundred and one": "899", "two hundred and two plus two": "204", "one hundred and five and one hundred and six": "211",
		"twenty two times two": "44", "four times four": "16", "two plus two": "4", "what is two times four": "8", "four hundred divided by two": "200", "three point two five plus one": "4.25", "minus five plus two": "-3",
		"六百零五加五": "610", "一千零一减二": "999", "两百二加三十": "250", "十五乘以十五": "225", "零点五加零点二五": "0.75", "负五加二": "-3", "一万二加三千": "15000", "三百六除以十二": "30",
	} {
		if in, ok := b.understand(said, householdTime.Location(), everything); !ok || in.act != actSum {
			t.Errorf("%s: %+v", said, in)
		} else if got, _ := in.answer(householdTime, text.English); got != "That is "+want+"." {
			t.Errorf("%s: %s, want %s", said, got, want)
		}
	}
}
