package executor

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

// spool keeps results for one cluster in files <root>/<slot>/<name>.json, one file
// a batch, until the admin has them. A file is there as a whole or not at all,
// and is on the disk when put returns.
//
// put is called by one goroutine at a time, and get and remove by one; adopt may
// be called beside them.
type spool struct {
	log   *slog.Logger
	root  *os.Root
	slot  string    // the directory of this process
	lock  io.Closer // of the slot
	dir   *os.File  // the slot
	boot  string    // of the executor, for names that no other process makes
	limit int64

	size   atomic.Int64 // of all files
	create func(name string) (spoolFile, error)
	open   func(name string) (io.ReadCloser, error)

	// Of put.
	seq     int
	last    time.Time
	failing bool
}

// spoolFile is the part of *os.File that writes a batch.
type spoolFile interface {
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

// maxSpoolFile is more than a batch takes.
const maxSpoolFile = 16 << 20

// openSpool opens the spool of a cluster, and returns what is in it, oldest first.
func openSpool(cfg Config, cluster, boot string) (*spool, []parcel, error) {
	fail := func(err error) (*spool, []parcel, error) {
		return nil, nil, fmt.Errorf("xxljob: executor: Config.SpoolDir: %w", err)
	}
	// Locks go by the path for as long as the process lives, wherever it works then.
	dir, err := filepath.Abs(filepath.Join(cfg.SpoolDir, cluster))
	if err != nil {
		return fail(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fail(err)
	}
	s := &spool{log: cfg.Logger.With("admin", cluster), root: root, boot: strings.ToLower(boot), limit: cfg.SpoolBytes}
	s.create, s.open = s.createFile, s.openFile
	if err := s.takeSlot(); err != nil {
		return fail(errors.Join(err, root.Close()))
	}
	s.sweep()
	left := append(s.list(s.slot), s.adopt()...)
	slices.SortStableFunc(left, func(a, b parcel) int { return strings.Compare(a.file, b.file) })
	return s, left, nil
}

// close releases the slot. What is in it stays.
func (s *spool) close() error {
	return errors.Join(s.dir.Close(), s.lock.Close(), s.root.Close())
}

// full reports whether the files take as much as they may, and how much that is.
func (s *spool) full() (int64, bool) {
	size := s.size.Load()
	return size, size >= s.limit
}

func (s *spool) createFile(name string) (spoolFile, error) {
	return s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

func (s *spool) openFile(name string) (io.ReadCloser, error) { return s.root.Open(name) }

// put writes results to a file. When that fails they are in the parcel instead, and
// the next ones are tried again.
func (s *spool) put(results []wire.CallbackRequest) parcel {
	body := wire.EncodeCallback(nil, wire.CallbackObject, results)
	p := parcel{bytes: len(body), count: len(results), results: results}
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
	p.file, p.size, p.results = name, blocks(len(body)), nil
	s.size.Add(p.size)
	return p
}

// name returns a name that sorts behind all before, whatever the clock does.
func (s *spool) name(count int) string {
	if now := time.Now(); now.After(s.last) {
		s.last = now
	}
	s.seq++
	return fmt.Sprintf("%019d-%s-%09d-%d%s", s.last.UnixNano(), s.boot, s.seq, count, extBatch)
}

// countOf reads from a name how many results are in a file. What has another name
// is sent alone.
func countOf(name string) int {
	name = strings.TrimSuffix(name, extBatch)
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil || n < 1 {
		return clusterBatch.results
	}
	return n
}

// write makes one file, or none.
func (s *spool) write(name string, body []byte) (err error) {
	temp, final := path.Join(s.slot, name+extTemp), path.Join(s.slot, name)
	made := ""
	defer func() {
		if err != nil && made != "" {
			_ = s.root.Remove(made) // or sweep does
		}
	}()
	f, err := s.create(temp)
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
func (s *spool) syncDir() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return s.dir.Sync()
}

// get reads the results of a file. Of one that makes no sense, which is set aside, and
// of one that is gone it returns neither results nor an error, and they are given up.
// After an error the file may be read another time.
func (s *spool) get(p parcel) ([]wire.CallbackRequest, error) {
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
	results, err := decodeSpooled(body)
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
func (s *spool) read(name string) ([]byte, error) {
	f, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSpoolFile+1))
}

func decodeSpooled(body []byte) ([]wire.CallbackRequest, error) {
	if len(body) > maxSpoolFile {
		return nil, fmt.Errorf("it is longer than %d bytes", maxSpoolFile)
	}
	results, err := wire.DecodeCallback(body)
	if err == nil && len(results) == 0 {
		err = errors.New("there are no results in it")
	}
	return results, err
}

// remove ends a file whose results the admin has. One that cannot be removed is
// delivered again by the next process, which admins know to ignore.
func (s *spool) remove(p parcel) {
	s.size.Add(-p.size)
	if err := s.root.Remove(path.Join(s.slot, p.file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("executor: could not remove delivered results from the spool", "file", p.file, "error", err)
	}
}

// blocks is what n bytes take on the disk.
func blocks(n int) int64 { return int64(n+blockSize-1) / blockSize * blockSize }
