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
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxSlots is more processes than will ever share a directory.
const maxSlots = 1000

const lockName = "lock"

// takeSlot locks the first slot that is free.
func (s *Spool) takeSlot() error {
	for n := range maxSlots {
		slot := strconv.Itoa(n)
		if err := s.root.Mkdir(slot, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		lock, err := lockFile(s.root, path.Join(slot, lockName))
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return err
		}
		dir, err := s.root.Open(slot)
		if err != nil {
			return errors.Join(err, lock.Close())
		}
		s.slot, s.lock, s.dir = slot, lock, dir
		return nil
	}
	return fmt.Errorf("%d other processes use it", maxSlots)
}

// sweep removes what a process has left that ended while it wrote.
func (s *Spool) sweep() {
	for _, name := range s.names(s.slot) {
		if strings.HasSuffix(name, extTemp) {
			if err := s.root.Remove(path.Join(s.slot, name)); err != nil {
				s.log.Warn("executor: could not remove an unfinished file from the spool", "file", name, "error", err)
			}
		}
	}
}

// names lists a directory, sorted.
func (s *Spool) names(dir string) (names []string) {
	entries, err := fs.ReadDir(s.root.FS(), dir)
	if err != nil {
		s.log.Error("executor: could not list the spool", "directory", dir, "error", err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// list returns the batches of a slot, oldest first, and counts them in size.
func (s *Spool) list(slot string) (found []Parcel) {
	for _, name := range s.names(slot) {
		if !strings.HasSuffix(name, extBatch) {
			continue
		}
		p := Parcel{file: name, size: blockSize, Count: s.countOf(name)}
		if info, err := s.root.Stat(path.Join(slot, name)); err == nil {
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
	for _, slot := range s.names(".") {
		if _, err := strconv.Atoi(slot); err != nil || slot == s.slot {
			continue
		}
		lock, err := lockFile(s.root, path.Join(slot, lockName))
		if err != nil {
			if !errors.Is(err, errLocked) {
				s.log.Error("executor: could not lock the spool", "slot", slot, "error", err)
			}
			continue
		}
		left := s.move(slot)
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
func (s *Spool) move(slot string) (moved []Parcel) {
	for _, p := range s.list(slot) {
		if err := s.root.Rename(path.Join(slot, p.file), path.Join(s.slot, p.file)); err != nil {
			s.size.Add(-p.size)
			s.log.Error("executor: could not take over results of a process that has ended", "slot", slot, "file", p.file, "error", err)
			continue
		}
		moved = append(moved, p)
	}
	return moved
}
