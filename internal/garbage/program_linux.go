package garbage

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseProgram gives back the memory of those parts of the program's file that have been used so far: most of them only
// serve the start. What is used again is read from the file anew. It does nothing for a user who may not write the file,
// which is a rule of Linux (madvise(2), MADV_PAGEOUT). Measured on a server at rest whose services are in the network:
// 51 MiB of resident memory before, 30 after it and in the minute after that.
func releaseProgram() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program's file: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("find the program in memory: %w", err)
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		from, to, ok := codeOf(lines.Text(), program)
		if !ok {
			continue
		}
		if _, _, e := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_PAGEOUT); e != 0 {
			return fmt.Errorf("give back memory of the program: %w", e)
		}
	}
	return nil
}

// codeOf reads a line of proc_pid_maps(5) and returns the addresses of a part of a file that nobody can write to.
func codeOf(line, file string) (from, to uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 6 || fields[5] != file || !strings.HasPrefix(fields[1], "r-") {
		return 0, 0, false
	}
	first, last, _ := strings.Cut(fields[0], "-")
	begin, err1 := strconv.ParseUint(first, 16, 64)
	end, err2 := strconv.ParseUint(last, 16, 64)
	return uintptr(begin), uintptr(end), err1 == nil && err2 == nil && begin < end
}
