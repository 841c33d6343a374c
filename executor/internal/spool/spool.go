// Package spool keeps results of runs on the disk until an admin has them: in files that
// survive the process, below a directory that several processes may share.
package spool

// The files of one process.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// Config says where a spool is and what it may take.
type Config struct {
	Dir    string // the directory of the cluster, made when absent
	Boot   string // of the executor, for names that no other process makes
	Bytes  int64  // what all files may take, in blocks
	Batch  int    // for how many results a file counts whose name does not say it
	Logger *slog.Logger
}

// Spool keeps results for one cluster in files <Dir>/<slot>/<name>.json, one file
// a batch, until the admin has them. A file is there as a whole or not at all,
// and is on the disk when Put returns.
//
// Get, Remove and PutAside are called by one goroutine at a time; Put and Adopt may be called
// beside them.
type Spool struct {
	// Create makes a file and Read opens one, by names below Config.Dir. Tests of a disk that
	// fails replace them.
	Create func(name string) (File, error)
	Read   func(name string) (io.ReadCloser, error)

	log   *slog.Logger
	path  string               // Config.Dir, absolute
	home  atomic.Pointer[home] // another one where the directory was removed
	boot  string               // Config.Boot
	limit int64                // Config.Bytes
	most  int                  // Config.Batch

	size atomic.Int64 // of all files

	put     sync.Mutex // held by Put, whose these are
	seq     int
	last    time.Time
	failing bool
}

// Parcel is some results that a spool keeps, in one file or, when the disk has failed, in
// memory.
type Parcel struct {
	Results []wire.CallbackRequest // nil when in a file
	Count   int                    // how many results, as far as one knows
	Bytes   int                    // encoded, with each text once

	file string // its name in the slot, "" for none
	size int64  // what it takes on the disk
}

// File is the part of *os.File that writes a batch.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// Endings of files in a slot.
const (
	extBatch  = ".json"
	extTemp   = ".tmp"
	extBroken = ".bad"
)

// blockSize is what a file takes at least, for the bound in bytes.
const blockSize = 4096

// maxFile is more than a batch takes.
const maxFile = 16 << 20

// Open opens the spool of a cluster, and returns what is in it, oldest first.
func Open(cfg Config) (*Spool, []Parcel, error) {
	// Locks go by the path for as long as the process lives, wherever it works then.
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, nil, err
	}
	s := &Spool{log: cfg.Logger, path: dir, boot: strings.ToLower(cfg.Boot), limit: cfg.Bytes, most: cfg.Batch}
	s.Create, s.Read = s.createFile, s.openFile
	h, err := openHome(dir)
	if err != nil {
		return nil, nil, err
	}
	s.home.Store(h)
	s.sweep()
	left := append(s.list(h, h.slot), s.Adopt()...)
	slices.SortStableFunc(left, func(a, b Parcel) int { return strings.Compare(a.file, b.file) })
	return s, left, nil
}

// Close releases the slot. What is in it stays.
func (s *Spool) Close() error {
	return s.home.Load().close()
}

// Full reports whether the files take as much as they may, and how much that is.
func (s *Spool) Full() (int64, bool) {
	size := s.size.Load()
	return size, size >= s.limit
}

func (s *Spool) createFile(name string) (File, error) {
	return s.home.Load().root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

func (s *Spool) openFile(name string) (io.ReadCloser, error) { return s.home.Load().root.Open(name) }

// Put writes results to a file. When that fails they are in the parcel instead, and
// the next ones are tried again.
func (s *Spool) Put(results []wire.CallbackRequest) Parcel {
	s.put.Lock()
	defer s.put.Unlock()
	body := wire.EncodeCallback(nil, wire.CallbackObject, results)
	p := Parcel{Results: results, Count: len(results), Bytes: len(body)}
	name := s.name(len(results))
	err := s.write(name, body)
	if errors.Is(err, fs.ErrNotExist) { // somebody has removed the directory
		if err = s.makeAgain(); err == nil {
			err = s.write(name, body)
		}
	}
	if err != nil {
		if !s.failing {
			s.log.Error("executor: could not write results to the spool; keeping them in memory", "error", err)
		}
		s.failing = true
		return p
	}
	if s.failing {
		s.log.Info("executor: writing results to the spool has recovered")
	}
	s.failing = false
	p.file, p.size, p.Results = name, blocks(len(body)), nil
	s.size.Add(p.size)
	return p
}

// makeAgain makes the directories anew that somebody has removed, and takes a slot there.
func (s *Spool) makeAgain() error {
	h, err := openHome(s.path)
	if err != nil {
		return err
	}
	s.log.Warn("executor: the spool was removed while it was in use; made it again, results that were in it and not delivered are lost", "dir", s.path)
	if err := s.home.Swap(h).close(); err != nil {
		s.log.Warn("executor: could not close the spool that was removed", "error", err)
	}
	return nil
}

// name returns a name that sorts behind all before, whatever the clock does.
func (s *Spool) name(count int) string {
	if now := time.Now(); now.After(s.last) {
		s.last = now
	}
	s.seq++
	return fmt.Sprintf("%019d-%s-%09d-%d%s", s.last.UnixNano(), s.boot, s.seq, count, extBatch)
}

// countOf reads from a name how many results are in a file. What has another name
// is sent alone.
func (s *Spool) countOf(name string) int {
	name = strings.TrimSuffix(name, extBatch)
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil || n < 1 {
		return s.most
	}
	return n
}

// write makes one file, or none.
func (s *Spool) write(name string, body []byte) (err error) {
	h := s.home.Load()
	temp, final := path.Join(h.slot, name+extTemp), path.Join(h.slot, name)
	made := ""
	defer func() {
		if err != nil && made != "" {
			_ = h.root.Remove(made) // or sweep does
		}
	}()
	f, err := s.Create(temp)
	if err != nil {
		return err
	}
	made = temp
	_, err = f.Write(body)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = h.root.Rename(temp, final); err != nil {
		return err
	}
	made = final
	return h.syncDir()
}

// syncDir makes the names in the slot durable. Windows does so by itself.
func (h *home) syncDir() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return h.dir.Sync()
}

// Get reads the results of a file. Of one that makes no sense, which is set aside, and
// of one that is gone it returns neither results nor an error, and they are given up.
// After an error the file may be read another time.
func (s *Spool) Get(p Parcel) ([]wire.CallbackRequest, error) {
	h := s.home.Load()
	name := path.Join(h.slot, p.file)
	body, err := s.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		s.size.Add(-p.size)
		s.log.Error("executor: results have disappeared from the spool", "file", name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	results, err := decode(body)
	if err == nil {
		return results, nil
	}
	s.size.Add(-p.size)
	s.log.Error("executor: set aside unreadable results of the spool", "file", filepath.Join(s.path, brokenDir, p.file+extBroken), "error", err)
	if err := s.aside(h, brokenDir, p.file, p.file+extBroken); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("executor: could not set aside unreadable results of the spool", "file", name, "error", err)
	}
	return nil, nil
}

// read returns what is in a file, at most one byte more than may be.
func (s *Spool) read(name string) ([]byte, error) {
	f, err := s.Read(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

func decode(body []byte) ([]wire.CallbackRequest, error) {
	if len(body) > maxFile {
		return nil, fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	results, err := wire.DecodeCallback(body)
	if err == nil && len(results) == 0 {
		err = errors.New("there are no results in it")
	}
	return results, err
}

// Remove ends a file whose results the admin has. One that cannot be removed is
// delivered again by the next process, which admins know to ignore.
func (s *Spool) Remove(p Parcel) {
	s.size.Add(-p.size)
	h := s.home.Load()
	if err := h.root.Remove(path.Join(h.slot, p.file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("executor: could not remove delivered results from the spool", "file", p.file, "error", err)
	}
}

// Files that were put aside are in directories beside the slots, in each the newest mostAside, of all
// processes together: those whose results no admin takes, and those that make no sense.
const (
	refusedDir = "refused"
	brokenDir  = "unreadable"
	mostAside  = 100
)

// aside moves a file of the slot to a directory for people, and removes the oldest that are too many.
func (s *Spool) aside(h *home, dir, file, as string) error {
	if err := h.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := h.root.Rename(path.Join(h.slot, file), path.Join(dir, as)); err != nil {
		return err
	}
	names := s.names(h, dir)
	if over := len(names) - mostAside; over > 0 {
		for _, old := range names[:over] {
			_ = h.root.Remove(path.Join(dir, old)) // or the next one does, or another process has
		}
		s.log.Warn("executor: removed the oldest files of results that were put aside", "dir", filepath.Join(s.path, dir), "files", over, "kept", mostAside)
	}
	return nil
}

// PutAside ends a file whose results the admin never takes, and returns where it is kept for people;
// nothing where it cannot be kept.
func (s *Spool) PutAside(p Parcel) string {
	s.size.Add(-p.size)
	h := s.home.Load()
	if err := s.aside(h, refusedDir, p.file, p.file); err != nil {
		s.log.Error("executor: could not put aside results that the admin refuses", "file", p.file, "error", err)
		_ = h.root.Remove(path.Join(h.slot, p.file)) // or the next process sends it once more
		return ""
	}
	return filepath.Join(s.path, refusedDir, p.file)
}

// blocks is what n bytes take on the disk.
func blocks(n int) int64 { return int64(n+blockSize-1) / blockSize * blockSize }
