package models_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xiaozhi/internal/models"
)

func sum(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:]) }

// tgz makes an archive of names and contents. A name that ends in @ is a link to its content.
func tgz(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for i := 0; i < len(files); i += 2 {
		h := &tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}
		if link, ok := strings.CutSuffix(files[i], "@"); ok {
			h = &tar.Header{Name: link, Linkname: files[i+1], Typeflag: tar.TypeSymlink}
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(files[i+1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb is a tar.gz of one file of that many MiB of zeros, one member of gzip for each.
func bomb(t *testing.T, mebibytes int) []byte {
	t.Helper()
	member := func(data []byte) []byte {
		var b bytes.Buffer
		gz := gzip.NewWriter(&b)
		_, err := gz.Write(data)
		if err := errors.Join(err, gz.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var head bytes.Buffer
	if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Name: "m/model.onnx", Mode: 0o644, Size: int64(mebibytes) << 20, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	return slices.Concat(member(head.Bytes()), bytes.Repeat(member(make([]byte, 1<<20)), mebibytes))
}

// entry is one of a part.
func entry(name, url string, content []byte) models.Entry {
	return models.Entry{Name: name, Role: "asr", Licence: "MIT", Parts: []models.Part{{
		Sources: []models.Source{{URL: url, Size: int64(len(content)), SHA256: sum(content)}},
	}}}
}

// server serves one file with ranges. It cuts the first answers short.
type server struct {
	content []byte
	cut     atomic.Int32 // answers that end in the middle
	asked   atomic.Int32
	from    atomic.Value // the last Range
	tag     string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	s.from.Store(r.Header.Get("Range"))
	if s.tag != "" {
		w.Header().Set("ETag", s.tag)
	}
	if s.cut.Add(-1) >= 0 {
		w = &half{w, len(s.content) / 3}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content))
}

// half ends an answer after some bytes.
type half struct {
	http.ResponseWriter
	rest int
}

func (h *half) Write(b []byte) (int, error) {
	n := min(len(b), h.rest)
	h.rest -= n
	if _, err := h.ResponseWriter.Write(b[:n]); err != nil || n < len(b) {
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

func newStore(t *testing.T) *models.Store {
	t.Helper()
	return &models.Store{Dir: filepath.Join(t.TempDir(), "models"), Pause: time.Millisecond, Idle: 200 * time.Millisecond}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	c, err := models.Load("")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]int{}
	for _, e := range c.Models {
		roles[e.Role]++
		if e.Size() == 0 || e.Licence == "" {
			t.Errorf("%s: size %d, licence %q", e.Name, e.Size(), e.Licence)
		}
	}
	if roles["asr"] < 5 || roles["tts"] < 4 || roles["library"] > 1 {
		t.Errorf("roles %v", roles)
	}
	own := filepath.Join(t.TempDir(), "models.yaml")
	write := func(text string) {
		if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("mirror: file:///media/usb\nmodels:\n- {name: sensevoice, role: asr, licence: x, parts: [{sources: [{url: 'https://me.example.org/mine.zip'}]}]}\n- {name: other, role: asr, platform: plan9/mips, parts: [{sources: [{url: 'a.zip'}]}]}\n")
	c, err = models.Load(own)
	e, found := models.Find(c.Models, "sensevoice")
	if err != nil || found != nil || c.Mirror != "file:///media/usb" || e.Parts[0].Sources[0].URL != "https://me.example.org/mine.zip" || e.Verified() {
		t.Errorf("own entry: %+v, %v, %v", e, err, found)
	}
	if _, err := models.Find(c.Models, "other"); !errors.Is(err, models.ErrUnknown) {
		t.Errorf("an entry for another machine: %v", err)
	}
	write("mirror: usb")
	if _, err := models.Load(own); err == nil || !strings.Contains(err.Error(), `mirror "usb"`) {
		t.Errorf("a bad mirror: %v", err)
	}
	for _, bad := range []string{
		"- {name: ../x, role: asr, parts: [{sources: [{url: 'a.zip'}]}]}", "- {name: x, role: llm, parts: [{sources: [{url: 'a.zip'}]}]}",
		"- {name: x, role: asr}", "- {name: x, role: asr, parts: [{}]}", "- {name: x, role: asr, parts: [{sources: [{url: 'ftp://a/b'}]}]}",
		"- {name: x, role: asr, parts: [{sources: [{url: 'a', sha256: XYZ}]}]}", "- {name: x, rule: asr}", "- [", "- {name: x, role: asr, parts: [{keep: ['['], sources: [{url: a}]}]}",
	} {
		write("models:\n" + bad)
		if _, err := models.Load(own); err == nil || !strings.Contains(err.Error(), own) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	content := tgz(t, "model-1/model.onnx", string(noise(300<<10)), "model-1/tokens.txt", "a 0\n", "model-1/test_wavs/0.wav", "sound", "model-1/data/x", "y")
	srv := &server{content: content}
	web := httptest.NewServer(srv)
	defer web.Close()
	s := newStore(t)
	e := entry("mine", web.URL+"/m.tar.gz", content)
	var last models.Progress
	unpacked := int64(0)
	s.Tell = func(p models.Progress) {
		if p.Unpacking {
			unpacked = p.Done
		} else {
			last = p
		}
	}
	srv.cut.Store(2) // it goes on where it was cut
	r, err := s.Get(t.Context(), e)
	if err != nil || !r.Verified || len(r.Files) != 3 || srv.asked.Load() != 3 || !strings.HasPrefix(srv.from.Load().(string), "bytes=") {
		t.Fatalf("%+v, %v, asked %d times, last for %v", r, err, srv.asked.Load(), srv.from.Load())
	}
	if last.Done != int64(len(content)) || last.Total != last.Done || last.File != "m.tar.gz" {
		t.Errorf("progress %+v", last)
	}
	if unpacked != int64(len(content)) {
		t.Errorf("unpacked %d bytes of %d", unpacked, len(content))
	}
	if got := read(t, filepath.Join(s.Path("mine"), "data", "x")); got != "y" || s.State("mine") != models.Present {
		t.Errorf("%q, %s", got, s.State("mine"))
	}
	if _, err := s.Get(t.Context(), e); err != nil || srv.asked.Load() != 3 {
		t.Errorf("fetched again: %v, asked %d times", err, srv.asked.Load())
	}
	if names, err := s.Names(); err != nil || !slices.Equal(names, []string{"mine"}) {
		t.Errorf("%v, %v", names, err)
	}
	tokens := filepath.Join(s.Path("mine"), "tokens.txt")
	if err := os.WriteFile(tokens, []byte("b 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Check(t.Context(), "mine"); !errors.Is(err, models.ErrChanged) || !strings.Contains(err.Error(), "tokens.txt") {
		t.Errorf("changed: %v", err)
	}
	if _, err := s.Get(t.Context(), e); err != nil || read(t, tokens) != "a 0\n" {
		t.Errorf("not mended: %v", err)
	}
	if err := s.Remove("mine"); err != nil || s.State("mine") != models.Absent {
		t.Errorf("%v, %s", err, s.State("mine"))
	}
	if err := s.Remove("mine"); !errors.Is(err, models.ErrAbsent) {
		t.Errorf("removed twice: %v", err)
	}
	for _, bad := range []string{"..", "../x", "/etc", "", ".mine.part"} {
		if err := s.Remove(bad); !errors.Is(err, models.ErrName) {
			t.Errorf("remove %q: %v", bad, err)
		}
	}
}

// TestInterrupted goes on in another run where the first was cancelled.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	content := tgz(t, "a/model.onnx", strings.Repeat("n", 10)+string(noise(600<<10)))
	for _, known := range []bool{true, false} {
		srv := &server{content: content, tag: `"one"`}
		web := httptest.NewServer(srv)
		defer web.Close()
		s := newStore(t)
		e := entry("mine", web.URL+"/m.tgz", content)
		if !known {
			e.Parts[0].Sources[0].SHA256 = ""
		}
		ctx, cancel := context.WithCancel(t.Context())
		s.Tell = func(models.Progress) { cancel() }
		if _, err := s.Get(ctx, e); err != context.Canceled || s.State("mine") != models.Partly { //nolint:errorlint // unchanged
			t.Fatalf("%v, %s", err, s.State("mine"))
		}
		s.Tell = nil
		r, err := s.Get(t.Context(), e)
		if err != nil || r.Verified != known || srv.from.Load() == "" {
			t.Errorf("known %v: %+v, %v, asked for %q", known, r.Verified, err, srv.from.Load())
		}
		if err := s.Remove("mine"); err != nil {
			t.Error(err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		s.Tell = func(models.Progress) { cancel() }
		s.Get(ctx, e)
		s.Tell = nil
		srv.content, srv.tag = tgz(t, "a/model.onnx", "another "+string(noise(500<<10))), `"two"`
		_, err = s.Get(t.Context(), e)
		if known && err == nil || !known && err != nil {
			t.Errorf("known %v: the file changed between: %v", known, err)
		}
		cancel()
	}
}

// noise is what cannot be packed.
func noise(n int) []byte {
	b, seed := make([]byte, n), uint32(7)
	for i := range b {
		seed = seed*1664525 + 1013904223
		b[i] = byte(seed >> 24)
	}
	return b
}

func TestSources(t *testing.T) {
	t.Parallel()
	content := tgz(t, "a/model.onnx", "network")
	good := httptest.NewServer(&server{content: content})
	defer good.Close()
	bad := httptest.NewServer(&server{content: append(slices.Clone(content), 1)})
	defer bad.Close()
	wrong := slices.Clone(content)
	wrong[20] ^= 1
	forged := httptest.NewServer(&server{content: wrong})
	defer forged.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer silent.Close()
	missing := httptest.NewServer(http.NotFoundHandler())
	defer missing.Close()
	for name, first := range map[string]string{"longer": bad.URL, "forged": forged.URL, "missing": missing.URL, "silent": silent.URL, "nobody": "http://127.0.0.1:1"} {
		s := newStore(t)
		s.Idle = 10 * time.Second
		if name == "silent" {
			s.Idle = 300 * time.Millisecond
		}
		e := entry("mine", first+"/m.tgz", content)
		_, err := s.Get(t.Context(), e)
		if err == nil || !strings.Contains(err.Error(), "/m.tgz") || s.State("mine") == models.Present {
			t.Errorf("%s: %v, %s", name, err, s.State("mine"))
		}
		e.Parts[0].Sources = append(e.Parts[0].Sources, entry("mine", good.URL+"/m.tgz", content).Parts[0].Sources...)
		if r, err := s.Get(t.Context(), e); err != nil || len(r.Sources) != 1 || r.Sources[0] != good.URL+"/m.tgz" {
			t.Errorf("%s: the second source: %+v, %v", name, r.Sources, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.tgz"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	s.Mirror = "file://" + dir
	if _, err := s.Get(t.Context(), entry("mine", missing.URL+"/far/m.tgz?x=1", content)); err != nil || read(t, filepath.Join(s.Path("mine"), "model.onnx")) != "network" {
		t.Errorf("mirror: %v", err)
	}
	s.Mirror = ""
	e, err := models.Find(nil, "file://"+dir+"/m.tgz")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Get(t.Context(), e); err != nil || r.Verified || r.Name != "m" {
		t.Errorf("file: %+v, %v", r, err)
	}
	if _, err := s.Get(t.Context(), entry("gone", "file://"+dir+"/gone.tgz", content)); err == nil {
		t.Error("a file that is not there")
	}
}

// TestArchives unpacks what is well, and refuses what is not.
func TestArchives(t *testing.T) {
	t.Parallel()
	var z bytes.Buffer
	w := zip.NewWriter(&z)
	for _, name := range []string{"m/model.onnx", "m/espeak-ng-data/x"} {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file    string
		content []byte
		keep    []string
		flat    bool
		want    string // files, or what the error says
	}{
		"zip":           {"a.zip", z.Bytes(), nil, false, "espeak-ng-data/x model.onnx"},
		"no folder":     {"a.tgz", tgz(t, "model.onnx", "x", "espeak-ng-data/x", "x"), nil, false, "espeak-ng-data/x model.onnx"},
		"dot":           {"a.tgz", tgz(t, "./m/model.onnx", "x"), nil, false, "model.onnx"},
		"keep":          {"a.tgz", tgz(t, "m/a.int8.onnx", "x", "m/a.onnx", "x", "m/tokens.txt", "x"), []string{"*int8.onnx", "tokens.txt"}, false, "a.int8.onnx tokens.txt"},
		"flat":          {"a.tgz", tgz(t, "p/lib/a.so", "x", "p/include/a.h", "x", "p/LICENSE", "x"), []string{"*.so", "LICENSE*"}, true, "LICENSE a.so"},
		"a single file": {"vocos.onnx", []byte("x"), nil, false, "vocos.onnx"},
		"up":            {"a.tgz", tgz(t, "m/../../../x", "x"), nil, false, "a name leads out of the folder"},
		"root":          {"a.tgz", tgz(t, "/etc/x", "x"), nil, false, "a name leads out of the folder"},
		"backslash":     {"a.tgz", tgz(t, `m\..\..\x`, "x"), nil, false, "a name leads out of the folder"},
		"drive":         {"a.tgz", tgz(t, `c:x`, "x"), nil, false, "a name leads out of the folder"},
		"link":          {"a.tgz", tgz(t, "m/x@", "/etc/passwd"), nil, false, "it holds links"},
		"twice":         {"a.tgz", tgz(t, "m/x", "1", "m/x", "2"), nil, false, "exists"},
		"bomb":          {"a.tgz", bomb(t, 80), nil, false, "it would become too large"},
		"empty":         {"a.tgz", tgz(t), nil, false, "nothing in it"},
		"no archive":    {"a.tgz", []byte("<html>"), nil, false, "a.tgz"},
		"no bzip2":      {"a.tar.bz2", []byte("<html>"), nil, false, "a.tar.bz2"},
		"no zip":        {"a.zip", []byte("<html>"), nil, false, "a.zip"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(at, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			s := newStore(t)
			e := entry("mine", "file://"+at, c.content)
			e.Parts[0].Keep, e.Parts[0].Flat = c.keep, c.flat
			r, err := s.Get(t.Context(), e)
			var got []string
			for file := range r.Files {
				got = append(got, file)
			}
			slices.Sort(got)
			if err == nil && strings.Join(got, " ") != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v, want %s", got, err, c.want)
			}
			if err != nil && s.State("mine") == models.Present {
				t.Error("it was put into its place")
			}
		})
	}
}

// TestInspect refuses a model whose files are not well, and keeps the one that is there.
func TestInspect(t *testing.T) {
	t.Parallel()
	content := tgz(t, "a/model.onnx", "network")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.tgz"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	broken := errors.New("it is no model")
	s.Inspect = func(_, at string) error {
		if read(t, filepath.Join(at, "model.onnx")) != "network" {
			t.Error("files are not there yet")
		}
		return broken
	}
	e := entry("mine", "file://"+dir+"/m.tgz", content)
	if _, err := s.Get(t.Context(), e); !errors.Is(err, broken) || s.State("mine") == models.Present {
		t.Errorf("%v, %s", err, s.State("mine"))
	}
	if err := os.MkdirAll(s.Path("own"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Path("own"), "model.onnx"), []byte("network"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Check(t.Context(), "own"); !errors.Is(err, broken) || s.State("own") != models.OwnFiles {
		t.Errorf("own: %v, %s", err, s.State("own"))
	}
	if _, err := s.Get(t.Context(), models.Entry{Name: "own", Role: "asr", Parts: e.Parts}); !errors.Is(err, os.ErrExist) {
		t.Errorf("the owner's files were replaced: %v", err)
	}
	if _, err := s.Check(t.Context(), "nothing"); !errors.Is(err, models.ErrAbsent) {
		t.Errorf("nothing: %v", err)
	}
}

// TestBusy has two programs at the same folder.
func TestBusy(t *testing.T) {
	t.Parallel()
	content := tgz(t, "a/model.onnx", "network")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.tgz"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	e := entry("mine", "file://"+dir+"/m.tgz", content)
	s.Tell = func(models.Progress) {
		if _, err := (&models.Store{Dir: s.Dir}).Get(t.Context(), e); !errors.Is(err, models.ErrBusy) {
			t.Errorf("at the same time: %v", err)
		}
	}
	if _, err := s.Get(t.Context(), e); err != nil {
		t.Error(err)
	}
}
