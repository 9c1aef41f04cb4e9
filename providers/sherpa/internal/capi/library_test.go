package capi_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/providers/sherpa/internal/capi"
	"xiaozhi/providers/sherpa/sherpatest"
)

func TestOpen(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]error{
		"/nowhere/libsherpa.so": capi.ErrMissing,
		text:                    capi.ErrMissing,
		"libm.so.6":             capi.ErrForeign,
	} {
		if _, err := capi.Open(file); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", file, err, want)
		}
	}
	lib := sherpatest.NewLibrary(t)
	for version, known := range map[string]bool{
		"1.13.8": true, "1.13.2": true, "1.13.5": true, "1.13.9": false, "1.13.1": false, "1.12.40": false, "2.0.1": false,
		"1.13.8+mine": false, "1.13": false, "": false, "1.13.8 x": false,
	} {
		lib.Version(version)
		l, err := capi.Open(lib.File)
		if known && (err != nil || l.Version() != version) {
			t.Errorf("version %q: %v", version, err)
		}
		if !known && (!errors.Is(err, capi.ErrVersion) || !strings.Contains(err.Error(), capi.Newest)) {
			t.Errorf("version %q: %v, want ErrVersion", version, err)
		}
	}
}

func TestGenerate(t *testing.T) {
	lib := sherpatest.NewLibrary(t)
	l, err := capi.Open(lib.File)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	model, tokens := filepath.Join(dir, "model.onnx"), filepath.Join(dir, "tokens.txt")
	sherpatest.Write(t, model, []byte("x"))
	sherpatest.Write(t, tokens, []byte("a 0\n"))
	v, err := l.NewVoice(capi.VoiceModel{Model: model, Tokens: tokens, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []bool{true, false} {
		heard := 0
		made := v.Generate("你好", 1, 2, func(samples []float32) bool {
			heard += len(samples)
			if samples[0] != 0.2 {
				t.Errorf("first sample %g of speaker 1", samples[0])
			}
			return more
		})
		if !made || heard != 2205 {
			t.Errorf("made %v, %d samples, want 2 characters at twice the speed: 2205", made, heard)
		}
	}
	if got := lib.Get("stopped"); got != 1 {
		t.Errorf("%d texts were stopped, want 1", got)
	}
	v.Free()
	if live := lib.Get("live"); live != 0 {
		t.Errorf("%d objects are not freed", live)
	}
	if _, err := l.NewVoice(capi.VoiceModel{Model: model, Tokens: filepath.Join(dir, "gone"), Threads: 1}); !errors.Is(err, capi.ErrRefused) {
		t.Errorf("a voice without tokens: %v", err)
	}
}
