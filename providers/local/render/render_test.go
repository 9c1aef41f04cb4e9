package main

import (
	"os"
	"path/filepath"
	"testing"

	"xiaozhi/audio/file"
	"xiaozhi/providers/local"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRender(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "phrases.zh.yaml"), "fail_x: 出错了，请再试一次。\npardon: 什么？\nok: 好的\n")
	write(t, filepath.Join(dir, "phrases.en.yaml"), "fail_x: That failed.\npardon: Pardon?\n")
	if err := run(t.Context(), dir, dir); err != nil {
		t.Fatalf("%v (this test needs the Debian packages flite and espeak-ng)", err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.wav"))
	if err != nil || len(names) != 4 {
		t.Fatalf("%q, %v", names, err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		pcm, r, err := file.ReadWAV(f)
		_ = f.Close()
		if err != nil || r != rate || len(pcm) < rate/4 {
			t.Errorf("%s: %d samples at %d Hz, %v", name, len(pcm), r, err)
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	s, err := local.New(t.Context(), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"not yaml": "\t:", "none": "ok: fine\n", "silent": "fail_x: ...\n", "foreign": "fail_x: Привет\n"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "phrases.en.yaml"), text)
		if _, err := render(t.Context(), s, dir, dir, "en"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := run(t.Context(), t.TempDir(), t.TempDir()); err == nil {
		t.Error("no phrases: no error")
	}
}
