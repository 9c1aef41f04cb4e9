package rawjson_test

import (
	"math"
	"testing"

	"xiaozhi/mcp/rawjson"
)

func TestMarshal(t *testing.T) {
	got, err := rawjson.Marshal(map[string]string{"text": "<1 & 2>\n灯"})
	if want := `{"text":"<1 & 2>\n灯"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if got, err := rawjson.Marshal(math.Inf(1)); err == nil {
		t.Errorf("infinity is written as %s", got)
	}
}
