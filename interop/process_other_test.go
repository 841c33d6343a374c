//go:build !linux

package interop_test

import (
	"os"
	"syscall"
)

// attributes returns nil: here a child outlives a test that is killed.
func attributes() *syscall.SysProcAttr { return nil }

// killGroup kills a process.
func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // an error means that it is gone
	}
}
