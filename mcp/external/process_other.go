//go:build !linux

package external

import "syscall"

// endWithUs does nothing: other systems cannot.
func endWithUs(*syscall.SysProcAttr) {}
