package sherpa_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sherpa"
	"xiaozhi/providers/sherpa/modelfile"
	"xiaozhi/providers/sherpa/sherpatest"
)

// knower makes a provider that tells people apart, with a library of its own. It is closed, and what it held is freed, at the end.
func knower(t *testing.T, change func(*sherpa.Options)) (*sherpa.Voiceprint, *sherpatest.Library) {
	t.Helper()
	lib := sherpatest.NewLibrary(t)
	o := sherpa.Options{Model: sherpatest.Model(t, modelfile.Speaker), Library: lib.File}
	if change != nil {
		change(&o)
	}
	v, err := sherpa.NewVoiceprint(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if live := lib.Get("live"); live != 0 {
			t.Errorf("%d objects of the library are not freed", live)
		}
	})
	return v, lib
}

func TestVoiceprint(t *testing.T) {
	t.Parallel()
	v, lib := knower(t, nil)
	if err := v.Warm(t.Context()); err != nil || lib.Get("live") != 1 {
		t.Errorf("%v, %d objects", err, lib.Get("live"))
	}
	providertest.KnowsVoices(t.Context(), t, v)
	if v.Scale() != (providers.Scale{Model: "campplus/64", Threshold: 0.5}) {
		t.Errorf("scale %+v", v.Scale())
	}
}

// TestVoiceprintMeans compares with the mean of a person's prints, and passes over what is no print.
func TestVoiceprintMeans(t *testing.T) {
	t.Parallel()
	v, _ := knower(t, func(o *sherpa.Options) { o.Threshold = 0.3 })
	var among []providers.Print
	for person, pitch := range map[string]float64{"anna": 200, "ben": 260} {
		p, err := v.Enrol(t.Context(), person, providertest.VoiceOf(pitch, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		p.Person = person
		among = append(among, p)
	}
	good := len(among)
	for _, data := range [][]byte{nil, {1, 2, 3}, {1, 2, 3, 4}, {0, 0, 0x80, 0x7f}} {
		among = append(among, providers.Print{ID: "odd", Person: "odd", Model: v.Scale().Model, Data: data})
	}
	match, err := v.Identify(t.Context(), providertest.VoiceOf(204, time.Second), among)
	if err != nil || match.Person != "anna" || match.Next <= 0 || match.Next >= match.Score {
		t.Errorf("%+v, %v", match, err)
	}
	if match, err := v.Identify(t.Context(), providertest.VoiceOf(204, time.Second), among[good:]); err != nil || match.Person != "" {
		t.Errorf("without a print: %+v, %v", match, err)
	}
}

// TestVoiceprintCancel ends the context, and closes the provider, while the library computes or loads.
func TestVoiceprintCancel(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancel", "close", "load"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			v, lib := knower(t, nil)
			busy := "delay"
			if how == "load" {
				busy = "load"
			}
			lib.Set(busy, 700)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			voice, ended := providertest.VoiceOf(200, time.Second), make(chan time.Time, 1)
			time.AfterFunc(60*time.Millisecond, func() {
				ended <- time.Now()
				if how == "close" {
					go v.Close()
					return
				}
				cancel(errors.New("a cause"))
			})
			_, err := v.Enrol(ctx, "x", voice)
			if took := time.Since(<-ended); took > 300*time.Millisecond {
				t.Errorf("returned after %v", took)
			}
			if how == "close" && kindOf(err) != providers.Unavailable || how != "close" && err != context.Canceled { //nolint:errorlint // unchanged
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestVoiceprintRetire frees the model, and loads it again for a voice that comes later.
func TestVoiceprintRetire(t *testing.T) {
	t.Parallel()
	v, lib := knower(t, nil)
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			if _, err := v.Enrol(t.Context(), "x", providertest.VoiceOf(200+10*float64(i), time.Second)); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	v.Retire()
	if live := lib.Get("live"); live != 0 {
		t.Errorf("%d objects after it was retired", live)
	}
	if _, err := v.Enrol(t.Context(), "x", providertest.VoiceOf(200, time.Second)); err != nil || lib.Get("live") != 0 {
		t.Errorf("%v, %d objects", err, lib.Get("live"))
	}
	v.Close()
	if _, err := v.Enrol(t.Context(), "x", providertest.VoiceOf(200, time.Second)); kindOf(err) != providers.Unavailable {
		t.Errorf("closed: %v", err)
	}
}

// TestVoiceprintKind makes it of a section that says nothing but where the models are.
func TestVoiceprintKind(t *testing.T) {
	t.Parallel()
	dir, _ := folder(t, map[string]modelfile.Kind{"mine": modelfile.SenseVoice, "campplus-zh": modelfile.Speaker})
	kind := sherpa.Kind()
	s := service.Section{Name: "home", Settings: map[string]any{"folder": dir, "threshold": 0.6}}
	if !kind.Here(s, service.Voiceprint) || kind.Here(s, service.TTS) {
		t.Error("it is not told what is here")
	}
	v, err := kind.Voiceprint(s)
	if err != nil {
		t.Fatal(err)
	}
	defer v.(*sherpa.Voiceprint).Close()
	if v.Name() != "home" || v.Scale().Threshold != 0.6 {
		t.Errorf("%s, %+v", v.Name(), v.Scale())
	}
	s.Models = map[service.Role]string{service.Voiceprint: "mine"}
	if _, err := kind.Voiceprint(s); err == nil {
		t.Error("a recogniser tells people apart")
	} else if p, ok := errors.AsType[*modelfile.Problem](err); !ok || p.Fault != modelfile.WrongRole {
		t.Errorf("%v", err)
	}
	if _, err := sherpa.NewVoiceprint(sherpa.Options{Model: "x", Threshold: 2}); kindOf(err) != providers.BadRequest {
		t.Errorf("threshold: %v", err)
	}
}
