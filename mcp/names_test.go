package mcp

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var legal = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func TestFunctionNames(t *testing.T) {
	long := strings.Repeat("self.very_long_name.", 5)
	tests := map[string]struct{ in, want []string }{
		"dots":               {[]string{"self.audio_speaker.set_volume"}, []string{"self_audio_speaker_set_volume"}},
		"legal ones stay":    {[]string{"get-time", "A_1"}, []string{"get-time", "A_1"}},
		"a.b and a_b":        {[]string{"a.b", "a_b", "a b"}, []string{"a_b", "a_b_2", "a_b_3"}},
		"a taken suffix":     {[]string{"a.b", "a_b_2", "a_b"}, []string{"a_b", "a_b_2", "a_b_3"}},
		"the same twice":     {[]string{"x", "x"}, []string{"x", "x_2"}},
		"empty is refused":   {[]string{"", "x"}, []string{"", "x"}},
		"64 bytes are legal": {[]string{strings.Repeat("a", 64)}, []string{strings.Repeat("a", 64)}},
		"long ones are cut":  {[]string{long + "a", long + "b"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := FunctionNames(test.in)
			if test.want == nil {
				if got[0] == got[1] || len(got[0]) != 64 || !strings.HasPrefix(got[0], "self_very_long_name_") {
					t.Errorf("got %q", got)
				}
				return
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFunctionNamesBeyondASCII(t *testing.T) {
	got := FunctionNames([]string{"灯.开", "灯.关", "lamp.开"})
	if !strings.HasPrefix(got[0], "tool_") || got[0] == got[1] || !strings.HasPrefix(got[2], "lamp__") {
		t.Errorf("got %q", got)
	}
}

// checkNames is what must hold of any list of names.
func checkNames(t *testing.T, in []string) {
	t.Helper()
	got := FunctionNames(in)
	if len(got) != len(in) {
		t.Fatalf("%d names for %d", len(got), len(in))
	}
	seen := make(map[string]string)
	for i, name := range got {
		if (name == "") != (in[i] == "") {
			t.Errorf("%q became %q", in[i], name)
		}
		if name == "" {
			continue
		}
		if !legal.MatchString(name) {
			t.Errorf("%q became %q, which is not legal", in[i], name)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q both became %q", other, in[i], name)
		}
		seen[name] = in[i]
	}
	if again := FunctionNames(in); !slices.Equal(got, again) {
		t.Errorf("not stable: %q, then %q", got, again)
	}
	// The first in order keeps its name whatever follows.
	if prefix := FunctionNames(in[:len(in)/2]); !slices.Equal(prefix, got[:len(in)/2]) {
		t.Errorf("later names changed earlier ones: %q, %q", prefix, got)
	}
}

func TestFunctionNamesOfMany(t *testing.T) {
	var in []string
	for range 300 {
		in = append(in, "a.b", "a_b", strings.Repeat("长", 30), strings.Repeat("x", 70))
	}
	checkNames(t, in)
}

func FuzzFunctionNames(f *testing.F) {
	f.Add("a.b\na_b\n\na b")
	f.Add("灯\n" + strings.Repeat("y", 64) + "\n" + strings.Repeat("y", 63) + ".")
	f.Add("a\na\na_2\na_2\na_2_2")
	f.Fuzz(func(t *testing.T, text string) { checkNames(t, strings.Split(text, "\n")) })
}
