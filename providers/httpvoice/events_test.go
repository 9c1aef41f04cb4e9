package httpvoice

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
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

// TestCommentsAreNoSound keeps an answer alive by comments: the time limits are those of sound.
func TestCommentsAreNoSound(t *testing.T) {
	s := servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, ": still here\n\n"); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	})
	v := voice(t, s, Options{
		Section: service.Section{Timeouts: service.Timeouts{First: 100 * time.Millisecond}}, Format: "pcm", Events: func() Opener { return letters },
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if got := speak(ctx, v, sentence); !errors.Is(got.err, transport.ErrStalled) {
		t.Errorf("got %v after %v", got.err, got.took)
	}
}
