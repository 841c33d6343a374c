//go:build !unix

package pgtest

import "syscall"

// attributes returns nil: no cluster is started on this system.
func attributes(*account, syscall.Signal) *syscall.SysProcAttr { return nil }
