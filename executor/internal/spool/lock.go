package spool

// Locks of files that go with their process.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"
)

// errLocked says that another process has a lock.
var errLocked = errors.New("locked by another process")

// lockFile locks a file until it is closed or the process ends. The error is
// errLocked when another one has it, in this process or not. Where files cannot
// be locked it fails: without locks two processes could not share a directory.
func lockFile(root *os.Root, name string) (io.Closer, error) {
	if !locksFiles(runtime.GOOS) {
		return nil, errors.New("files cannot be locked on this system")
	}
	inside, err := root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer inside.Close()
	lock := flock.New(filepath.Join(root.Name(), filepath.FromSlash(name)), flock.SetFlag(os.O_RDWR))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, errLocked
	}
	if err := sameFile(inside, lock); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// locksFiles reports whether flock's locks do on a system what lockFile says. On
// AIX and Solaris a process loses a lock when it closes any descriptor of the
// file, and flock does so after an attempt that is refused.
func locksFiles(goos string) bool {
	switch goos {
	case "aix", "js", "plan9", "solaris", "wasip1":
		return false
	}
	return true
}

// sameFile makes sure that the locked file is the one inside the directory that was
// opened: flock goes by the path, which may lead elsewhere by now.
func sameFile(inside *os.File, lock *flock.Flock) error {
	want, err := inside.Stat()
	if err != nil {
		return err
	}
	if got, err := lock.Stat(); err != nil {
		return err
	} else if !os.SameFile(want, got) {
		return fmt.Errorf("%s is not in the directory that was opened", lock.Path())
	}
	return nil
}
