//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package executor

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// lockFile locks a file until it is closed or the process ends. The error is
// errLocked when another one has it, in this process or not.
func lockFile(root *os.Root, name string) (io.Closer, error) {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var locked error
	err = conn.Control(func(fd uintptr) {
		locked = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	switch {
	case err == nil && locked == nil:
		return f, nil
	case errors.Is(locked, syscall.EWOULDBLOCK):
		locked = errLocked
	}
	return nil, errors.Join(err, locked, f.Close())
}
