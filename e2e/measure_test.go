package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// fastBinary is the program as users run it, without the race detector, built
// for the first benchmark that wants it.
var fastBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "xiaozhi-fast")
	out, err := exec.Command("go", "build", "-o", path, "xiaozhi/cmd/xiaozhi").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
})

// instant is a server whose three engines are the fake cloud, which answers at once.
func instant(cloud *openaitest.Server) setup {
	return setup{
		env: []string{"XIAOZHI_LLM=cloud", "XIAOZHI_LOG__LEVEL=info"},
		config: "server: {max_devices: 5000}\nasr: [cloud]\nllm: [cloud]\ntts: [cloud]\n" +
			"providers: {cloud: {type: openai, base_url: \"" + cloud.URL() + "\", api_key: k, model: m}}\n",
	}
}

// startFast starts the program that benchmarks measure.
func startFast(b *testing.B, s setup) *server {
	b.Helper()
	path, err := fastBinary()
	if err != nil {
		b.Fatal(err)
	}
	s.binary = path
	return start(b, s)
}

// loader is a device for load: it does not decode what it hears.
func loader(ctx context.Context, tb testing.TB, s *server, i int, o devicetest.Options) *devicetest.Device {
	tb.Helper()
	o.URL, o.NoDecode = s.ws, true
	o.DeviceID = fmt.Sprintf("24:6f:28:00:%02x:%02x", i>>8, i&255)
	d, err := devicetest.Dial(ctx, o)
	if err != nil {
		tb.Fatalf("device %d: %v", i, err)
	}
	tb.Cleanup(d.Close)
	return d
}

// listed waits until a device has been asked for its last page of tools.
func listed(ctx context.Context, tb testing.TB, d *devicetest.Device) {
	tb.Helper()
	_, err := d.Wait(ctx, func(e devicetest.Event) bool {
		sent := e.Kind == devicetest.KindSent && strings.Contains(string(e.Raw), `"tools":[`)
		return sent && !strings.Contains(string(e.Raw), "nextCursor")
	})
	if err != nil {
		tb.Fatalf("the tools were not listed: %v", err)
	}
}

// timings are measured durations.
type timings []time.Duration

// quantile is the value that a share q of all do not exceed.
func (t timings) quantile(q float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// report adds p50, p99 and max in milliseconds to a benchmark's figures.
func (t timings) report(b *testing.B, name string) {
	b.Helper()
	for _, q := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"max", 1}} {
		b.ReportMetric(t.quantile(q.q).Seconds()*1000, name+"-"+q.name+"-ms")
	}
}

// about prints where and under which load the figures were taken, and hides
// the time per iteration, which means nothing here.
func about(b *testing.B, n int) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	load, _ := os.ReadFile("/proc/loadavg") // left out where there is none
	b.Logf("N=%d; %s, %d processors; load average %s", n, processor(), runtime.NumCPU(), strings.Join(strings.Fields(string(load)), " "))
}

// processor is the model of the machine's processor.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// memory is what Linux says of the memory of a process, in KiB.
type memory struct{ rss, anon, peak int }

func (s *server) memory(tb testing.TB) memory {
	tb.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var m memory
	fields := map[string]*int{"VmRSS": &m.rss, "RssAnon": &m.anon, "VmHWM": &m.peak}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if into := fields[key]; into != nil {
			*into, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		}
	}
	return m
}

// cpu is the processor time that the server has used.
func (s *server) cpu(tb testing.TB) time.Duration {
	tb.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		tb.Fatalf("/proc/PID/stat: %q", raw)
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // Linux counts in hundredths
}

// control wakes every 60 ms as a paced reply does and does nothing else, on the
// server's processor if there is taskset: how late it is, is how late the
// machine lets anybody be.
func control(ctx context.Context) timings {
	runtime.LockOSThread() // and never unlocked: the thread is not for others
	_ = exec.Command("taskset", "-cp", "0", strconv.Itoa(syscall.Gettid())).Run()
	var late timings
	next := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next = next.Add(60 * time.Millisecond)
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
			late = append(late, time.Since(next))
		case <-ctx.Done():
			return late
		}
	}
}
