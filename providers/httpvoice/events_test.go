package httpvoice

import (
	"encoding/json"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"strings"

	"xiaozhi/providers/sse"
)

// letters opens events that hold words in JSON; "." is the last.
func letters(event []byte) ([]byte, bool, error) {
	var words string
	err := json.Unmarshal(event, &words)
	return []byte(words), words == ".", err
}

func TestEventsAreOpened(t *testing.T) {
	for stream, want := range map[string]struct {
		sound string
		err   error
	}{
		"data: \"ab\"\n\ndata: \"\"\n\ndata: \"cd\"\n\ndata: \".\"\n\n": {"abcd.", nil},
		"data: \"ab\"\n\ndata: [DONE]\n\n":                              {"ab", nil},
		"data: \"ab\"\n\n":                                              {"ab", errUnfinished},
	} {
		o := &opened{events: sse.NewReader(iotest.OneByteReader(strings.NewReader(stream))), open: letters}
		got, err := io.ReadAll(o)
		if string(got) != want.sound || !errors.Is(err, want.err) {
			t.Errorf("%q: %q and error %v, want %q and %v", stream, got, err, want.sound, want.err)
		}
	}
	o := &opened{events: sse.NewReader(strings.NewReader("data: {\n\n")), open: letters}
	if _, err := io.ReadAll(o); err == nil {
		t.Error("a broken event is none")
	}
}
