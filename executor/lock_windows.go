package executor

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// errSharing is ERROR_SHARING_VIOLATION.
const errSharing = syscall.Errno(32)

// lockFile opens a file that nobody else can open until it is closed or the
// process ends. The error is errLocked when another one has it, in this process
// or not.
func lockFile(root *os.Root, name string) (io.Closer, error) {
	full := filepath.Join(root.Name(), filepath.FromSlash(name))
	p, err := syscall.UTF16PtrFromString(full)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(p, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case err == nil:
		return os.NewFile(uintptr(h), full), nil
	case errors.Is(err, errSharing):
		return nil, errLocked
	}
	return nil, &os.PathError{Op: "lock", Path: full, Err: err}
}
