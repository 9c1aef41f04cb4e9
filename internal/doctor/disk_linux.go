package doctor

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes a folder's file system has left for us.
func freeSpace(folder string) (free uint64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true //nolint:unconvert // their sizes differ between machines
}
