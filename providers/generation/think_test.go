package generation

import (
	"strings"
	"testing"
)

func TestThinkFilter(t *testing.T) {
	tests := []struct{ name, in, text, thought string }{
		{"plain", "hello", "hello", ""},
		{"thought first", "<think>a</think>\n\nb", "b", "a"},
		{"thought between", "x <think>a</think> y", "x y", "a"},
		{"two", "<think>a</think>b<think>c</think>d", "bd", "ac"},
		{"no end", "<think>abc", "", "abc"},
		{"almost a tag", "1 <thin 2", "1 <thin 2", ""},
		{"held at the end", "a<", "a<", ""},
		{"only an end", "a</think>\n\nb", "ab", ""},
		{"an end first", "</think>\n\na", "a", ""},
		{"other tags", "<thinking>a <b></thinking>b<thought>c</thought> d", "bd", "a <b>c"},
		{"another end", "<think>a</thought>b</think>c", "c", "a</thought>b"},
		{"empty", "<think></think>a", "a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for size := 1; size <= len(tt.in); size++ { // every way to split it
				if text, thought := filter(tt.in, size); text != tt.text || thought != tt.thought {
					t.Errorf("in pieces of %d: text %q thought %q, want %q and %q", size, text, thought, tt.text, tt.thought)
				}
			}
		})
	}
}

// What the template of a model has begun is a thought up to its end, and the answer if there is no end.
func TestUnopenedThought(t *testing.T) {
	for in, want := range map[string][2]string{
		"hm, so</think>\n\nYes": {"Yes", "hm, so"}, "Yes": {"Yes", ""}, "a <b</think><think>c</think> d": {"d", "a <bc"}, `Yes<tool_call>{"name":"lamp"}`: {"Yes", ""},
	} {
		for size := 1; size <= len(in); size++ {
			var f ThinkFilter
			f.Begin()
			text, thought := push(&f, in, size)
			if text != want[0] || want[1] != "" && thought != want[1] {
				t.Errorf("%q in pieces of %d: %q and %q", in, size, text, thought)
			}
		}
	}
}

// A model is known by its name, or by what it did in the answer before.
func TestUnopenedIsLearnt(t *testing.T) {
	var u Unopened
	answer := func(model, in string, more, told bool) string {
		var f ThinkFilter
		u.Expect(&f, model)
		if told {
			f.Told()
		}
		text, _ := f.Push(in)
		u.Learn(&f, more)
		last, _ := f.Flush()
		return text + last
	}
	for _, c := range []struct {
		model, in  string
		more, told bool
		want       string
	}{
		{"deepseek-r1:7b", "hm</think>Yes", false, false, "Yes"},
		{"QwQ-32B", "hm</think>Yes", false, false, "Yes"},
		{"qwen3-4b-thinking-2507", "hm", true, false, ""}, // cut off
		{"qwen3-4b-thinking-2507", "Yes", false, true, "Yes"},
		{"four2r1ver", "hm</think>Yes", false, false, "hmYes"}, // for the first time only
		{"four2r1ver", "hm</think>Yes", false, false, "Yes"},
		{"four2r1ver", "Yes", false, false, "Yes"},
		{"four2r1ver", "</think>Yes", false, false, "Yes"},
		{"four2r1ver", "a</think>b", false, false, "ab"},
	} {
		if got := answer(c.model, c.in, c.more, c.told); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// A call that a server has left in the text is made, not said.
func TestCallsInText(t *testing.T) {
	const in = `Sure. <tool_call>
{"name":"lamp","arguments":{"on":true}}
</tool_call><tool_call>{"name":"now","parameters":"{}"}</tool_call> Bye<tool_call>no call</tool_call><tool_call>{"name":"late"}`
	for size := 1; size <= len(in); size++ {
		var f ThinkFilter
		text, got := "", ""
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			words, _ := f.Push(rest[:n])
			text, rest = text+words, rest[n:]
		}
		words, _ := f.Flush()
		for _, c := range f.Calls() {
			got += c.Name + c.Arguments + " "
		}
		if text+words != "Sure. Bye" || got != `lamp{"on":true} now{} late{} ` || f.Calls() != nil {
			t.Fatalf("in pieces of %d: %q, %q", size, text+words, got)
		}
	}
}

// filter sends text through in pieces.
func filter(in string, size int) (text, thought string) {
	var f ThinkFilter
	return push(&f, in, size)
}

func push(f *ThinkFilter, in string, size int) (text, thought string) {
	for in != "" {
		n := min(size, len(in))
		a, b := f.Push(in[:n])
		text, thought, in = text+a, thought+b, in[n:]
	}
	a, b := f.Flush()
	return text + a, thought + b
}

func FuzzThinkFilter(f *testing.F) {
	for _, seed := range []string{"a<think>b</think>c", "<<think>", "</think>", " <think> <think>"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, in string, size int) {
		text, thought := filter(in, len(in))
		if in == "" {
			return
		}
		if again, more := filter(in, 1+(size%7+7)%7); again != text || more != thought {
			t.Errorf("%q: %q/%q whole, %q/%q in pieces", in, text, thought, again, more)
		}
		if len(text)+len(thought) > len(in) || !strings.Contains(in, "<th") && thought != "" {
			t.Errorf("%q became %q and %q", in, text, thought)
		}
	})
}
