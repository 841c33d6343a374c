//go:build unix && !linux

package pgtest

import "syscall"

// attributes are those of a process that runs as the account, in a session of
// its own, for Ctrl-C is for us to act upon. Here only the watchdog ends it when
// we are gone.
func attributes(a *account, _ syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}
