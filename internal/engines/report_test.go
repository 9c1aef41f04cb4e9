package engines

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/sherpa/modelfile"
)

// TestMissingIsReadable tells in both languages why a member was left out, where its error has a sentence for people.
func TestMissingIsReadable(t *testing.T) {
	r := NewReport(slog.New(slog.DiscardHandler))
	p := &modelfile.Problem{Fault: modelfile.NoLibrary, File: "libsherpa-onnx-c-api.so"}
	r.Missing("ASR", "home", fmt.Errorf("chain: %w", &providers.Error{Provider: "home", Op: "open", Err: p}))
	if got := strings.Join(r.lines, "\n"); !strings.Contains(got, "xiaozhi models get sherpa-onnx fetches it") || !strings.Contains(got, "用 xiaozhi models get sherpa-onnx 下载") {
		t.Errorf("%s", got)
	}
}
