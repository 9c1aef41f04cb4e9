package roster

import (
	"encoding/json"
	"strings"
	"testing"
)

// The examples of RFC 7396 whose values are objects, and those of settings.
func TestMerge(t *testing.T) {
	for _, w := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":["1"]}`},
		{`{"e":null}`, `{"a":1}`, `{"a":"1","e":null}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{``, `{"a":12345678901234567890}`, `{"a":"12345678901234567890"}`},
	} {
		if got, err := merge(w[0], []byte(w[1])); err != nil || string(got) != w[2] {
			t.Errorf("%s with %s: %s %v, want %s", w[0], w[1], got, err, w[2])
		}
	}
	for _, bad := range []string{``, `null`, `[]`, `"a"`, `{} {}`, `{"a":`} {
		if _, err := merge(`{}`, []byte(bad)); err == nil || !strings.Contains(err.Error(), "JSON") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Whatever is sent, a patch gives settings or an error, and the same again when it comes twice.
func FuzzMerge(f *testing.F) {
	f.Add(`{"a":{"b":[1]},"c":null}`, `{"a":{"b":null,"d":"x"}}`)
	f.Add(``, `{"\u0000":1e999}`)
	f.Fuzz(func(t *testing.T, old, patch string) {
		if _, err := compact([]byte(old)); err != nil {
			old = ""
		}
		once, err := merge(old, []byte(patch))
		if err != nil {
			return
		}
		doc, err := compact(once)
		if err != nil {
			if len(once) > maxDoc {
				return
			}
			t.Fatalf("%q: %v", once, err)
		}
		twice, err := merge(doc, []byte(patch))
		if err != nil || string(twice) != doc || !json.Valid(once) {
			t.Errorf("%q and then %q, %v", doc, twice, err)
		}
	})
}
