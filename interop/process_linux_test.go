package interop_test

import "syscall"

// attributes are those of a process in a group of its own, which the kernel
// kills when the thread that started it is gone.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup kills a process and what it has started.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) } // an error means that it is gone
