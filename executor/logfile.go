package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// fileLogs keeps logs of one origin in files <root>/yyyy-MM-dd/<id>.log. Every path is made of
// a date and a number, below a root that nothing can lead out of.
type fileLogs struct {
	logFormat
	root      *os.Root
	maxRun    int
	retention int // days, negative for ever
	log       *slog.Logger

	mu      sync.Mutex
	cleaned string // the day of the last cleaning
}

func newFileLogs(f logFormat, cfg Config, dir string) (*fileLogs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("xxljob: executor: Config.Log.Dir: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("xxljob: executor: Config.Log.Dir: %w", err)
	}
	return &fileLogs{logFormat: f, root: root, maxRun: cfg.Log.MaxBytes, retention: cfg.Log.RetentionDays, log: cfg.Logger}, nil
}

// of keeps the logs of a cluster in a directory of its name, which is none of a
// day: see AdminCluster.Name.
func (s *fileLogs) of(cfg Config, cluster string) (logStore, error) {
	return newFileLogs(s.logFormat, cfg, filepath.Join(cfg.Log.Dir, cluster))
}

func (s *fileLogs) close() error { return s.root.Close() }

// day is the name of the directory of an instant.
func (s *fileLogs) day(at time.Time) string { return at.In(s.loc).Format(time.DateOnly) }

func logName(day string, id int64) string {
	return path.Join(day, strconv.FormatInt(id, 10)+".log")
}

func (s *fileLogs) writer(key logKey) lineWriter { return &fileWriter{store: s, key: key} }

// fileWriter writes to one file, opened by the first line and closed when the
// handler has returned.
type fileWriter struct {
	store *fileLogs
	key   logKey

	mu   sync.Mutex
	file *os.File
	size int
	done bool // full, failed or closed: lines are lost
}

func (w *fileWriter) write(lines []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return
	}
	if err := w.put(lines); err != nil {
		w.shut()
		w.store.log.Error("executor: the log of a run cannot be written", "run", w.key.id, "error", err)
	}
}

// put appends lines, or the notice that the file is full. mu is held.
func (w *fileWriter) put(lines []byte) error {
	if w.file == nil {
		w.store.clean(time.Now())
		if err := w.open(); err != nil {
			return err
		}
	}
	full := w.size+len(lines) > w.store.maxRun
	if full {
		lines = []byte(cutNotice(w.store.maxRun))
	}
	n, err := w.file.Write(lines)
	w.size += n
	if full {
		w.shut()
	}
	return err
}

// open opens the file of the run, which may have been written before. mu is held.
func (w *fileWriter) open() error {
	day := w.store.day(w.key.at)
	if err := w.store.root.Mkdir(day, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := w.store.root.OpenFile(logName(day, w.key.id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w.file, w.size = f, int(info.Size())
	return nil
}

func (w *fileWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shut()
}

// shut lets no more lines in. mu is held.
func (w *fileWriter) shut() {
	w.done = true
	if w.file == nil {
		return
	}
	if err := w.file.Close(); err != nil {
		w.store.log.Error("executor: the log of a run cannot be closed", "run", w.key.id, "error", err)
	}
	w.file = nil
}

// read looks in the day of the key, and in that of a second before: admins that
// keep whole seconds may round 23:59:59.5 up.
func (s *fileLogs) read(key logKey, from int) (wire.LogResult, bool, error) {
	f, err := s.root.Open(logName(s.day(key.at), key.id))
	if before := s.day(key.at.Add(-time.Second)); errors.Is(err, fs.ErrNotExist) && before != s.day(key.at) {
		f, err = s.root.Open(logName(before, key.id))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrClosed):
		return wire.LogResult{}, false, nil
	case err != nil:
		return wire.LogResult{}, false, err
	}
	defer f.Close()
	res, err := readLines(f, from)
	return res, true, err
}

// clean removes the directories of days that are over for longer than the
// retention, once a day. Whatever is not named like a day is not ours.
func (s *fileLogs) clean(now time.Time) {
	today := s.day(now)
	s.mu.Lock()
	due := s.retention >= 0 && s.cleaned != today
	s.cleaned = today
	s.mu.Unlock()
	if !due {
		return
	}
	days, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		s.log.Error("executor: old logs cannot be listed", "error", err)
		return
	}
	for _, d := range days {
		date, err := time.Parse(time.DateOnly, d.Name())
		if err != nil || !d.IsDir() || date.AddDate(0, 0, s.retention).Format(time.DateOnly) >= today {
			continue
		}
		if err := s.root.RemoveAll(d.Name()); err != nil {
			s.log.Error("executor: old logs cannot be removed", "day", d.Name(), "error", err)
		}
	}
}
