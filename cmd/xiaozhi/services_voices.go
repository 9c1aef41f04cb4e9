package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/probe"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// voices lists the voices of a service, and saves a sample of each where that is asked for.
func (t *trier) voices(ctx context.Context, name string) error {
	switch roles := t.s.Roles(name); {
	case len(roles) == 0:
		return t.unknown(name)
	case !slices.Contains(roles, service.TTS) && !slices.Contains(roles, service.Realtime):
		return errors.New(message.Both("services/wrong-role", name, service.TTS, joinRoles(roles)))
	}
	all, asked, err := t.s.Voices(ctx, name)
	if err != nil {
		return errors.New(engines.Why(err, t.s.Free(name)))
	}
	if t.f.json {
		if all == nil {
			all = []service.Voice{}
		}
		return writeJSON(t.out, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(t.out, message.Both("services/no-voices", name))
		return nil
	}
	w := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
	for _, v := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", plainText(v.Name), plainText(v.Title), strings.Join(v.Language, " "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if !asked {
		fmt.Fprintln(t.out, message.Both("services/known-voices", name))
	}
	if t.f.save == "" {
		return nil
	}
	one := t.s.Try(ctx, name, service.TTS)
	if one.Err != nil {
		return one.Err
	}
	if err := os.MkdirAll(t.f.save, 0o755); err != nil {
		return err
	}
	var failed error
	for _, v := range all {
		if err := t.sample(ctx, one.TTS, v.Name); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %s", v.Name, engines.Why(err, t.s.Free(name))))
		}
	}
	return failed
}

// sample saves the sentence in one voice.
func (t *trier) sample(ctx context.Context, voice providers.TTS, name string) error {
	ctx, cancel := context.WithTimeout(ctx, t.f.timeout)
	defer cancel()
	spoken, err := probe.Speak(ctx, voice, providers.TTSRequest{Text: t.sentence(), Language: t.f.language, Voice: name})
	if err != nil {
		return err
	}
	safe := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '_'
		}
		return r
	}, name)
	out := filepath.Join(t.f.save, safe+".wav")
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := errors.Join(file.WriteWAV(f, spoken.PCM, audio.Recognition.Rate), f.Close()); err != nil {
		return err
	}
	fmt.Fprintln(t.out, message.Both("services/saved", out, ms(inMS(spoken.First))))
	return nil
}
