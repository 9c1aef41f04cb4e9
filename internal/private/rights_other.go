//go:build !linux

package private

// mayKeepNoRights is only known on Linux.
func mayKeepNoRights(string) bool { return false }
