package garbage

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// resident returns how much memory of the process is a part of files, in KiB.
func resident(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(status), "RssFile:")
	if !ok {
		t.Skip("this system does not tell")
	}
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestReleaseProgram: memory is given back, and the program goes on.
func TestReleaseProgram(t *testing.T) {
	before := resident(t)
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after >= before {
		t.Errorf("%d KiB of files before, %d after", before, after)
	}
}

func TestPartOf(t *testing.T) {
	for line, want := range map[string]part{
		"00403000-01496000 r-xp 00003000 fe:00 9989522                            /opt/xiaozhi": {0x403000, 0x1496000, true},
		"01496000-02a6c000 r--p 01096000 fe:00 9989522                            /opt/xiaozhi": {0x1496000, 0x2a6c000, false},
		"02a6f000-02cca000 rw-p 0266f000 fe:00 9989522                            /opt/xiaozhi": {},
		"00403000-01496000 r-xp 00003000 fe:00 9989522                            /opt/other":   {},
		"7ff4e731f000-7ff4e7320000 r--p 00000000 00:00 0":                                       {},
		"01496000-00403000 r--p 01096000 fe:00 9989522 /opt/xiaozhi":                            {},
		"01496000-02a6c000 r- 01096000 fe:00 9989522 /opt/xiaozhi":                              {},
		"": {},
	} {
		if got, ok := partOf(line, "/opt/xiaozhi"); ok != (want != part{}) || ok && got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
}
