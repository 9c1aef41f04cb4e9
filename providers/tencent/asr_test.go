package tencent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/tencent"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// heard speaks half a second and gives the partial texts and the final one, or the error.
func heard(ctx context.Context, t *testing.T, s *servicetest.Server, model string, sound []byte) (partials []string, final string, err error) {
	t.Helper()
	a, err := newASR(service.Section{
		Name: "x", Key: servicetest.Key, Secret: servicetest.Secret, ID: servicetest.ID, BaseURL: s.URL(),
		Settings: map[string]any{"pace": 2.9},
		Models:   map[service.Role]string{service.ASR: model}, Timeouts: service.Timeouts{First: 700 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := a.Open(ctx, providers.ASRRequest{Rate: 16000, Language: "zh"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range servicetest.Pieces(sound, 1920) {
		_ = stream.Write(servicetest.Samples(p))
	}
	_ = stream.CloseWrite()
	for tr, err := range stream.Transcripts() {
		switch {
		case err != nil:
			return partials, "", err
		case tr.Final:
			final = tr.Text
		default:
			partials = append(partials, tr.Text)
		}
	}
	return partials, final, nil
}

func TestRecognition(t *testing.T) {
	t.Parallel()
	speech := servicetest.Speech(strings.Repeat("x", 20), 16000)
	for _, model := range []string{"16k_zh"} {
		for f, kind := range map[servicetest.Fault]providers.Kind{
			servicetest.None: -1, servicetest.Odd: -1, servicetest.ClockAhead: -1,
			servicetest.WrongKey: providers.Unauthorized, servicetest.NoMoney: providers.NoCredit, servicetest.RateLimited: providers.RateLimited,
			servicetest.Broken: providers.Unavailable, servicetest.Cut: providers.Unavailable, servicetest.Closed: providers.Unavailable,
		} {
			t.Run(model+" "+f.String(), func(t *testing.T) {
				t.Parallel()
				s := fake.New(t)
				if f != servicetest.None && !s.Knows(f) {
					t.Skip("the fake cannot be so")
				}
				s.Fail(f)
				partials, final, err := heard(t.Context(), t, s, model, speech)
				failed, ok := errors.AsType[*providers.Error](err)
				switch {
				case kind < 0 && (err != nil || final != servicetest.Words || len(partials) == 0):
					t.Errorf("%q and %q, error %v", partials, final, err)
				case kind >= 0 && (!ok || failed.Kind != kind || strings.Contains(err.Error(), servicetest.Secret)):
					t.Errorf("error %v, want %v", err, kind)
				}
			})
		}
	}
}

func TestSilenceIsNothing(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"16k_zh"} {
		if _, final, err := heard(t.Context(), t, fake.New(t), model, make([]byte, 9600)); err != nil || final != "" {
			t.Errorf("%s: heard %q, error %v", model, final, err)
		}
	}
}
