package pocketsphinx

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xiaozhi/providers"
)

// modelWithout links Debian's model into a folder, with other content, or
// nothing, in place of one file.
func modelWithout(t *testing.T, file string, content []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "en-us"), 0o755); err != nil {
		t.Fatal(err)
	}
	names := []string{"en-us/feat.params", "en-us/noisedict"}
	for _, f := range modelFiles {
		names = append(names, f.name)
	}
	for _, name := range names {
		var err error
		switch {
		case name != file:
			err = os.Symlink(filepath.Join(defaultModelDir, name), filepath.Join(dir, name))
		case content != nil:
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The library ends the process over some of these, so none may get that far.
func TestFindModelBroken(t *testing.T) {
	files := []string{"en-us/feat.params"}
	for _, f := range modelFiles {
		files = append(files, f.name)
	}
	for _, file := range files {
		for what, content := range map[string][]byte{"missing": nil, "empty": {}, "rubbish": []byte("rubbish, longer than every beginning")} {
			if file == "cmudict-en-us.dict" && what == "rubbish" || file == "en-us/feat.params" && what != "missing" {
				continue // the library itself copes, or refuses: the next test
			}
			_, err := New(Options{ModelDir: modelWithout(t, file, content)})
			e, ok := errors.AsType[*providers.Error](err)
			if !ok || e.Kind != providers.Unavailable || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "pocketsphinx-en-us") {
				t.Errorf("%s %s: %v", file, what, err)
			}
		}
	}
}

// A file that goes away between New and loading: the library names it. Half a
// file would do as well were it not for the library, which reads on in whatever
// its memory holds.
func TestModelLoadFails(t *testing.T) {
	dir := modelWithout(t, "", nil)
	r, err := New(Options{Decoders: 1, ModelDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "en-us.lm.bin")); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 { // the place in the pool must not be lost
		err := r.Warm(t.Context())
		if e, ok := errors.AsType[*providers.Error](err); !ok || e.Kind != providers.Unavailable || !strings.Contains(err.Error(), "en-us.lm.bin") {
			t.Errorf("no language model: %v", err)
		}
	}
	s, err := r.Open(t.Context(), providers.ASRRequest{Rate: sampleRate})
	if err != nil {
		t.Fatal(err)
	}
	say(t, s, make([]int16, sampleRate))
	for got, err := range s.Transcripts() {
		if e, ok := errors.AsType[*providers.Error](err); !ok || e.Kind != providers.Unavailable {
			t.Errorf("an utterance: %+v, %v", got, err)
		}
	}
}

func TestFeatureArgsWithoutMean(t *testing.T) {
	args := featureArgs("-lowerf 130\n-cmn batch\n-cmninit 41.00,-5.29\n-model ptm\n-nfilt 25\n")
	want := []string{"-featparams", "/dev/null", "-cmn", "none", "-lowerf", "130", "-nfilt", "25"}
	if !slices.Equal(args, want) {
		t.Errorf("args %q, want %q", args, want)
	}
}

func FuzzFeatureArgs(f *testing.F) {
	for _, s := range []string{"", "-lowerf", "-lowerf 130", "-cmn batch -cmn live", "x -cmn", "-featparams /etc/passwd\n-nfilt 25"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, params string) {
		args := featureArgs(params)
		if len(args)%2 != 0 {
			t.Fatalf("an argument without its value in %q", args)
		}
		means := 0
		for i := 0; i < len(args); i += 2 {
			if args[i] == "-cmn" || args[i] == "-cmninit" {
				means++
			}
		}
		if means != 1 {
			t.Errorf("%q says %d times what to do about the mean", args, means)
		}
	})
}
