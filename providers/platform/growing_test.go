package platform

import (
	"strings"
	"testing"
)

func TestGrowing(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{[]string{"It ", "is ", "fine."}, "It is fine."},
		{[]string{"I", "It is", "It is fine.", "It is fine."}, "It is fine."},
		{[]string{"It is a", "It is a tree.", "It is a [1] tree."}, "It is a tree."},
		{[]string{"ha", "ha", "ha!"}, "hahaha!"},
		{[]string{"ha", "haha, that was a very good one", "!"}, "haha, that was a very good one!"},
		{[]string{"It is fine, is it?", "It is fine, is it?"}, "It is fine, is it?"},
		{[]string{"", "a", "", "b"}, "ab"},
	} {
		var g Growing
		var got strings.Builder
		for _, text := range c.texts {
			got.WriteString(g.New(text))
		}
		if got.String() != c.want {
			t.Errorf("%q became %q", c.texts, got.String())
		}
	}
}

func FuzzGrowing(f *testing.F) {
	f.Add("It is", "It is fine", "!")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var g Growing
		for _, text := range []string{a, b, c} {
			if got := g.New(text); !strings.HasSuffix(text, got) {
				t.Errorf("%q gave %q", text, got)
			}
		}
	})
}
