package iflytek

import (
	"encoding/json"
	"testing"
)

func piece(t *testing.T, data string) result {
	t.Helper()
	var r result
	if err := json.Unmarshal([]byte(data), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPiecesCorrectOneAnother(t *testing.T) {
	p := pieces{}
	for _, step := range []struct{ piece, want string }{
		{`{"sn":1,"pgs":"apd","ws":[{"cw":[{"w":"今天"},{"w":"金天"}]}]}`, "今天"},
		{`{"sn":2,"pgs":"apd","ws":[{"cw":[{"w":"天"}]},{"cw":[]},{"cw":[{"w":"七"}]}]}`, "今天天七"},
		{`{"sn":3,"pgs":"rpl","rg":[2,2],"ws":[{"cw":[{"w":"天气"}]}]}`, "今天天气"},
		{`{"sn":4,"pgs":"rpl","rg":[1,3],"ws":[{"cw":[{"w":"今天天气怎么样"}]}]}`, "今天天气怎么样"},
		{`{"sn":5,"pgs":"rpl","rg":[-9223372036854775808,0],"ws":[{"cw":[{"w":"？"}]}]}`, "今天天气怎么样？"},
		{`{"sn":5,"ls":true,"ws":[]}`, "今天天气怎么样"},
	} {
		p.add(piece(t, step.piece))
		if got := p.text(); got != step.want {
			t.Errorf("after %s: %q, want %q", step.piece, got, step.want)
		}
	}
}

func FuzzPieces(f *testing.F) {
	f.Add([]byte(`{"sn":4,"pgs":"rpl","rg":[1,3],"ws":[{"cw":[{"w":"a"}]}]}`), []byte(`{"sn":1}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		p := pieces{}
		for _, data := range [][]byte{a, b, a} {
			var r result
			if json.Unmarshal(data, &r) == nil {
				p.add(r)
			}
		}
		if len(p) > 2 {
			t.Errorf("%d pieces", len(p))
		}
		p.text()
	})
}
