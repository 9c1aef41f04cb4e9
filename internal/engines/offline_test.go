package engines

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/config"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sherpa"
	"xiaozhi/providers/sherpa/modelfile"
	"xiaozhi/providers/sherpa/sherpatest"
)

// TestFetchedModelsAreUsed: what was fetched into the data folder hears and speaks without a word in the settings.
func TestFetchedModelsAreUsed(t *testing.T) {
	bare(t)
	data, lib := t.TempDir(), sherpatest.NewLibrary(t)
	cfg, _, err := config.Load(config.Options{DataDir: data})
	if err != nil {
		t.Fatal(err)
	}
	f := batchOf(cfg, slog.New(slog.DiscardHandler))
	if names := f.expand([]string{"auto", "pocketsphinx"}, service.ASR); slices.Contains(names, "sherpa") {
		t.Errorf("nothing was fetched, but %q", names)
	}
	so, err := os.ReadFile(lib.File)
	if err != nil {
		t.Fatal(err)
	}
	sherpatest.Write(t, filepath.Join(data, "models", sherpa.LibraryFolder, "libsherpa-onnx-c-api.so"), so)
	for name, kind := range map[string]modelfile.Kind{"zipformer-zh": modelfile.Transducer, "mine": modelfile.Matcha} {
		for file, content := range sherpatest.Files(kind) {
			sherpatest.Write(t, filepath.Join(data, "models", name, file), content)
		}
	}
	asr := f.expand([]string{"auto", "pocketsphinx"}, service.ASR)
	tts := f.expand([]string{"auto", "local"}, service.TTS)
	if !slices.Contains(asr, "sherpa") || !slices.Contains(tts, "sherpa") {
		t.Fatalf("%q, %q", asr, tts)
	}
	r, what, err := f.recognizer(t.Context(), "sherpa", config.Provider{Type: "sherpa", Decoders: 3})
	if err != nil || what != "zipformer-zh, transducer (sherpa-onnx 1.13.8)" {
		t.Fatalf("%s, %v", what, err)
	}
	defer r.(*sherpa.Recognizer).Close()
	if s, err := f.settings("sherpa", config.Provider{Type: "sherpa", Decoders: 3}); err != nil || s.Number("decoders", 0) != 3 {
		t.Errorf("decoders %v, %v", s.Settings, err)
	}
	v, what, err := f.voice(t.Context(), "sherpa", config.Provider{Type: "sherpa"})
	if err != nil || !strings.HasPrefix(what, "mine, matcha") {
		t.Fatalf("%s, %v", what, err)
	}
	defer v.(*sherpa.Voice).Close()
	if n := len(f.start.Loads); n != 2 {
		t.Errorf("%d models are loaded at the start, want 2", n)
	}
}
