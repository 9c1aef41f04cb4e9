package bench

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine describes the computer that a figure was taken on.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	OS     string `json:"os"`
	Go     string `json:"go"`     // of the load
	Codec  string `json:"codec"`  // that the bare encoding of M13 used
	Pinned string `json:"pinned"` // which cores server and load ran on
}

func machine() Machine {
	return Machine{CPU: processor(), Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Codec: "libopus (cgo)"}
}

// processor is the model of the machine's processor, where Linux tells.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	return cmp.Or(field(string(info), "model name"), runtime.GOARCH)
}

// field returns the text behind a name and a colon in a file of /proc; "" if there is none.
func field(file, name string) string {
	for line := range strings.Lines(file) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// loadAverage is that of 1, 5 and 15 minutes; nil where there is none.
func loadAverage() []float64 {
	raw, _ := os.ReadFile("/proc/loadavg")
	out := make([]float64, 3)
	if _, err := fmt.Sscan(string(raw), &out[0], &out[1], &out[2]); err != nil {
		return nil
	}
	return out
}

// process is a running program as Linux tells of it. 0 is none.
type process int

func (p process) memory() (int, error) { return tell(p, "status", residentOf) }

func (p process) cpu() (time.Duration, error) { return tell(p, "stat", cpuOf) }

// tell reads a number from a file of /proc about a process.
func tell[T any](p process, file string, read func(string) (T, error)) (v T, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p, file))
	if err == nil {
		v, err = read(string(raw))
	}
	if err != nil {
		return v, fmt.Errorf("%s of process %d: %w", file, p, err)
	}
	return v, nil
}

// residentOf reads VmRSS, in KiB, of a status file.
func residentOf(status string) (int, error) {
	return strconv.Atoi(strings.TrimSuffix(field(status, "VmRSS"), " kB"))
}

// cpuOf adds user and system time of a stat file. Linux counts in hundredths of
// a second. The name of the program, in brackets, may hold anything.
func cpuOf(stat string) (time.Duration, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("stat has %d fields", len(fields))
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}
