//go:build !linux

package store

// networkFilesystem is only known on Linux.
func networkFilesystem(string) string { return "" }
