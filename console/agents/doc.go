package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/console/ui"
)

// settings are those of an agent, in the shape of agents.NAME. What is empty is inherited.
type settings struct {
	Prompt    string   `json:"prompt,omitempty"`
	Text      string   `json:"prompt_text,omitempty"`
	Language  string   `json:"language,omitempty"`
	Voice     string   `json:"voice,omitempty"`
	ASR       []string `json:"asr,omitempty"`
	LLM       []string `json:"llm,omitempty"`
	TTS       []string `json:"tts,omitempty"`
	Vision    []string `json:"vision,omitempty"`
	Realtime  []string `json:"realtime,omitempty"`
	Tools     *rules   `json:"tools,omitempty"`
	Memory    string   `json:"memory,omitempty"`
	Record    string   `json:"record,omitempty"`
	WakeWords []string `json:"wake_words,omitempty"`
	ExitWords []string `json:"exit_words,omitempty"`
}

// rules say which tools an agent has.
type rules struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// read reads settings. What cannot be read is left out.
func read(doc []byte) (s settings) {
	_ = json.Unmarshal(doc, &s) // the roster keeps nothing else
	if s.Tools == nil {
		s.Tools = &rules{}
	}
	return s
}

// doc writes settings.
func (s settings) doc() []byte {
	if s.Tools != nil && len(s.Tools.Allow)+len(s.Tools.Deny) == 0 {
		s.Tools = nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil { // texts and lists of them always have a form
		return []byte("{}")
	}
	return bytes.TrimSpace(b.Bytes())
}

// chain returns the chain of a role by its key.
func (s *settings) chain(key string) *[]string {
	return map[string]*[]string{"asr": &s.ASR, "llm": &s.LLM, "tts": &s.TTS, "vision": &s.Vision, "realtime": &s.Realtime}[key]
}

// maxChain is how many services an agent's own chain can have on the page.
const maxChain = 8

// typed reads what was typed into the editor.
func typed(f *ui.Form) (s settings) {
	if f.Get("from") == "own" {
		s.Text = strings.TrimSpace(strings.ReplaceAll(f.Raw("long-text"), "\r\n", "\n"))
	} else {
		s.Prompt = f.Get("prompt")
	}
	s.Language, s.Voice, s.Memory, s.Record = f.Get("language"), f.Get("voice"), f.Get("memory"), f.Get("record")
	for _, role := range roles {
		for i := range maxChain {
			if name := f.Get(chainField(role, i)); name != "" {
				*s.chain(role) = append(*s.chain(role), name)
			}
		}
	}
	s.WakeWords, s.ExitWords = lines(f.Raw("wake_words")), lines(f.Raw("exit_words"))
	s.Tools = &rules{Allow: lines(f.Raw("tools-allow")), Deny: lines(f.Raw("tools-deny"))}
	ticked, shown := f.All("tool"), f.All("shown")
	if f.Get("tools-mode") == "only" {
		for _, name := range shown {
			if slices.Contains(ticked, name) {
				s.Tools.Allow = append(s.Tools.Allow, name)
			}
		}
		if len(s.Tools.Allow) == 0 && len(shown) > 0 {
			s.Tools.Deny = []string{"*"} // an empty list would mean all
		}
		return s
	}
	for _, name := range shown {
		if !slices.Contains(ticked, name) {
			s.Tools.Deny = append(s.Tools.Deny, name)
		}
	}
	return s
}

// form fills the editor's fields with settings. shown are the names of the tools that it lists.
func (s settings) form(shown []string) []string {
	from := "named"
	if s.Text != "" {
		from = "own"
	}
	pairs := []string{
		"from", from, "prompt", s.Prompt, "long-text", s.Text, "language", s.Language, "voice", s.Voice, "memory", s.Memory, "record", s.Record,
		"wake_words", strings.Join(s.WakeWords, "\n"), "exit_words", strings.Join(s.ExitWords, "\n"),
	}
	for _, role := range roles {
		for i, name := range *s.chain(role) {
			pairs = append(pairs, chainField(role, i), name)
		}
	}
	mode, allow, deny := "all", slices.Clone(s.Tools.Allow), slices.Clone(s.Tools.Deny)
	none := len(allow) == 0 && slices.Equal(deny, []string{"*"})
	if none {
		deny = nil
	}
	if len(allow) > 0 || none {
		mode = "only"
	}
	for _, name := range shown {
		in := func(list []string) bool { return slices.Contains(list, name) }
		if mode == "only" && in(allow) || mode == "all" && !in(deny) {
			pairs = append(pairs, "tool", name)
		}
	}
	if mode == "only" {
		allow = slices.DeleteFunc(allow, func(name string) bool { return slices.Contains(shown, name) })
	} else {
		deny = slices.DeleteFunc(deny, func(name string) bool { return slices.Contains(shown, name) })
	}
	return append(pairs, "tools-mode", mode, "tools-allow", strings.Join(allow, "\n"), "tools-deny", strings.Join(deny, "\n"))
}

// chainField names the field of a member of a chain.
func chainField(role string, i int) string { return role + "-" + strconv.Itoa(i) }

// lines are those of a text that are not empty.
func lines(text string) (all []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return all
}

// change is a setting that differs between two revisions.
type change struct {
	Key      string
	Old, New string
	Lines    []line // of a text, in place of Old and New
}

// line is one of a text that was changed: Sign is "+", "-" or " ".
type line struct{ Sign, Text string }

// flat lists settings as texts, by their keys.
func flat(doc []byte) (all map[string]string) {
	all = map[string]string{}
	var tree map[string]any
	_ = json.Unmarshal(doc, &tree) // nothing is in what cannot be read
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, one := range v {
				walk(strings.TrimPrefix(key+"."+k, "."), one)
			}
		case []any:
			var parts []string
			for _, one := range v {
				parts = append(parts, fmt.Sprint(one))
			}
			all[key] = strings.Join(parts, ", ")
		default:
			all[key] = fmt.Sprint(v)
		}
	}
	walk("", tree)
	return all
}

// keys are those of an agent, in the order of the editor.
var keys = []string{
	"prompt", "prompt_text", "language", "voice", "asr", "llm", "tts", "vision", "realtime", "tools.allow", "tools.deny", "memory", "record",
	"wake_words", "exit_words",
}

// compare lists what differs between two settings.
func compare(before, after []byte) (all []change) {
	a, b := flat(before), flat(after)
	order := slices.Clone(keys)
	for _, m := range []map[string]string{a, b} {
		for key := range m {
			if !slices.Contains(order, key) {
				order = append(order, key)
			}
		}
	}
	slices.Sort(order[len(keys):])
	for _, key := range order {
		if a[key] == b[key] {
			continue
		}
		c := change{Key: key, Old: a[key], New: b[key]}
		if key == "prompt_text" && a[key] != "" && b[key] != "" {
			c.Lines = diff(strings.Split(a[key], "\n"), strings.Split(b[key], "\n"))
		}
		all = append(all, c)
	}
	return all
}

// maxDiff bounds the work of finding what two texts have in common, in pairs of lines.
const maxDiff = 1 << 20

// diff tells the lines of two texts apart by their longest common subsequence.
func diff(a, b []string) (out []line) {
	if len(a)*len(b) > maxDiff {
		for _, text := range a {
			out = append(out, line{"-", text})
		}
		for _, text := range b {
			out = append(out, line{"+", text})
		}
		return out
	}
	common := make([][]int, len(a)+1) // of what follows lines i of a and j of b
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, line{" ", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out = append(out, line{"-", a[i]})
			i++
		default:
			out = append(out, line{"+", b[j]})
			j++
		}
	}
	return out
}
