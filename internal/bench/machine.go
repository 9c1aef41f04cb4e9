package bench

import (
	"os"
	"runtime"
	"strconv"
	"strings"
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

// processor is the model of the machine's processor.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH // where Linux does not tell
	}
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// loadAverage is that of 1, 5 and 15 minutes; nil where there is none.
func loadAverage() []float64 {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return nil
	}
	var out []float64
	for f := range strings.FieldsSeq(string(raw)) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || len(out) == 3 {
			break
		}
		out = append(out, v)
	}
	return out
}
