// Package browsertest drives Debian's Chromium as a person would, for tests of the console.
package browsertest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// ErrNone says that there is no Chromium here.
var ErrNone = errors.New("Chromium is not installed: scripts/packages.sh test installs it; journeys of the browser are not tested")

// programs are the names under which Chromium is installed. The first has no window, and takes a fifth less of the processor.
var programs = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

const (
	speechRate = 16000
	before     = 1 * speechRate // samples of silence before each sentence, in which a page gets ready
	after      = 3 * speechRate // and after it
	startTime  = 60 * time.Second
	// PlainHost is an address that leads to this machine and that the browser does not trust, as one in a home.
	PlainHost = "192.168.77.7"
)

// Browser is one Chromium. Its methods may be called at the same time.
type Browser struct {
	ctx   context.Context
	close func()
}

// Start starts one whose microphone hears a sentence, 16 kHz, again and again from the moment that a page opens it, with
// silence in between.
func Start(speech []int16) (*Browser, error) {
	program := ""
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return nil, ErrNone
	}
	dir, err := os.MkdirTemp("", "xiaozhi-browser-")
	if err != nil {
		return nil, err
	}
	wav := filepath.Join(dir, "speech.wav")
	if err := os.WriteFile(wav, wavOf(slices.Concat(make([]int16, before), speech, make([]int16, after))), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	allocated, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.WindowSize(1280, 900),
		chromedp.Flag("use-fake-device-for-media-stream", true), chromedp.Flag("use-fake-ui-for-media-stream", true),
		chromedp.Flag("use-file-for-fake-audio-capture", wav),
		chromedp.Flag("host-resolver-rules", "MAP "+PlainHost+" 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.Flag("mute-audio", false), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("in-process-gpu", true), chromedp.Flag("disable-back-forward-cache", true), chromedp.DisableGPU,
		chromedp.Flag("disable-features", "Translate,SpareRendererForSitePerProcess,OptimizationHints,MediaRouter"), chromedp.WSURLReadTimeout(startTime),
	)...)
	ctx, stop := chromedp.NewContext(allocated)
	b := &Browser{ctx: ctx, close: func() {
		_ = chromedp.Cancel(ctx) // waits for the process
		stop()
		end()
		_ = os.RemoveAll(dir)
	}}
	if err := chromedp.Do(ctx); err != nil {
		b.close()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return b, nil
}

// Close ends it.
func (b *Browser) Close() { b.close() }

// Need returns what start gives, and skips the test where there is no Chromium.
func Need(tb testing.TB, start func() (*Browser, error)) *Browser {
	tb.Helper()
	b, err := start()
	if errors.Is(err, ErrNone) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// wavOf is sound as a file.
func wavOf(pcm []int16) []byte {
	le := binary.LittleEndian
	b := []byte("RIFF")
	b = le.AppendUint32(b, uint32(36+2*len(pcm)))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	for _, v := range []uint16{1, 1} { // PCM, mono
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, speechRate)
	b = le.AppendUint32(b, 2*speechRate)
	b = le.AppendUint16(b, 2)
	b = le.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = le.AppendUint32(b, uint32(2*len(pcm)))
	for _, v := range pcm {
		b = le.AppendUint16(b, uint16(v))
	}
	return b
}
