package offer

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// systemReport is the result of system.info. nodeVersion is a key that clients
// expect; its value is the version of Go.
type systemReport struct {
	Platform    string        `json:"platform"`
	Arch        string        `json:"arch"`
	NodeVersion string        `json:"nodeVersion"`
	GoVersion   string        `json:"goVersion"`
	Hostname    string        `json:"hostname"`
	CPU         cpuReport     `json:"cpu"`
	Memory      *memoryReport `json:"memory,omitempty"`
	Uptime      *uptimeReport `json:"uptime,omitempty"`
	Detail      *detailReport `json:"detail,omitempty"`
}

type cpuReport struct {
	Cores int    `json:"cores"`
	Model string `json:"model"`
}

// memoryReport is the machine's memory, in whole GB, and how much of it is used, in per cent.
type memoryReport struct {
	Total string `json:"total"`
	Free  string `json:"free"`
	Used  string `json:"used"`
	Usage int    `json:"usage"`
}

type uptimeReport struct {
	Seconds int64 `json:"seconds"`
	Hours   int64 `json:"hours"`
	Days    int64 `json:"days"`
}

// detailReport describes the server's own process.
type detailReport struct {
	Version    string  `json:"version"`
	Uptime     float64 `json:"serverUptime"` // seconds
	Goroutines int     `json:"goroutines"`
	HeapMB     float64 `json:"heapMB"`
	Devices    int     `json:"devices"`
	Tools      int     `json:"tools"`
}

// machine describes the computer; what the system does not tell is zero.
type machine struct {
	model       string
	total, free uint64 // bytes
	uptime      time.Duration
}

func (o Options) info(_ context.Context, arguments map[string]any) (any, error) {
	m := readMachine()
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	out := systemReport{
		Platform: nodeName(runtime.GOOS), Arch: nodeName(runtime.GOARCH), NodeVersion: runtime.Version(), GoVersion: runtime.Version(),
		Hostname: host, CPU: cpuReport{runtime.NumCPU(), cmp.Or(m.model, "unknown")},
	}
	if m.total > 0 {
		used := m.total - min(m.free, m.total)
		out.Memory = &memoryReport{gigabytes(m.total), gigabytes(m.free), gigabytes(used), int(100 * used / m.total)}
	}
	if m.uptime > 0 {
		seconds := int64(m.uptime.Seconds())
		out.Uptime = &uptimeReport{seconds, seconds / 3600, seconds / 86400}
	}
	if detail, _ := arguments["detail"].(bool); detail {
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		out.Detail = &detailReport{
			Version: o.Version, Uptime: time.Since(o.Began).Round(time.Millisecond).Seconds(), Goroutines: runtime.NumGoroutine(),
			HeapMB: float64(mem.HeapAlloc>>10) / 1024, Tools: o.Tools(),
		}
		if o.Devices != nil {
			out.Detail.Devices = len(o.Devices.List())
		}
	}
	return out, nil
}

func gigabytes(bytes uint64) string { return fmt.Sprintf("%dGB", (bytes+1<<29)>>30) }

// nodeName returns an operating system or a processor as Node.js names it.
func nodeName(name string) string {
	if other := map[string]string{"windows": "win32", "amd64": "x64", "386": "ia32"}[name]; other != "" {
		return other
	}
	return name
}

// readMachine reads what the kernel tells in /proc: nothing on other systems than Linux.
func readMachine() machine {
	var m machine
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.model = cmp.Or(procField(string(text), "model name"), procField(string(text), "Model")) // the latter: of boards
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		m.total, m.free = kilobytes(procField(string(text), "MemTotal")), kilobytes(procField(string(text), "MemAvailable"))
	}
	if text, err := os.ReadFile("/proc/uptime"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		if seconds, err := strconv.ParseFloat(first, 64); err == nil {
			m.uptime = time.Duration(seconds * float64(time.Second))
		}
	}
	return m
}

func procField(text, name string) string {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kilobytes reads "16384 kB" as bytes.
func kilobytes(text string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSuffix(text, " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
