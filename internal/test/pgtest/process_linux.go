package pgtest

import "syscall"

// attributes are those of a process that runs as the account, in a session of
// its own, for Ctrl-C is for us to act upon, and is signalled by the kernel when
// the thread that started it is gone.
func attributes(a *account, dying syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: dying}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}
