// Package apart reads documents in a process of their own, which gives way to everything else, may use so much time and
// memory, and sees nothing but the document: whatever a stranger has put into one, the server goes on.
//
// The process is the program itself ([Main]). It reads the document from its standard input and writes a reply as JSON.
package apart

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"xiaozhi/knowledge/reader"
)

// Command is the subcommand by which the program is such a process.
const Command = "read-document"

// Limits of one document.
const (
	readyTime = 10 * time.Minute // by the clock, until the process can read: what reads PDFs is translated once, which a small machine takes long for
	maxTime   = 5 * time.Minute  // by the clock: others go first
	maxCPU    = 2 * time.Minute  // of a processor
	maxMemory = 512 << 20        // bytes that are resident beside what is there before the document is read
	maxSpace  = 16 << 30         // bytes of addresses
	maxReply  = 32 << 20         // bytes
	endTime   = 10 * time.Second // until a process that was ended is gone
)

// Exit codes of the process.
const (
	exitOK     = 0
	exitFailed = 1 // the reply says why
	exitHeavy  = 3
	exitSlow   = 4
	exitUnable = 5 // it could not be made ready to read
)

// Reader reads documents, each in a process of its own. Its methods may be called at the same time.
type Reader struct {
	Program []string // that is started, up to its subcommand
	Cache   string   // folder for what is made once; "": none
}

// reply is the answer of the process.
type reply struct {
	Document reader.Document
	Fault    reader.Fault `json:",omitempty"`
	Detail   string       `json:",omitempty"`
	Error    string       `json:",omitempty"` // for the log
}

// Read reads a document from its beginning. The error is a [*reader.FaultError], that of ctx, or says that no process could be
// started.
func (r *Reader) Read(ctx context.Context, f *os.File, name string) (reader.Document, error) {
	limited, cancel := context.WithTimeout(ctx, readyTime+maxTime)
	defer cancel()
	args := append(append([]string(nil), r.Program[1:]...), Command, "--cache", r.Cache, "--name", name)
	cmd := exec.CommandContext(limited, r.Program[0], args...)
	cmd.Stdin, cmd.Dir, cmd.WaitDelay = f, "/", endTime
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=50", fmt.Sprintf("GOMEMLIMIT=%d", maxMemory*3/4)}
	out, said := &bounded{most: maxReply}, &bounded{most: 8 << 10}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	if err := ctx.Err(); err != nil {
		return reader.Document{}, err
	}
	if limited.Err() != nil {
		return reader.Document{}, &reader.FaultError{Fault: reader.Slow, Err: err}
	}
	return outcome(err, out, said.String())
}

// outcome is that of a process that has ended.
func outcome(err error, out *bounded, said string) (reader.Document, error) {
	ended, exited := errors.AsType[*exec.ExitError](err)
	if err != nil && !exited {
		return reader.Document{}, fmt.Errorf("start the reader of documents: %w", err)
	}
	code := exitOK
	if exited {
		code = ended.ExitCode()
	}
	var answer reply
	switch unread := json.Unmarshal(out.Bytes(), &answer); {
	case code == exitUnable:
		return reader.Document{}, fmt.Errorf("make the reader of documents ready: %w: %s", err, said)
	case code == exitHeavy, exited && killed(ended), strings.Contains(said, "out of memory"), strings.Contains(said, "cannot allocate memory"):
		return reader.Document{}, &reader.FaultError{Fault: reader.Heavy, Err: err}
	case code == exitSlow:
		return reader.Document{}, &reader.FaultError{Fault: reader.Slow, Err: err}
	case out.more, unread != nil, code != exitOK && answer.Fault == "":
		return reader.Document{}, &reader.FaultError{Fault: reader.Broken, Err: fmt.Errorf("%w: %s", cmp.Or(err, unread, errors.New("reply too long")), said)}
	case answer.Fault != "":
		return reader.Document{}, &reader.FaultError{Fault: answer.Fault, Detail: answer.Detail, Err: errors.New(answer.Error)}
	}
	return answer.Document, nil
}

// bounded takes so many bytes, and forgets what follows.
type bounded struct {
	bytes.Buffer

	most int
	more bool
}

// Write takes bytes, as many as there is room for, and never fails.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.Len()
	b.more = b.more || len(p) > room
	b.Buffer.Write(p[:min(len(p), room)])
	return len(p), nil
}

// Main reads the document that is a process's standard input, and returns its exit code. args follow the subcommand.
func Main(ctx context.Context, args []string, in *os.File, out io.Writer) int {
	limit()
	o, name := options(args)
	r := reader.New(o)
	if err := prepare(ctx, r, in); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUnable
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	limitCPU(maxCPU)
	go watchMemory(ctx, resident()+maxMemory) // ends with the process, which is one document's
	answer := reply{}
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("standard input is no file")
	}
	if err == nil {
		answer.Document, err = r.Read(ctx, in, info.Size(), name)
	}
	switch {
	case ctx.Err() != nil:
		return exitSlow
	case err != nil:
		answer = reply{Error: err.Error()}
		answer.Fault, answer.Detail = reader.FaultOf(err)
	}
	if json.NewEncoder(out).Encode(answer) != nil || err != nil {
		return exitFailed
	}
	return exitOK
}

// prepare makes the process ready to read a document.
func prepare(ctx context.Context, r *reader.Reader, in *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	defer debug.FreeOSMemory()
	return r.Prepare(ctx, in)
}

// options reads the arguments that [Reader.Read] gives.
func options(args []string) (o reader.Options, name string) {
	for i := 0; i+1 < len(args); i += 2 {
		switch args[i] {
		case "--cache":
			o.Cache = args[i+1]
		case "--name":
			name = args[i+1]
		}
	}
	return o, name
}

// watchMemory ends the process when it has so many bytes.
func watchMemory(ctx context.Context, most int) {
	const each = 50 * time.Millisecond
	tick := time.NewTicker(each)
	defer tick.Stop()
	for resident() < most {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	os.Exit(exitHeavy)
}
