package text

import (
	"strings"
	"testing"
	"testing/fstest"
)

func files(zh, en string) fstest.MapFS {
	return fstest.MapFS{"t.zh.yaml": {Data: []byte(zh)}, "t.en.yaml": {Data: []byte(en)}}
}

func TestCatalogueText(t *testing.T) {
	c := MustCatalogue(files("a: 没有{name}\nb: 好", "a: no {name} of {kind}\nb: fine"), "t")
	for _, test := range []struct {
		lang Lang
		id   string
		args []string
		want string
	}{
		{Chinese, "a", []string{"name", "灯"}, "没有灯"},
		{English, "a", []string{"name", "lamp", "kind", "{name}"}, "no lamp of {name}"},
		{"", "b", nil, "fine"},
		{Chinese, "b", nil, "好"},
		{English, "c", []string{"name", "x"}, "c"},
	} {
		if got := c.Text(test.lang, test.id, test.args...); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.lang, test.id, got, test.want)
		}
	}
}

func TestCatalogueErrors(t *testing.T) {
	for want, f := range map[string]fstest.MapFS{
		"text a is in zh only": files("a: x", "{}"),
		"text b is in en only": files("{}", "b: x"),
		"t.zh.yaml: ":          files("- a", "a: x"),
		"t.en.yaml":            {"t.zh.yaml": {Data: []byte("a: x")}},
	} {
		if _, err := ReadCatalogue(f, "t"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
