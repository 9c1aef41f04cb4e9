package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// network is the beginning of an ONNX file that says what it is.
func network(pairs ...string) string {
	b := "\x08\x08\x3a\x02\x00\x00"
	for i := 0; i < len(pairs); i += 2 {
		entry := "\x0a" + string(rune(len(pairs[i]))) + pairs[i] + "\x12" + string(rune(len(pairs[i+1]))) + pairs[i+1]
		b += "\x72" + string(rune(len(entry))) + entry
	}
	return b
}

// TestModels lists, fetches from a file, checks and removes.
func TestModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, archive := filepath.Join(dir, "data"), filepath.Join(dir, "my-model.zip")
	do := func(args ...string) (int, string) {
		t.Helper()
		var out bytes.Buffer
		code := run(t.Context(), append(append([]string{"models"}, args...), "--data", data), &out, &out)
		return code, out.String()
	}
	pack := func(files map[string]string) {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for name, content := range files {
			f, err := w.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(archive, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, out := do("list"); code != 0 || !strings.Contains(out, "sensevoice") || !strings.Contains(out, "163 MB") || !strings.Contains(out, "未说明") {
		t.Errorf("list: %d %s", code, out)
	}
	if code, out := do("check"); code != 0 || !strings.Contains(out, "There is no model here") {
		t.Errorf("check of nothing: %d %s", code, out)
	}
	if code, out := do("get", "nonsense"); code != 1 || !strings.HasPrefix(out, "xiaozhi models: nonsense: it is not in") || !strings.Contains(out, "xiaozhi models list") {
		t.Errorf("an unknown name: %d %s", code, out)
	}
	pack(map[string]string{"m/model.onnx": "<html>", "m/tokens.txt": "a 0\n"})
	if code, out := do("get", "file://"+archive); code != 1 || !strings.Contains(out, "a web page") || !strings.Contains(out, "不是模型文件") {
		t.Errorf("a web page: %d %s", code, out)
	}
	pack(map[string]string{
		"m/model.onnx": network("vocab_size", "1", "lfr_window_size", "7", "lfr_window_shift", "6", "neg_mean", "0", "inv_stddev", "1"), "m/tokens.txt": "a 0\n",
	})
	if code, out := do("get", "file://"+archive); code != 0 || !strings.Contains(out, "unverified") || !strings.Contains(out, "100%") || !strings.Contains(out, "2 files") {
		t.Errorf("get: %d %s", code, out)
	}
	if code, out := do("check"); code != 0 || !strings.Contains(out, "my-model: as it was fetched, 2 files / my-model：与下载时一致") {
		t.Errorf("check: %d %s", code, out)
	}
	if code, out := do("list"); code != 0 || !strings.Contains(out, "my-model") || !strings.Contains(out, "here / 已有") {
		t.Errorf("list: %d %s", code, out)
	}
	if err := os.WriteFile(filepath.Join(data, "models", "my-model", "tokens.txt"), []byte("b 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := do("check", "my-model"); code != 1 || !strings.Contains(out, "tokens.txt") || !strings.Contains(out, "重新下载") {
		t.Errorf("check of a changed file: %d %s", code, out)
	}
	if code, out := do("rm", "my-model"); code != 0 || !strings.Contains(out, "removed: my-model") {
		t.Errorf("rm: %d %s", code, out)
	}
	if code, out := do("rm", "my-model"); code != 1 || !strings.Contains(out, "没有这个模型") {
		t.Errorf("rm of nothing: %d %s", code, out)
	}
	for _, args := range [][]string{{}, {"get"}, {"rm"}, {"list", "x"}, {"dance"}, {"list", "--no-such-flag"}} {
		if code, _ := do(args...); code != 2 {
			t.Errorf("%q: %d", args, code)
		}
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"models", "try", "--library=/nowhere/lib.so", "--", dir}, &out, &out); code != 1 || !strings.Contains(out.String(), "nothing in") {
		t.Errorf("try: %d %s", code, out.String())
	}
	if err := os.WriteFile(filepath.Join(data, "models.yaml"), []byte("models: [{name: x}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := do("list"); code != 1 || !strings.Contains(out, "models.yaml") {
		t.Errorf("a bad catalogue: %d %s", code, out)
	}
}
