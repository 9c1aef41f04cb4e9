package routine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/recur"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/spoken"
)

const (
	maxName  = 64      // characters
	maxWords = 2000    // characters of a prompt, a text or a song
	maxShort = 200     // bytes of an address, a time, a pattern
	maxArgs  = 8 << 10 // bytes of the arguments of a tool

	usualLate  = 2 * time.Hour
	longLate   = 24 * time.Hour
	usualLimit = 30 // an hour
	maxLimit   = 360
	minToken   = 16 // characters
)

// Span is a length of time as people write it: 90m.
type Span time.Duration

// UnmarshalText reads one.
func (s *Span) UnmarshalText(words []byte) error {
	d, err := time.ParseDuration(string(words))
	*s = Span(d)
	return err
}

// MarshalText writes one.
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// IsZero reports whether none is set.
func (s Span) IsZero() bool { return s == 0 }

// Mistake says what is wrong with a definition.
type Mistake struct {
	Key  string // of the definition
	ID   string // of the message
	args []any
}

// Error implements error, in English.
func (m *Mistake) Error() string { return m.In(text.English) }

// In says it in a language.
func (m *Mistake) In(lang text.Lang) string { return m.Key + ": " + message.In(lang, m.ID, m.args...) }

// Both says it in English and in Chinese.
func (m *Mistake) Both() string { return m.Key + ": " + message.Both(m.ID, m.args...) }

func wrong(key, id string, args ...any) error { return &Mistake{key, id, args} }

// check says what is wrong with a definition; nil: nothing, as far as it can be told without its times.
func (d *Definition) check() error {
	for _, f := range []struct {
		key, words string
		most       int
	}{
		{"name", d.Name, maxName},
		{"to", d.To, maxShort},
		{"when", d.When, maxShort},
		{"repeat", d.Repeat, maxShort},
		{"prompt", d.Prompt, maxWords},
		{"say", d.Say, maxWords},
		{"play", d.Play, maxWords},
	} {
		if len([]rune(f.words)) > f.most {
			return wrong(f.key, "routine/long", f.most)
		}
	}
	if strings.TrimSpace(d.To) == "" {
		return wrong("to", "routine/to")
	}
	if _, err := mail.ParsePriority(d.Priority); err != nil {
		return wrong("priority", "api/priority")
	}
	if d.Language != "" {
		if _, err := text.ParseLang(d.Language); err != nil {
			return wrong("language", "api/language")
		}
	}
	if late := time.Duration(d.Late); late != 0 && (late < time.Minute || late > longLate) {
		return wrong("late", "routine/late")
	}
	if d.Limit < 0 || d.Limit > maxLimit {
		return wrong("limit", "routine/limit", maxLimit)
	}
	return errors.Join(d.checkAct(), d.checkBegin())
}

// checkAct says what is wrong with what is to be done.
func (d *Definition) checkAct() error {
	n := 0
	for _, words := range []string{d.Prompt, d.Say, d.Play} {
		if strings.TrimSpace(words) != "" {
			n++
		}
	}
	if d.Tool == nil {
		if n != 1 {
			return wrong("prompt", "routine/act")
		}
		return nil
	}
	if n > 0 {
		return wrong("tool", "routine/act")
	}
	if d.Tool.Name == "" || len(d.Tool.Name) > maxShort {
		return wrong("tool.name", "routine/tool")
	}
	if args, err := json.Marshal(d.Tool.Arguments); err != nil || len(args) > maxArgs {
		return wrong("tool.arguments", "routine/arguments", maxArgs)
	}
	return nil
}

// checkBegin says what is wrong with what it waits for.
func (d *Definition) checkBegin() error {
	timed := d.When != "" || d.Repeat != ""
	if timed == (d.On != nil) {
		return wrong("when", "routine/begin")
	}
	if timed {
		if d.To == Here {
			return wrong("to", "routine/here")
		}
		return nil
	}
	on := d.On
	n := 0
	for _, is := range []bool{on.Hook, on.Tool != "", on.Resource != "" || on.Server != ""} {
		if is {
			n++
		}
	}
	switch {
	case n != 1:
		return wrong("on", "routine/on")
	case on.Hook && d.To == Here, on.Resource != "" && d.To == Here:
		return wrong("to", "routine/here")
	case (on.Resource == "") != (on.Server == ""):
		return wrong("on.resource", "routine/resource")
	case slices.ContainsFunc([]string{on.Tool, on.Device, on.Contains, on.Server, on.Resource}, func(s string) bool { return len(s) > maxShort }):
		return wrong("on", "routine/long", maxShort)
	case !on.Hook && on.Token+on.TokenFile != "":
		return wrong("on.token", "routine/no-hook")
	}
	return nil
}

// late returns how long after its time it may still be done, or heard.
func (d *Definition) late() time.Duration {
	if d.Late > 0 {
		return time.Duration(d.Late)
	}
	return usualLate
}

// plan returns the words of which its times are made.
func (d *Definition) plan() string { return d.When + "\n" + d.Repeat + "\n" + d.Zone }

// schedule returns the state of a definition that begins now. kept says that it outlives the program only as words: a single time
// must be one that words do not move.
func (d *Definition) schedule(was State, zone *time.Location, now time.Time, asWords bool) (State, error) {
	if d.Zone != "" {
		var err error
		if zone, err = time.LoadLocation(d.Zone); err != nil || d.Zone == "Local" {
			return was, wrong("zone", "routine/zone")
		}
	}
	if d.On != nil || d.Disabled { // what comes meanwhile is not made up for
		was.Times, was.Due, was.Plan = recur.Times{}, time.Time{}, ""
		return was, nil
	}
	if was.Plan == d.plan() {
		return was, nil
	}
	was.Plan = d.plan()
	at, rule, err := d.start(now.In(zone), asWords)
	if err != nil {
		return was, err
	}
	if rule == "" {
		if was.Times, was.Due = (recur.Times{}), at; !at.After(now.Add(-time.Minute)) {
			return was, wrong("when", "routine/past")
		}
		return was, nil
	}
	switch was.Times, was.Due, err = recur.New(rule, spoken.Wall(at.In(zone)), zone, now); {
	case errors.Is(err, recur.ErrOften):
		return was, wrong("when", "routine/often", int(recur.MinApart.Minutes()))
	case errors.Is(err, recur.ErrNever):
		return was, wrong("when", "routine/never")
	case err != nil:
		return was, wrong("repeat", "routine/rule", err)
	}
	return was, nil
}

// start reads when it begins, and how it recurs; rule "": it does not.
func (d *Definition) start(now time.Time, asWords bool) (at time.Time, rule string, err error) {
	words, repeat := strings.TrimSpace(d.When), strings.TrimSpace(d.Repeat)
	if repeat != "" && !strings.Contains(repeat, "=") {
		words, repeat = strings.TrimSpace(repeat+" "+words), ""
	}
	if words == "" {
		return now.Truncate(time.Minute), repeat, nil
	}
	if at, err = time.Parse(time.RFC3339, words); err == nil {
		return at, repeat, nil
	}
	switch at, rule, err = spoken.When(words, now); {
	case errors.Is(err, spoken.ErrPast):
		return at, "", wrong("when", "routine/past")
	case err != nil:
		return at, "", wrong("when", "routine/when", fmt.Sprintf("%q", words))
	case repeat != "" && rule != "":
		return at, "", wrong("repeat", "routine/twice")
	case asWords && repeat == "" && rule == "":
		return at, "", wrong("when", "routine/once")
	}
	if rule == "" {
		rule = repeat
	}
	return at, rule, nil
}
