package rules

import (
	"regexp"

	"xiaozhi/providers"
)

// memory calls the tool whose name has these words, with words as an argument if there are any. Without it the model is left to answer.
func (r request) memory(argument, words string, name ...string) (providers.Delta, bool) {
	t, ok := find(r.tools, func(t tool) bool {
		for _, w := range name {
			if !t.has(w) {
				return false
			}
		}
		return words == "" && t.free() || words != "" && t.schema.Properties[argument].is("string")
	})
	if !ok {
		return providers.Delta{}, false
	}
	var arguments map[string]any
	if words != "" {
		arguments = map[string]any{argument: words}
	}
	return r.call(t, arguments)
}

// tasks begin what is to be done, and not to be known.
var tasks = regexp.MustCompile(`^(?:to |when |how |what |if |me\b|the time |提醒|叫我|要?去|什么|怎么|吗)`)

// bare is what names nothing that is remembered: who asks, and question words.
var bare = regexp.MustCompile(`^(?:(?:关于)?(?:我|我们|咱们?)?(?:的|过)?(?:哪些|些?什么|啥|多少|所有|一切)?(?:事情?|东西|信息)?|(?:any|some|every)?(?:thing)?(?:all|what)? ?(?:about )?(?:me|us|who i am)?)$`)

// subject returns what somebody asks about, by its words; "": about all that is remembered.
func subject(words string) string {
	if bare.MatchString(words) {
		return ""
	}
	return words
}

// isFact reports whether words can be remembered: "remember to call Ann" is a task.
func isFact(words string) bool { return words != "" && !tasks.MatchString(words) }
