package local

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

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
