package prompts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
)

// template is a prompt cut at its variables: texts[0], names[0], texts[1] and so on.
type template struct {
	texts []string
	names []string
}

// Variables lists the names that {{name}} may hold in a prompt.
func Variables() []string { return variables() }

// variables returns the names that {{name}} may hold. Values are never looked
// through for variables again.
func variables() []string {
	return []string{
		"assistant_name", "current_time", "today_date", "today_weekday",
		"language", "device_name", "emojiList",
	}
}

// parseTemplate cuts text at its variables. An unknown one, or one that is not
// closed on its line, is an error with file, line and the nearest known name.
func parseTemplate(path, text string) (template, error) {
	var t template
	var errs []error
	line, rest, plain := 1, strings.TrimPrefix(text, "\ufeff"), ""
	for {
		before, after, found := strings.Cut(rest, "{{")
		plain += before
		line += strings.Count(before, "\n")
		if !found {
			t.texts = append(t.texts, strings.TrimRight(plain, " \t\r\n"))
			break
		}
		name, tail, closed := strings.Cut(after, "}}")
		if !closed || strings.Contains(name, "\n") {
			errs = append(errs, fmt.Errorf("%s:%d: a {{ without its }}", path, line))
			rest = after
			continue
		}
		name, rest = strings.TrimSpace(name), tail
		known := Nearest(name, variables())
		if known != name {
			errs = append(errs, fmt.Errorf("%s:%d: unknown variable {{%s}} (did you mean {{%s}}?)", path, line, name, known))
		}
		t.texts, t.names, plain = append(t.texts, plain), append(t.names, name), ""
	}
	t.texts[0] = strings.TrimLeft(t.texts[0], " \t\r\n")
	if len(t.names) == 0 && t.texts[0] == "" {
		errs = append(errs, fmt.Errorf("%s: the prompt is empty", path))
	}
	return t, errors.Join(errs...)
}

// render puts the values in. Every name has one: parseTemplate saw to that.
func (t template) render(values map[string]string) string {
	var b strings.Builder
	for i, text := range t.texts {
		b.WriteString(text)
		if i < len(t.names) {
			b.WriteString(values[t.names[i]])
		}
	}
	return b.String()
}

// source is the text as it was written.
func (t template) source() string {
	var b strings.Builder
	for i, text := range t.texts {
		b.WriteString(text)
		if i < len(t.names) {
			b.WriteString("{{" + t.names[i] + "}}")
		}
	}
	return b.String()
}

// values returns the values of the variables in a prompt of the language lang.
func (s *Set) values(lang string, d Data) map[string]string {
	device := cmp.Or(d.DeviceName, s.Phrase(deviceName, lang))
	in, name := orChinese(cmp.Or(d.Language, lang)), ""
	switch in {
	case text.Chinese:
		name = s.Phrase(languageChinese, lang)
	case text.English:
		name = s.Phrase(languageEnglish, lang)
	default:
		name = in.Name(text.Lang(lang))
	}
	return map[string]string{
		"assistant_name": d.AssistantName,
		"device_name":    device,
		"language":       name,
		"current_time":   d.Now.Format("15:04"),
		"today_date":     spoken.SayDate(d.Now, text.Lang(lang)),
		"today_weekday":  spoken.SayWeekday(d.Now, text.Lang(lang)),
		"emojiList":      emojiList(),
	}
}

// Nearest returns the known name that is the fewest edits away from name: the one
// that was probably meant, letters being equal to their capitals. known must not be empty.
func Nearest(name string, known []string) string {
	small := strings.ToLower(name)
	return slices.MinFunc(known, func(a, b string) int {
		return cmp.Compare(text.Edits(small, strings.ToLower(a)), text.Edits(small, strings.ToLower(b)))
	})
}

// Misspelt returns the known name that was meant by one that is not known, if they differ by a slip: one edit, or two of
// at least eight signs.
func Misspelt(name string, known []string) (meant string, ok bool) {
	if len(known) == 0 || slices.Contains(known, name) {
		return "", false
	}
	meant = Nearest(name, known)
	n := text.Edits(name, meant)
	return meant, n == 1 || n == 2 && len(name) >= 8
}
