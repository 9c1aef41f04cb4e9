package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// process is a running program as Linux tells of it. 0 is none.
type process int

// memory is its resident memory in KiB.
func (p process) memory() (int, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", p, err)
	}
	kib, err := residentOf(string(raw))
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", p, err)
	}
	return kib, nil
}

// residentOf reads VmRSS, in KiB, of a status file.
func residentOf(status string) (int, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		return strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
	}
	return 0, fmt.Errorf("no VmRSS")
}

// cpu is the processor time that it has used.
func (p process) cpu() (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
	if err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", p, err)
	}
	used, err := cpuOf(string(raw))
	if err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", p, err)
	}
	return used, nil
}

// cpuOf adds user and system time of a stat file. Linux counts in hundredths of
// a second. The name of the program, in brackets, may hold anything.
func cpuOf(stat string) (time.Duration, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("stat has %d fields", len(fields))
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
