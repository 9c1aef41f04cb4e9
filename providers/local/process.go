package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"xiaozhi/audio/file"
)

const (
	// processLimit ends an engine that hangs. One unit takes 20 to 40 ms.
	processLimit = 15 * time.Second
	// pipeGrace is the time for which a killed engine may keep its pipes open.
	pipeGrace = 50 * time.Millisecond
)

// program is one run of an engine that takes text and writes a WAV file to its
// standard output.
type program struct {
	path  string
	args  []string
	stdin string
	rate  int           // Hz it must answer with
	slots chan struct{} // cap maxProcesses
}

// run waits for a slot, starts the program, hands on its sound as it comes, and
// waits for its end. The end of ctx kills its process group.
func (p program) run(ctx context.Context, put func([]int16)) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, processLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, p.path, p.args...)
	cmd.Stdin = strings.NewReader(p.stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeGrace
	complaint := &head{limit: 300}
	cmd.Stderr = complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run %s: %w", p.path, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", p.path, err)
	}
	stop := context.AfterFunc(limited, func() { _ = out.Close() })
	defer stop()
	soundErr := readWAV(out, p.rate, put)
	if soundErr != nil {
		cancel() // it may go on writing
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case soundErr != nil:
		return fmt.Errorf("sound of %s: %w%s", p.path, soundErr, complaint.suffix())
	case errors.Is(err, exec.ErrWaitDelay):
		return nil // it ended well; only its other pipes were slow to close, as on a busy machine
	case err != nil:
		return fmt.Errorf("run %s: %w%s", p.path, err, complaint.suffix())
	}
	return nil
}

// readWAV reads mono sound of that rate until the end of r. The length of the
// sound is not believed: a program that writes to a pipe does not know it.
func readWAV(r io.Reader, rate int, put func([]int16)) error {
	w, err := file.NewWAVReader(r)
	if err != nil {
		return err
	}
	if w.Channels != 1 || w.Bits != 16 || w.Rate != rate {
		return fmt.Errorf("wav format: %d channels of %d bit at %d Hz, want 1 of 16 bit at %d Hz", w.Channels, w.Bits, w.Rate, rate)
	}
	w.Size = -1
	var pcm [2048]int16
	for {
		n, err := w.Read(pcm[:])
		put(pcm[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// head keeps the first bytes of what an engine complains about.
type head struct {
	bytes.Buffer
	limit int
}

// Write takes everything and keeps the beginning.
func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), h.limit-h.Len())])
	return len(p), nil
}

func (h *head) suffix() string {
	if h.Len() == 0 {
		return ""
	}
	return ": " + strings.TrimSpace(h.String())
}

const (
	// chineseVoice is the only voice for Chinese. See the package comment.
	chineseVoice = "cmn-latn-pinyin"
	// englishVoice stands in where flite is missing.
	englishVoice = "en-us"
	espeakRate   = 22050 // Hz, of all its voices
	// maxProcesses is the number of engine processes that run at once for one
	// Synthesizer. Later callers wait, in order, until their context ends.
	maxProcesses = 8
	// versionWait is the time that the program has to report its version.
	versionWait = 5 * time.Second
)

// espeak speaks by running espeak-ng.
type espeak struct {
	path  string
	voice string
	speed int
	slots chan struct{} // cap maxProcesses
}

// findEspeak returns the program's path and version, "" if there is no program
// that reports its version in time.
func findEspeak(ctx context.Context, path string) (found, version string) {
	if path == "" {
		path = "espeak-ng"
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", ""
	}
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, found, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", ""
	}
	version = regexp.MustCompile(`\d+(\.\d+)+`).FindString(string(out))
	return found, version
}

func (e *espeak) traits(string) voiceTraits { return voiceTraits{espeakRate, 1} }

// speak runs espeak-ng over one unit; the text goes in by standard input.
func (e *espeak) speak(ctx context.Context, text, _ string, put func([]int16)) error {
	// -b 1: the text is UTF-8, whatever the locale says.
	args := []string{"-v", e.voice, "-s", strconv.Itoa(e.speed), "-b", "1", "--stdin", "--stdout"}
	if err := (program{e.path, args, text + "\n", espeakRate, e.slots}).run(ctx, put); err != nil {
		return fmt.Errorf("espeak-ng: %w", err)
	}
	return nil
}
