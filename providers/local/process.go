package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// processLimit ends an engine that hangs. One unit takes 20 to 40 ms.
	processLimit = 15 * time.Second
	// pipeGrace is how long a killed engine may keep its pipes open.
	pipeGrace = 50 * time.Millisecond
)

// program is one run of an engine that takes text and writes a WAV file to its
// standard output.
type program struct {
	path  string
	args  []string
	stdin string
	rate  int // Hz it must answer with
}

// run starts the program, hands on its sound as it comes, and waits for its
// end. The end of ctx kills its process group.
func (p program) run(ctx context.Context, put func([]int16)) error {
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
		cancel() // it may go on writing what nobody reads
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

// readWAV reads 16-bit mono PCM until the end of r. The length fields are not
// believed: who writes to a pipe does not know them.
func readWAV(r io.Reader, rate int, put func([]int16)) error {
	var b [4096]byte
	if _, err := io.ReadFull(r, b[:12]); err != nil {
		return fmt.Errorf("wav header: %w", err)
	}
	if string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE" {
		return errors.New("wav header: not a WAV file")
	}
	for {
		if _, err := io.ReadFull(r, b[:8]); err != nil {
			return fmt.Errorf("wav chunk: %w", err)
		}
		name, size := string(b[:4]), binary.LittleEndian.Uint32(b[4:8])
		if name == "data" {
			return readSamples(r, b[:], put)
		}
		if size > uint32(len(b)) {
			return fmt.Errorf("wav chunk %q of %d bytes", name, size)
		}
		if _, err := io.ReadFull(r, b[:size]); err != nil {
			return fmt.Errorf("wav chunk %q: %w", name, err)
		}
		if name == "fmt " {
			if err := checkFormat(b[:size], rate); err != nil {
				return err
			}
		}
	}
}

func checkFormat(b []byte, rate int) error {
	if len(b) < 16 {
		return fmt.Errorf("wav format of %d bytes", len(b))
	}
	channels := binary.LittleEndian.Uint16(b[2:])
	got := binary.LittleEndian.Uint32(b[4:])
	bits := binary.LittleEndian.Uint16(b[14:])
	if channels != 1 || bits != 16 || int(got) != rate {
		return fmt.Errorf("wav format: %d channels of %d bit at %d Hz, want 1 of 16 bit at %d Hz", channels, bits, got, rate)
	}
	return nil
}

func readSamples(r io.Reader, b []byte, put func([]int16)) error {
	pcm := make([]int16, len(b)/2)
	have := 0
	for {
		n, err := r.Read(b[have:])
		have += n
		whole := have &^ 1
		for i := 0; i < whole; i += 2 {
			pcm[i/2] = int16(binary.LittleEndian.Uint16(b[i:]))
		}
		put(pcm[:whole/2])
		copy(b, b[whole:have])
		have -= whole
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wav data: %w", err)
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
