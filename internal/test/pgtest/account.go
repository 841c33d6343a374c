package pgtest

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// account is whom processes run as when we are root, which Postgres refuses.
type account struct{ uid, gid uint32 }

// unprivileged returns nil unless we are root.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("pgtest: uid of %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("pgtest: gid of %s: %w", name, err)
		}
		return &account{uint32(uid), uint32(gid)}, nil
	}
	return nil, fmt.Errorf("pgtest: Postgres does not run as root, and there is neither a user postgres nor nobody")
}

// own gives a file to the account.
func (a *account) own(name string) error {
	if a == nil {
		return nil
	}
	return os.Chown(name, int(a.uid), int(a.gid))
}

// tempRoot returns the directory for temporary ones. It is not the system's own
// when the account could not reach that, or when the path of a socket below it,
// of which there are some hundred bytes, would get too long.
func (a *account) tempRoot() string {
	const elsewhere = "/tmp"
	root := os.TempDir()
	if len(root) > 60 {
		return elsewhere
	}
	if a == nil {
		return root
	}
	for dir := filepath.Clean(root); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&0o001 == 0 {
			return elsewhere
		}
		if dir == filepath.Dir(dir) {
			return root
		}
	}
}
