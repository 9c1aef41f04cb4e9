package sherpa_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sherpa"
	"xiaozhi/providers/sherpa/modelfile"
	"xiaozhi/providers/sherpa/sherpatest"
)

// folder makes a folder of models with a library, as it is when all was fetched.
func folder(t *testing.T, with map[string]modelfile.Kind) (dir string, lib *sherpatest.Library) {
	t.Helper()
	dir, lib = t.TempDir(), sherpatest.NewLibrary(t)
	for name, kind := range with {
		if err := os.Rename(sherpatest.Model(t, kind), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	so, err := os.ReadFile(lib.File)
	if err != nil {
		t.Fatal(err)
	}
	sherpatest.Write(t, filepath.Join(dir, sherpa.LibraryFolder, "libsherpa-onnx-c-api.so"), so)
	return dir, lib
}

// TestKind makes providers of a section that says nothing but where the models are.
func TestKind(t *testing.T) {
	t.Parallel()
	dir, _ := folder(t, map[string]modelfile.Kind{
		"mine": modelfile.Whisper, "sensevoice": modelfile.SenseVoice, "another": modelfile.VITS, "kokoro-zh-en": modelfile.Kokoro,
	})
	kind := sherpa.Kind()
	s := service.Section{Name: "home", Settings: map[string]any{"folder": dir, "decoders": 1, "threads": 1}}
	a, err := kind.ASR(s)
	if err != nil {
		t.Fatal(err)
	}
	r := a.(*sherpa.Recognizer)
	defer r.Close()
	if r.Name() != "home" || r.Kind() != modelfile.SenseVoice {
		t.Errorf("%s hears by %s", r.Name(), r.Kind())
	}
	if err := r.Warm(t.Context()); err != nil {
		t.Error(err)
	}
	s.Voices = map[string]string{"": "zf_001", "en": "af_maple"}
	v, err := kind.TTS(s)
	if err != nil {
		t.Fatal(err)
	}
	defer v.(*sherpa.Voice).Close()
	if v.(*sherpa.Voice).Kind() != modelfile.Kokoro {
		t.Errorf("speaks by %s", v.(*sherpa.Voice).Kind())
	}
	for language, want := range map[string]int16{"zh-CN": 6553, "en-GB": 3276} {
		if _, loud, err := speech(v.Synthesize(t.Context(), providers.TTSRequest{Text: "好", Language: language})); err != nil || loud != want {
			t.Errorf("%s: loudness %d, %v, want %d", language, loud, err, want)
		}
	}
	listed := func(want string) {
		t.Helper()
		voices, err := kind.ListVoices(t.Context(), s)
		var names []string
		for _, v := range voices {
			names = append(names, v.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("speakers %s, %v, want %s", got, err, want)
		}
	}
	listed("af_maple zf_001 zm_010")
	s.Models = map[service.Role]string{service.ASR: "mine", service.TTS: filepath.Join(dir, "another")}
	s.Voices = nil
	listed("0 1 2 3")
	if a, err := kind.ASR(s); err != nil || a.(*sherpa.Recognizer).Kind() != modelfile.Whisper {
		t.Errorf("a model by its name: %v", err)
	}
	if v, err := kind.TTS(s); err != nil || v.(*sherpa.Voice).Kind() != modelfile.VITS {
		t.Errorf("a model by its path: %v", err)
	}
	s = service.Section{Settings: map[string]any{"folder": t.TempDir()}}
	for _, make := range []func() error{func() error { _, err := kind.ASR(s); return err }, func() error { _, err := kind.TTS(s); return err }} {
		if p, ok := errors.AsType[*modelfile.Problem](make()); !ok || p.Fault != modelfile.NoFolder {
			t.Errorf("nothing is there: %+v", p)
		}
	}
}

// TestTryItself hears and speaks once with each sort of model.
func TestTryItself(t *testing.T) {
	t.Parallel()
	lib := sherpatest.NewLibrary(t)
	roles := []service.Role{service.ASR, service.TTS, service.Voiceprint}
	for kind, role := range map[modelfile.Kind]service.Role{modelfile.Transducer: roles[0], modelfile.SenseVoice: roles[0], modelfile.VITS: roles[1], modelfile.Speaker: roles[2]} {
		o := sherpa.Options{Library: lib.File, Model: sherpatest.Model(t, kind)}
		if err := sherpa.Try(t.Context(), o, role); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for _, other := range roles {
			if err := sherpa.Try(t.Context(), o, other); err == nil && other != role {
				t.Errorf("%s plays the role %s too", kind, other)
			}
		}
	}
	lib.Set("mute", 1)
	if err := sherpa.Try(t.Context(), sherpa.Options{Library: lib.File, Model: sherpatest.Model(t, modelfile.VITS)}, service.TTS); err != nil {
		t.Errorf("a voice that does not know the signs: %v", err)
	}
	if live := lib.Get("live"); live != 0 {
		t.Errorf("%d objects are not freed", live)
	}
}

// TestTryElsewhere has programs in place of our own, which end as the library may make ours end.
//
// It is not parallel: a program that another test starts meanwhile would hold the file open that is to be run.
func TestTryElsewhere(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0": "",
		"echo \"'T' does not exist in the metadata\" >&2; exit 255":                                     "'T' does not exist in the metadata",
		"echo what: bad file >&2; echo SIGABRT: abort >&2; echo goroutine 1 >&2; kill -6 $$":            "what: bad file",
		"[ \"$1 $2 $3 $5 $6 $7\" = 'models try --library=lib.so --role=tts -- dir' ] || exit 1; exit 0": "",
		"exec sleep 5": "deadline",
	} {
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 250*1e6)
		if want != "deadline" {
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 1e10)
		}
		err := sherpa.TryBy(program, sherpa.Options{Library: "lib.so", Model: "dir"}, service.TTS)(ctx)
		cancel()
		switch {
		case want == "" && err != nil, want == "deadline" && err != context.DeadlineExceeded: //nolint:errorlint // unchanged
			t.Errorf("%s: %v", script, err)
		case want != "" && want != "deadline":
			if p, ok := errors.AsType[*modelfile.Problem](err); !ok || p.Fault != modelfile.Refused || !strings.Contains(p.Error(), want) || strings.Contains(p.Error(), "goroutine") {
				t.Errorf("%s: %v", script, err)
			}
		}
	}
}
