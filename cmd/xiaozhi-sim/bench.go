package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/bench"
	"xiaozhi/internal/text/message"
)

type benchFlags struct {
	bench.Options
	json        string
	quick, full bool
	list        bool
	stubsOnly   bool
	trouble     string
	compare     []string
}

// benchmark is the subcommand. It returns 0 when all was measured, whatever the figures; 1 when something could not
// be, or a soak found a fault; 2 when it was misused.
func benchmark(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseBench(args, stdout)
	if err != nil {
		return misused("bench", err, stderr)
	}
	f.Log, f.Program = stderr, serverProgram()
	if err := f.run(ctx, stdout); err != nil {
		fmt.Fprintf(stderr, "xiaozhi bench: %s\n", message.Both("bench/failed", err))
		return 1
	}
	return 0
}

// serverProgram returns the path of our own server: beside this program, else in PATH, else "".
func serverProgram() string {
	const name = "xiaozhi"
	if own, err := os.Executable(); err == nil {
		if beside, err := exec.LookPath(filepath.Join(filepath.Dir(own), name)); err == nil {
			return beside
		}
	}
	path, _ := exec.LookPath(name)
	return path
}

// parseBench reads and checks the command line. If that asks for help, it is written to help.
func parseBench(args []string, help io.Writer) (benchFlags, error) {
	f := benchFlags{}
	f.Command = "xiaozhi bench " + strings.Join(args, " ")
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.StringVar(&f.URL, "url", "", message.Both("bench/flag-url"))
	set.StringVar(&f.Token, "token", "", message.Both("bench/flag-token"))
	set.IntVar(&f.PID, "pid", 0, message.Both("bench/flag-pid"))
	set.StringVar(&f.Profiles, "pprof-url", "", message.Both("bench/flag-pprof-url"))
	set.StringVar(&f.Stubs, "stubs", "", message.Both("bench/flag-stubs"))
	set.BoolVar(&f.stubsOnly, "stubs-only", false, message.Both("bench/flag-stubs-only"))
	set.Func("scenario", message.Both("bench/flag-scenario"), listed(&f.Metrics))
	set.BoolVar(&f.list, "list", false, message.Both("bench/flag-list"))
	set.BoolVar(&f.quick, "quick", false, message.Both("bench/flag-quick"))
	set.BoolVar(&f.full, "full", false, message.Both("bench/flag-full"))
	set.IntVar(&f.Runs, "runs", 1, message.Both("bench/flag-runs"))
	set.IntVar(&f.Retries, "retry", 0, message.Both("bench/flag-retry"))
	set.StringVar(&f.json, "json", "", message.Both("bench/flag-json"))
	set.DurationVar(&f.Guard, "guard", bench.OwnGuard, message.Both("bench/flag-guard"))
	set.DurationVar(&f.Silence, "silence", 0, message.Both("bench/flag-silence"))
	set.DurationVar(&f.Sentence, "sentence", 0, message.Both("bench/flag-sentence"))
	set.StringVar(&f.Label, "label", "", message.Both("bench/flag-label"))
	set.Func("compare", message.Both("bench/flag-compare"), listed(&f.compare))
	set.StringVar(&f.Dir, "pprof", "", message.Both("bench/flag-pprof"))
	set.BoolVar(&f.NoPin, "no-pin", false, message.Both("bench/flag-no-pin"))
	set.DurationVar(&f.Soak, "soak", 0, message.Both("bench/flag-soak"))
	set.IntVar(&f.Devices, "devices", 0, message.Both("bench/flag-devices"))
	set.BoolVar(&f.Relative, "relative", false, message.Both("bench/flag-relative"))
	set.StringVar(&f.Garbage, "gogc", "", message.Both("bench/flag-gogc"))
	set.StringVar(&f.trouble, "trouble", "", message.Both("bench/flag-trouble"))
	if err := parse(set, args, help, "bench/usage"); err != nil {
		return f, err
	}
	return f, f.check()
}

// listed adds what stands between the commas of a flag to a list.
func listed(into *[]string) func(string) error {
	return func(s string) error {
		*into = append(*into, strings.Split(s, ",")...)
		return nil
	}
}

func (f *benchFlags) check() error {
	switch {
	case f.quick && f.full:
		return errors.New(message.Both("bench/size"))
	case f.quick:
		f.Size = bench.Quick
	case f.full:
		f.Size = bench.Full
	}
	switch {
	case f.Guard < 0 || f.Silence < 0 || f.Sentence < 0:
		return errors.New(message.Both("bench/negative"))
	case f.Runs < 1 || f.Devices < 0 || f.Soak < 0 || f.PID < 0 || f.Retries < 0:
		return errors.New(message.Both("bench/counts"))
	case f.URL == "" && (f.PID != 0 || f.Profiles != "" || f.Token != ""):
		return errors.New(message.Both("bench/url"))
	case !slices.Contains([]string{"", string(bench.Failing), string(bench.Hanging)}, f.trouble):
		return errors.New(message.Both("bench/trouble", f.trouble))
	}
	if f.Guard == 0 {
		f.Guard = -1 // none, where 0 would be the usual one
	}
	return bench.CheckMetrics(f.Metrics)
}

func (f *benchFlags) run(ctx context.Context, stdout io.Writer) error {
	switch {
	case f.list:
		for _, m := range bench.Metrics() {
			fmt.Fprintf(stdout, "%-16s %s\n", m[0], m[1])
		}
		return nil
	case len(f.compare) > 0:
		return compareReports(f.compare, stdout)
	case f.stubsOnly:
		return f.runStubs(ctx, stdout)
	case f.Soak > 0:
		return bench.Soak(ctx, f.Options, stdout)
	}
	report, err := bench.Run(ctx, f.Options)
	if err == nil {
		err = f.write(report, stdout)
	}
	if err == nil && len(report.Errors) > 0 {
		err = fmt.Errorf("%d of the scenarios failed", len(report.Errors))
	}
	return err
}

func (f *benchFlags) write(report *bench.Report, stdout io.Writer) error {
	if f.json == "-" {
		return report.JSON(stdout)
	}
	if f.json != "" {
		file, err := os.Create(f.json)
		if err != nil {
			return err
		}
		if err := errors.Join(report.JSON(file), file.Close()); err != nil {
			return err
		}
	}
	return report.Table(stdout)
}

func compareReports(files []string, stdout io.Writer) error {
	var reports []*bench.Report
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		r := new(bench.Report)
		if err := json.Unmarshal(data, r); err != nil {
			return fmt.Errorf("%s is no report of xiaozhi bench: %w", name, err)
		}
		reports = append(reports, r)
	}
	return bench.Compare(stdout, reports)
}

// runStubs lets the stub providers run until ctx ends, for a server that asks
// them at its start, or for trying out by hand.
func (f *benchFlags) runStubs(ctx context.Context, stdout io.Writer) error {
	stubs, err := bench.StartStubs(f.Stubs)
	if err != nil {
		return err
	}
	stubs.Set(bench.Plan{Sound: 2 * time.Second, Trouble: bench.Trouble(f.trouble)})
	fmt.Fprintf(stdout, "stub providers: %s (chat/completions, audio/transcriptions, audio/speech; any key, any model)\n", stubs.URL())
	<-ctx.Done()
	return stubs.Close()
}
