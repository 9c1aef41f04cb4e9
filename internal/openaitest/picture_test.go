package openaitest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

func TestPictures(t *testing.T) {
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\x0D\x0A\x1A\x0A"))
	part := func(url string) string { return `{"type":"image_url","image_url":{"url":"` + url + `"}}` }
	tests := map[string]struct{ content, want string }{
		"text only":         {`"hello"`, "[]"},
		"null":              {`null`, "[]"},
		"text and picture":  {`[{"type":"text","text":"what?"},` + part("data:image/png;base64,"+png) + `]`, "[what? image/png 8]"},
		"two pictures":      {`[` + part("data:image/png;base64,"+png) + `,` + part("data:image/png;base64,"+png) + `]`, "[ image/png 8  image/png 8]"},
		"a number":          {`7`, "neither text nor a list"},
		"an address":        {`[` + part("https://example.org/a.png") + `]`, "no data URL"},
		"not base64":        {`[` + part("data:image/png,abc") + `]`, "no data URL"},
		"broken base64":     {`[` + part("data:image/png;base64,!") + `]`, "illegal base64"},
		"an empty one":      {`[` + part("data:image/png;base64,") + `]`, "an empty picture"},
		"the wrong type":    {`[` + part("data:image/jpeg;base64,"+png) + `]`, "says it is image/jpeg is image/png"},
		"an unknown part":   {`[{"type":"input_image"}]`, "does not hold what it says"},
		"text with picture": {`[{"type":"text","text":"x","image_url":{"url":"u"}}]`, "does not hold what it says"},
		"a part is a text":  {`["x"]`, "content:"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Request{Body: []byte(`{"messages":[{"role":"system","content":"s"},{"role":"user","content":` + test.content + `}]}`)}
			pictures, err := r.Pictures()
			var list []string
			for _, p := range pictures {
				list = append(list, fmt.Sprintf("%s %s %d", p.Text, p.MIME, len(p.Data)))
			}
			got := fmt.Sprint(list)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	r := &Request{Body: []byte(`{"messages":[{"role":"tool","content":[` + part("data:image/png;base64,"+png) + `]}]}`)}
	if _, err := r.Pictures(); err == nil {
		t.Error("a picture from a tool: no error")
	}
	if _, err := (&Request{Body: []byte(`{`)}).Pictures(); err == nil {
		t.Error("a broken body: no error")
	}
}
