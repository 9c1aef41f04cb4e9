package watch

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"xiaozhi/agent/turn"
	"xiaozhi/connection"
	"xiaozhi/internal/text"
)

// TestReasonsInBothLanguages: every end of a connection that the sources name, and every cut of a turn, is said in English and in
// Chinese; of what is not known the text itself.
func TestReasonsInBothLanguages(t *testing.T) {
	var files []string
	for _, folder := range []string{"connection", "connection/websocket"} {
		some, err := filepath.Glob(filepath.Join("..", "..", "..", folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	found := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Reason\{\s*Text: "([^"]+)"`).FindAllSubmatch(source, -1) {
			found++
			if why := reason(&connection.Reason{Text: string(m[1])}); why.ID == "contact/said" || why.In(text.English) == why.In(text.Chinese) {
				t.Errorf("%s: %q is said as %q", file, m[1], why.In(text.Chinese))
			}
		}
	}
	fault := reason(&connection.Reason{Text: "panic in reader", Kind: connection.Internal})
	if en, zh := fault.In(text.English), fault.In(text.Chinese); !strings.Contains(en, "went wrong in the server") || !strings.Contains(zh, "服务器内部出错") {
		t.Errorf("a fault of the server is said as %q and %q", en, zh)
	}
	if found < 20 {
		t.Errorf("only %d ends of connections were found", found)
	}
	for _, err := range []error{turn.ErrBargeIn, turn.ErrAborted, turn.ErrResumed, turn.ErrReplaced, turn.ErrPaused, turn.ErrGoodbye, connection.ErrLeft} {
		if why := cause(err); why.ID == "contact/said" || why.In(text.English) == why.In(text.Chinese) {
			t.Errorf("%q is said as %q", err, why.In(text.Chinese))
		}
	}
	if got := cause(errors.New("something else")).In(text.Chinese); got != "something else" {
		t.Errorf("what is not known is said as %q", got)
	}
}
