package sherpa

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sherpa/modelfile"
)

// Program is the program whose command "models try" loads a model in a process of its own.
const Program = "xiaozhi"

// Try loads a model for a role, and hears, speaks or looks at a voice with it. The library ends the process on many a model
// that it does not like: it is for a process that nothing else depends on.
func Try(ctx context.Context, o Options, role service.Role) error {
	switch role {
	case service.TTS:
		return trySpeaking(ctx, o)
	case service.Voiceprint:
		return tryKnowing(ctx, o)
	default:
		return tryHearing(ctx, o)
	}
}

func tryHearing(ctx context.Context, o Options) error {
	r, err := New(o)
	if err != nil {
		return err
	}
	defer r.Close()
	s, err := r.Open(ctx, providers.ASRRequest{Rate: sampleRate})
	if err != nil {
		return err
	}
	if err := errors.Join(s.Write(make([]int16, sampleRate)), s.CloseWrite()); err != nil {
		return err
	}
	for _, err := range s.Transcripts() {
		if err != nil {
			return err
		}
	}
	return nil
}

// trySpeaking speaks a sentence. A model that knows no Latin letters may make no sound of it.
func trySpeaking(ctx context.Context, o Options) error {
	v, err := NewVoice(o)
	if err != nil {
		return err
	}
	defer v.Close()
	for _, err := range v.Synthesize(ctx, providers.TTSRequest{Text: sample()}) {
		if err != nil && !errors.Is(err, errSilent) {
			return err
		}
	}
	return nil
}

// tryKnowing makes a print of noise.
func tryKnowing(ctx context.Context, o Options) error {
	v, err := NewVoiceprint(o)
	if err != nil {
		return err
	}
	defer v.Close()
	pcm, seed := make([]int16, sampleRate), uint32(1)
	for i := range pcm {
		seed = seed*1664525 + 1013904223
		pcm[i] = int16(seed>>16) / 4
	}
	_, err = v.Enrol(ctx, "trial", pcm)
	return err
}

// sample has signs of several sorts: the digits of the sentence are numbers in both languages.
func sample() string { return string([]rune{0x4f60, 0x597d, 0xff0c}) + " OK 12345, 6.7%." }

// elsewhere returns what tries a model in another process, once, or nil where our own program is another one.
func elsewhere(o Options, role service.Role) func(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil || filepath.Base(program) != Program {
		return nil
	}
	return tryBy(program, o, role)
}

func tryBy(program string, o Options, role service.Role) func(ctx context.Context) error {
	args := []string{"models", "try", "--library=" + o.Library, "--language=" + o.Language, "--role=" + string(role)}
	return func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, program, append(args, "--", o.Model)...)
		cmd.WaitDelay = time.Second
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		err := cmd.Run()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, broke := errors.AsType[*exec.ExitError](err); !broke {
			return err
		}
		return &modelfile.Problem{Fault: modelfile.Refused, File: o.Model, Detail: "(" + ending(said.String()) + ")"}
	}
}

// ending is the last words of a program that broke.
func ending(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for i, line := range lines { // what the Go runtime tells of an abort is of no use
		if strings.HasPrefix(line, "SIG") || strings.HasPrefix(line, "goroutine ") {
			lines = lines[:i]
			break
		}
	}
	text := strings.Join(lines[max(0, len(lines)-3):], " ")
	if runes := []rune(text); len(runes) > 300 {
		text = string(runes[:300])
	}
	return strings.TrimSpace(text)
}
