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
// serve the start. What is used again is read from the file anew; its tables, of which the collector of garbage looks at a
// few bytes here and there, a page at a time and not with all that is near. It does nothing for a user who may not write the
// file, which is a rule of Linux (madvise(2), MADV_PAGEOUT). Measured on a server at rest whose services are in the network:
// 26.7 MiB of resident memory 20 s after the start and 28.6 a minute after it; 32.8 and 36.1 with what is near the tables,
// 61 with all.
func releaseProgram() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program's file: %w", err)
	}
	if err := settleFile(program); err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("find the program in memory: %w", err)
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		part, ok := partOf(lines.Text(), program)
		if !ok {
			continue
		}
		if err := part.release(); err != nil {
			return fmt.Errorf("give back memory of the program: %w", err)
		}
	}
	return nil
}

// settleFile waits until the file is on the disk: the memory of one that has just been built cannot be given back before.
func settleFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open the program's file: %w", err)
	}
	defer f.Close()
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return fmt.Errorf("write the program's file to the disk: %w", err)
	}
	return nil
}

// part is a part of a file in memory that nobody can write to.
type part struct {
	from, to uintptr
	code     bool // else tables
}

func (p part) release() error {
	if !p.code {
		if _, _, e := unix.Syscall(unix.SYS_MADVISE, p.from, p.to-p.from, unix.MADV_RANDOM); e != 0 {
			return e
		}
	}
	if _, _, e := unix.Syscall(unix.SYS_MADVISE, p.from, p.to-p.from, unix.MADV_PAGEOUT); e != 0 {
		return e
	}
	return nil
}

// partOf reads a line of proc_pid_maps(5), if it is of a part of the file that nobody can write to.
func partOf(line, file string) (p part, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 6 || fields[5] != file || !strings.HasPrefix(fields[1], "r-x") && !strings.HasPrefix(fields[1], "r--") {
		return part{}, false
	}
	first, last, _ := strings.Cut(fields[0], "-")
	begin, err1 := strconv.ParseUint(first, 16, 64)
	end, err2 := strconv.ParseUint(last, 16, 64)
	if err1 != nil || err2 != nil || begin >= end {
		return part{}, false
	}
	return part{from: uintptr(begin), to: uintptr(end), code: strings.HasPrefix(fields[1], "r-x")}, true
}
