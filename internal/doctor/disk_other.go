//go:build !linux

package doctor

// freeSpace is not known on other systems.
func freeSpace(string) (free uint64, known bool) { return 0, false }
