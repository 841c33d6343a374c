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
// Put is called by one goroutine at a time, and Get and Remove by one; Adopt may
// be called beside them.
type Spool struct {
	// Create makes a file and Read opens one, by names below Config.Dir. Tests of a disk that
	// fails replace them.
	Create func(name string) (File, error)
	Read   func(name string) (io.ReadCloser, error)

	log   *slog.Logger
	root  *os.Root
	slot  string    // the directory of this process
	lock  io.Closer // of the slot
	dir   *os.File  // the slot
	boot  string    // Config.Boot
	limit int64     // Config.Bytes
	most  int       // Config.Batch

	size atomic.Int64 // of all files

	// Of Put.
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
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	s := &Spool{log: cfg.Logger, root: root, boot: strings.ToLower(cfg.Boot), limit: cfg.Bytes, most: cfg.Batch}
	s.Create, s.Read = s.createFile, s.openFile
	if err := s.takeSlot(); err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	s.sweep()
	left := append(s.list(s.slot), s.Adopt()...)
	slices.SortStableFunc(left, func(a, b Parcel) int { return strings.Compare(a.file, b.file) })
	return s, left, nil
}

// Close releases the slot. What is in it stays.
func (s *Spool) Close() error {
	return errors.Join(s.dir.Close(), s.lock.Close(), s.root.Close())
}

// Full reports whether the files take as much as they may, and how much that is.
func (s *Spool) Full() (int64, bool) {
	size := s.size.Load()
	return size, size >= s.limit
}

func (s *Spool) createFile(name string) (File, error) {
	return s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

func (s *Spool) openFile(name string) (io.ReadCloser, error) { return s.root.Open(name) }

// Put writes results to a file. When that fails they are in the parcel instead, and
// the next ones are tried again.
func (s *Spool) Put(results []wire.CallbackRequest) Parcel {
	body := wire.EncodeCallback(nil, wire.CallbackObject, results)
	p := Parcel{Results: results, Count: len(results), Bytes: len(body)}
	name := s.name(len(results))
	if err := s.write(name, body); err != nil {
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
	temp, final := path.Join(s.slot, name+extTemp), path.Join(s.slot, name)
	made := ""
	defer func() {
		if err != nil && made != "" {
			_ = s.root.Remove(made) // or sweep does
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
	if err = s.root.Rename(temp, final); err != nil {
		return err
	}
	made = final
	return s.syncDir()
}

// syncDir makes the names in the slot durable. Windows does so by itself.
func (s *Spool) syncDir() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return s.dir.Sync()
}

// Get reads the results of a file. Of one that makes no sense, which is set aside, and
// of one that is gone it returns neither results nor an error, and they are given up.
// After an error the file may be read another time.
func (s *Spool) Get(p Parcel) ([]wire.CallbackRequest, error) {
	name := path.Join(s.slot, p.file)
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
	s.log.Error("executor: set aside unreadable results in the spool", "file", name+extBroken, "error", err)
	if err := s.root.Rename(name, name+extBroken); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("executor: could not set aside unreadable results in the spool", "file", name, "error", err)
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
	if err := s.root.Remove(path.Join(s.slot, p.file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("executor: could not remove delivered results from the spool", "file", p.file, "error", err)
	}
}

// blocks is what n bytes take on the disk.
func blocks(n int) int64 { return int64(n+blockSize-1) / blockSize * blockSize }
