package offer

import (
	"context"
	"fmt"
	"os"
	"runtime"
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

// info describes the system.
func (s System) info(_ context.Context, arguments map[string]any) (any, error) {
	m := readMachine()
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	out := systemReport{
		Platform: platformName(runtime.GOOS), Arch: archName(runtime.GOARCH), NodeVersion: runtime.Version(), GoVersion: runtime.Version(),
		Hostname: host, CPU: cpuReport{runtime.NumCPU(), m.model},
	}
	if out.CPU.Model == "" {
		out.CPU.Model = "unknown"
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
		out.Detail = s.detail()
	}
	return out, nil
}

func (s System) detail() *detailReport {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	d := &detailReport{
		Version: s.Version, Uptime: time.Since(s.Began).Round(time.Millisecond).Seconds(), Goroutines: runtime.NumGoroutine(),
		HeapMB: float64(mem.HeapAlloc>>10) / 1024, Tools: s.Tools(),
	}
	if s.Devices != nil {
		d.Devices = len(s.Devices.List())
	}
	return d
}

// gigabytes returns a size in whole GB.
func gigabytes(bytes uint64) string { return fmt.Sprintf("%dGB", (bytes+1<<29)>>30) }

// platformName returns an operating system as Node.js names it.
func platformName(goos string) string {
	if goos == "windows" {
		return "win32"
	}
	return goos
}

// archName returns a processor as Node.js names it.
func archName(goarch string) string {
	switch goarch {
	case "amd64":
		return "x64"
	case "386":
		return "ia32"
	}
	return goarch
}
