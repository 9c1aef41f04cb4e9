package external

import "syscall"

// endWithUs has the system kill a program when we end, however that happens.
func endWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
