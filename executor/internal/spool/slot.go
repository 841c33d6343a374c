package spool

// Processes share a spool directory by numbered slots in it: each has one of its
// own, locked as long as it lives by the operating system, which also unlocks it
// when it dies. What is in a slot that nobody has locked was left by a process
// that has ended, and goes to the first one that comes by. Slots and their locks
// are never removed, so that a lock always is of the directory that it seems to be
// of.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxSlots is more processes than will ever share a directory.
const maxSlots = 1000

const lockName = "lock"

// home is where a process keeps its files: a slot of its own.
type home struct {
	root *os.Root  // Config.Dir
	slot string    // the directory of this process, below root
	lock io.Closer // of the slot
	dir  *os.File  // the slot
}

// openHome makes a directory when it is absent, and locks the first slot in it that is free.
func openHome(dir string) (*home, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	h := &home{root: root}
	if err := h.takeSlot(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return h, nil
}

func (h *home) takeSlot() error {
	for n := range maxSlots {
		slot := strconv.Itoa(n)
		if err := h.root.Mkdir(slot, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		lock, err := lockFile(h.root, path.Join(slot, lockName))
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return err
		}
		dir, err := h.root.Open(slot)
		if err != nil {
			return errors.Join(err, lock.Close())
		}
		h.slot, h.lock, h.dir = slot, lock, dir
		return nil
	}
	return fmt.Errorf("%d other processes use it", maxSlots)
}

func (h *home) close() error { return errors.Join(h.dir.Close(), h.lock.Close(), h.root.Close()) }

// sweep removes what a process has left that ended while it wrote, and moves what one of a release has
// set aside in the slot that kept such files there.
func (s *Spool) sweep() {
	h := s.home.Load()
	for _, name := range s.names(h, h.slot) {
		switch {
		case strings.HasSuffix(name, extTemp):
			if err := h.root.Remove(path.Join(h.slot, name)); err != nil {
				s.log.Warn("executor: could not remove an unfinished file from the spool", "file", name, "error", err)
			}
		case strings.HasSuffix(name, extBroken):
			if err := s.aside(h, brokenDir, name, name); err != nil {
				s.log.Warn("executor: could not set aside unreadable results of the spool", "file", name, "error", err)
			}
		}
	}
}

// names lists a directory, sorted.
func (s *Spool) names(h *home, dir string) (names []string) {
	entries, err := fs.ReadDir(h.root.FS(), dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // what was removed is made again by Put
		s.log.Error("executor: could not list the spool", "directory", dir, "error", err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// list returns the batches of a slot, oldest first, and counts them in size.
func (s *Spool) list(h *home, slot string) (found []Parcel) {
	for _, name := range s.names(h, slot) {
		if !strings.HasSuffix(name, extBatch) {
			continue
		}
		p := Parcel{file: name, size: blockSize, Count: s.countOf(name)}
		if info, err := h.root.Stat(path.Join(slot, name)); err == nil {
			p.Bytes = int(min(info.Size(), maxFile))
			p.size = blocks(p.Bytes)
		}
		s.size.Add(p.size)
		found = append(found, p)
	}
	return found
}

// Adopt moves the batches of processes that have ended to the slot of this one.
func (s *Spool) Adopt() (found []Parcel) {
	h := s.home.Load()
	for _, slot := range s.names(h, ".") {
		if _, err := strconv.Atoi(slot); err != nil || slot == h.slot {
			continue
		}
		lock, err := lockFile(h.root, path.Join(slot, lockName))
		if err != nil {
			if !errors.Is(err, errLocked) {
				s.log.Error("executor: could not lock the spool", "slot", slot, "error", err)
			}
			continue
		}
		left := s.move(h, slot)
		if err := lock.Close(); err != nil {
			s.log.Error("executor: could not unlock the spool", "slot", slot, "error", err)
		}
		if len(left) > 0 {
			s.log.Info("executor: took over results of a process that has ended", "files", len(left))
		}
		found = append(found, left...)
	}
	return slices.Clip(found)
}

// move renames the batches of a slot, whose names are of no other process, into
// that of this one.
func (s *Spool) move(h *home, slot string) (moved []Parcel) {
	for _, p := range s.list(h, slot) {
		if err := h.root.Rename(path.Join(slot, p.file), path.Join(h.slot, p.file)); err != nil {
			s.size.Add(-p.size)
			s.log.Error("executor: could not take over results of a process that has ended", "slot", slot, "file", p.file, "error", err)
			continue
		}
		moved = append(moved, p)
	}
	return moved
}
