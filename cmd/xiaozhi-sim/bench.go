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
)

const benchUsage = `usage: xiaozhi bench [flags]

Measures a server, ours or another's, with simulated speakers and stub providers
(docs/bench.md). Without --url it starts its own. Beside each figure stand its
goal and a control timer, which voids what was taken on a busy machine.
用模拟设备和桩服务测量服务器，我们的或别人的（见 docs/bench.zh-CN.md）；不带 --url 时自己启动一个。
每个数字旁边有目标和一个对照定时器：机器太忙时，数字作废（void）。

`

// benchFlags are the command line of bench.
type benchFlags struct {
	bench.Options
	json        string
	quick, full bool
	list        bool
	stubsOnly   bool
	trouble     string
	guard       time.Duration
	compare     []string
}

// benchmark is the subcommand. It returns 0 when all was measured, whatever the
// figures; 1 when something could not be, or a soak found a fault; 2 when it was
// misused.
func benchmark(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseBench(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "xiaozhi bench: %v\nxiaozhi bench --help lists the flags / 查看参数\n", err)
		return 2
	}
	f.Log = stderr
	f.Program = serverProgram()
	if err := f.run(ctx, stdout); err != nil {
		fmt.Fprintf(stderr, "xiaozhi bench: %v / 测量失败\n", err)
		return 1
	}
	return 0
}

// serverProgram returns the path of our own server: beside this program, else in
// PATH, else "".
func serverProgram() string {
	const name = "xiaozhi"
	if own, err := os.Executable(); err == nil {
		if beside, err := exec.LookPath(filepath.Join(filepath.Dir(own), name)); err == nil {
			return beside
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// parseBench reads and checks the command line. If that asks for help, it is written to help.
func parseBench(args []string, help io.Writer) (benchFlags, error) {
	f := benchFlags{}
	f.Command = "xiaozhi bench " + strings.Join(args, " ")
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(io.Discard) // errors are returned, and printed once
	set.Usage = func() {}
	set.StringVar(&f.URL, "url", "", "OTA or WebSocket `URL` of the server; default: our own is started / 服务地址，默认启动我们自己的")
	set.StringVar(&f.Token, "token", "", "token of the devices / 设备令牌")
	set.IntVar(&f.PID, "pid", 0, "process id of that server, for memory and CPU / 服务进程号，用于内存和 CPU")
	set.StringVar(&f.Profiles, "pprof-url", "", "`URL` of that server's /debug/pprof/, if it is written in Go / 性能剖析地址")
	set.StringVar(&f.Stubs, "stubs", "", "address of the stub providers, as 127.0.0.1:9100; default: a free port / 桩服务地址")
	set.BoolVar(&f.stubsOnly, "stubs-only", false, "only run the stub providers, until interrupted / 只运行桩服务")
	set.Func("scenario", "`LIST` of metrics to measure, as m1,m4; default: all / 要测的指标，默认全部", func(s string) error {
		f.Metrics = append(f.Metrics, strings.Split(s, ",")...)
		return nil
	})
	set.BoolVar(&f.list, "list", false, "list the metrics / 列出指标")
	set.BoolVar(&f.quick, "quick", false, "a few seconds for each, only to see that it works / 每项几秒，只看能不能用")
	set.BoolVar(&f.full, "full", false, "as much as the definitions ask for: more than an hour / 按定义完整测量，一小时以上")
	set.IntVar(&f.Runs, "runs", 1, "repeat everything so often and give medians / 重复次数，给出中位数")
	set.IntVar(&f.Retries, "retry", 0, "measure a scenario again, up to so often, if the machine was too busy / 作废时最多重测几次")
	set.StringVar(&f.json, "json", "", "`FILE` for the report as JSON; - for standard output, in place of the table / 写出 JSON 报告；- 为标准输出")
	set.DurationVar(&f.guard, "guard", bench.OwnGuard, "pause that the server keeps between tts start and sound / 首帧保护间隔")
	set.DurationVar(&f.Silence, "silence", 0, "silence after which the server takes speech for finished; default 700ms, 800ms for m3 / 断句静音，默认 700ms（m3 为 800ms）")
	set.DurationVar(&f.Sentence, "sentence", 0, "how long a sentence lasts, as 10s, for a server that reads all of its sound before it speaks; default: endless / 每句时长，用于要读完整句才开口的服务器")
	set.StringVar(&f.Label, "label", "", "what to call the server in the report / 报告里的名称")
	set.Func("compare", "`FILES` of JSON reports of two servers, as a.json,b.json; compare them and measure nothing / 比较两个服务器的报告，不测量", func(s string) error {
		f.compare = append(f.compare, strings.Split(s, ",")...)
		return nil
	})
	set.StringVar(&f.Dir, "pprof", "", "`DIR` for CPU and heap profiles of the server / 剖析文件目录")
	set.BoolVar(&f.NoPin, "no-pin", false, "do not bind server and load to cores / 不绑定处理器核")
	set.DurationVar(&f.Soak, "soak", 0, "let devices talk for this `duration`, in place of the metrics / 长时间运行，不测指标")
	set.IntVar(&f.Devices, "devices", 50, "devices of a soak / 长时间运行的设备数")
	set.StringVar(&f.trouble, "trouble", "", "how the stubs of --stubs-only misbehave: failing or hanging / 桩服务的故障：failing（报错）或 hanging（不回应）")
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(help, benchUsage)
			set.SetOutput(help)
			set.PrintDefaults()
		}
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unknown argument %q / 未知参数", set.Arg(0))
	}
	return f, f.check()
}

func (f *benchFlags) check() error {
	switch {
	case f.quick && f.full:
		return errors.New("--quick and --full exclude each other / 不能同时使用")
	case f.quick:
		f.Size = bench.Quick
	case f.full:
		f.Size = bench.Full
	}
	if f.Guard = f.guard; f.guard == 0 {
		f.Guard = -1 // none, where 0 would be the usual one
	}
	if f.guard < 0 || f.Silence < 0 || f.Sentence < 0 {
		return errors.New("--guard, --silence and --sentence must not be less than 0 / 不能小于 0")
	}
	if f.Runs < 1 || f.Devices < 1 || f.Soak < 0 || f.PID < 0 || f.Retries < 0 {
		return errors.New("--runs and --devices must be 1 or more, --soak, --pid and --retry not less than 0 / 前两个至少为 1，其余不能小于 0")
	}
	if f.URL == "" && (f.PID != 0 || f.Profiles != "" || f.Token != "") {
		return errors.New("--pid, --pprof-url and --token are about the server of --url / 需要 --url")
	}
	if !slices.Contains([]string{"", string(bench.Failing), string(bench.Hanging)}, f.trouble) {
		return fmt.Errorf("--trouble %q: must be failing or hanging / 只能是 failing 或 hanging", f.trouble)
	}
	return bench.CheckMetrics(f.Metrics)
}

// run does what the flags ask for.
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
	if err != nil {
		return err
	}
	if err := f.write(report, stdout); err != nil {
		return err
	}
	if len(report.Errors) > 0 {
		return fmt.Errorf("%d of the scenarios failed", len(report.Errors))
	}
	return nil
}

// write puts the report where it is wanted.
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

// compareReports reads reports and compares what they say.
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
	trouble := bench.Trouble(f.trouble)
	stubs.Set(bench.Plan{Sound: 2 * time.Second, ASRTrouble: trouble, LLMTrouble: trouble, TTSTrouble: trouble})
	fmt.Fprintf(stdout, "stub providers: %s (chat/completions, audio/transcriptions, audio/speech; any key, any model)\n", stubs.URL())
	<-ctx.Done()
	return stubs.Close()
}
