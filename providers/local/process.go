package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
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
