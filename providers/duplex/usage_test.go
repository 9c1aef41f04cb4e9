package duplex

import "testing"

func TestCount(t *testing.T) {
	const raw = `{"in":3,"out":{"a":4,"b":"many","c":-5,"d":1e300,"e":null,"f":2.0}}`
	for name, want := range map[string]int{"in": 3, "out.a": 4, "out.b": 0, "out.c": 0, "out.d": 0, "out.e": 0, "out.f": 2, "out": 0, "no": 0, "in.x": 0, "out.a.x": 0} {
		if got := Count([]byte(raw), name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if Count([]byte(raw), "in", "out.a") != 7 || Count(nil, "in") != 0 || Count([]byte("[1]"), "in") != 0 {
		t.Error("the sum is wrong")
	}
}

func FuzzCount(f *testing.F) {
	f.Add([]byte(`{"a":{"b":3}}`), "a.b")
	f.Add([]byte(`[1,{}]`), "..")
	f.Fuzz(func(t *testing.T, raw []byte, name string) {
		if n := Count(raw, name); n < 0 || n >= mostTokens {
			t.Errorf("%d", n)
		}
	})
}
