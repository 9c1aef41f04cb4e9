package offer

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// readMachine reads what the kernel tells in /proc.
func readMachine() machine {
	var m machine
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.model = procField(string(text), "model name")
		if m.model == "" { // boards
			m.model = procField(string(text), "Model")
		}
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

// procField returns the value of the first line that begins with name.
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
