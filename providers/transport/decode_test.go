package transport

import "testing"

func TestDecodeTakesWhatItCan(t *testing.T) {
	type inner struct {
		N    Int    `json:"n"`
		Name string `json:"name"`
	}
	type message struct {
		Text  string `json:"text"`
		Code  Int    `json:"code"`
		Word  Code   `json:"word"`
		Inner inner  `json:"inner"`
	}
	for in, want := range map[string]message{
		`{"text":"a","code":7,"word":"x"}`:                                {Text: "a", Code: 7, Word: "x"},
		`{"code":"7","word":7,"text":["a"]}`:                              {Code: 7, Word: "7"},
		`{"code":7.0,"word":null,"inner":{"n":"-3","name":5},"text":"a"}`: {Text: "a", Code: 7, Inner: inner{N: -3}},
		`{"text":"a","inner":null,"code":true,"more":[1,{"a":2}]}`:        {Text: "a"},
	} {
		var got message
		if err := Decode([]byte(in), &got); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", in, got, want)
		}
	}
	for _, in := range []string{``, `[]`, `"a"`, `7`, `{"text":`, `hello`} {
		if Decode([]byte(in), &message{}) == nil {
			t.Errorf("%q was taken", in)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"n":"1e400","c":-1.5}`))
	f.Fuzz(func(_ *testing.T, in []byte) {
		var v struct {
			N Int  `json:"n"`
			C Code `json:"c"`
		}
		_ = Decode(in, &v)
	})
}
