package executor

// Logs of runs in files, one for each run in a directory for each day.

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// fileLogs keeps logs of one origin in files <root>/yyyy-MM-dd/<id>-<second>.log, where the
// second is that of the run's date, since 1970: admins ask by the second. A run without a
// date has <id>.log. The directory is that of the date too, but for dates that are too far
// from when the run came: see newLog. Every path is made of numbers, below a root that
// nothing can lead out of.
type fileLogs struct {
	logFormat
	dir       string
	root      atomic.Pointer[os.Root] // another one where the directory was removed
	maxRun    int
	retention int // days, negative for ever
	log       *slog.Logger

	mu      sync.Mutex
	cleaned string // the day of the last cleaning
	wall    wallClock
	made    time.Time
	missed  int // attempts to write that have failed since the last one that had not
	failing atomic.Bool
}

// maxRetention is a bound in days for calculations with dates, and as good as for ever.
const maxRetention = 1_000_000

func newFileLogs(f logFormat, cfg Config, dir string) (*fileLogs, error) {
	dir, err := filepath.Abs(dir) // it may have to be made again, wherever the process works then
	if err != nil {
		return nil, fmt.Errorf("xxljob: executor: Config.Log.Dir: %w", err)
	}
	root, err := makeRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("xxljob: executor: Config.Log.Dir: %w", err)
	}
	keep := min(cfg.Log.RetentionDays, maxRetention)
	s := &fileLogs{logFormat: f, dir: dir, maxRun: cfg.Log.MaxBytes, retention: keep, log: cfg.Logger, made: time.Now()}
	s.root.Store(root)
	return s, nil
}

func makeRoot(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// makeAgain makes the directory anew if somebody has removed it, unless another run has done so:
// was is the one in which something was not there.
func (s *fileLogs) makeAgain(was *os.Root) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root.Load() != was || s.inPlace(was) {
		return nil
	}
	root, err := makeRoot(s.dir)
	if err != nil {
		return err
	}
	s.root.Store(root)
	s.log.Warn("executor: the directory of the logs of runs was removed while it was in use; made it again", "dir", s.dir)
	return was.Close()
}

// inPlace reports whether a root is what its path leads to.
func (s *fileLogs) inPlace(root *os.Root) bool {
	open, err := root.Stat(".")
	if err != nil {
		return false
	}
	there, err := os.Stat(s.dir)
	return err == nil && os.SameFile(open, there)
}

// note says when logs of runs begin to be lost, and when that is over.
func (s *fileLogs) note(run int64, err error) {
	if err == nil && !s.failing.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch was := s.failing.Swap(err != nil); {
	case err != nil:
		if s.missed++; !was {
			s.log.Error("executor: could not write the log of a run; further failures are counted until it can be done again", "run", run, "error", err)
		}
	case was:
		s.log.Info("executor: writing the logs of runs has recovered", "failures", s.missed)
		s.missed = 0
	}
}

// of keeps the logs of a cluster in a directory of its name, which is none of a
// day: see AdminCluster.Name.
func (s *fileLogs) of(cfg Config, cluster string) (logStore, error) {
	return newFileLogs(s.logFormat, cfg, filepath.Join(cfg.Log.Dir, cluster))
}

func (s *fileLogs) close() error { return s.root.Load().Close() }

// day is the name of the directory of an instant.
func (s *fileLogs) day(at time.Time) string { return at.In(s.loc).Format(time.DateOnly) }

const extLog = ".log"

// logName is the file of a run in the directory of its day.
func logName(k runID) string {
	name := strconv.FormatInt(k.id, 10)
	if k.date != 0 {
		name += "-" + strconv.FormatInt(secondOf(k.date), 10)
	}
	return name + extLog
}

func (s *fileLogs) writer(key logKey) lineWriter { return &fileWriter{store: s, key: key} }

// fileWriter writes to one file, opened by the first line and closed when the
// handler has returned.
type fileWriter struct {
	store *fileLogs
	key   logKey

	mu    sync.Mutex
	file  *os.File
	size  int
	done  bool      // full or closed: lines are lost
	again time.Time // when it is tried again after a failure: lines before are lost
	seen  time.Time // when the file was last seen to be where it was made
}

// fileEvery is how often a file that is written to is looked for, since somebody may remove it,
// and how soon writing is tried again after a failure.
const fileEvery = time.Second

func (w *fileWriter) write(_ time.Time, _ slog.Level, lines []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.done || now.Before(w.again) {
		return
	}
	err := w.put(now, lines)
	w.store.note(w.key.id, err)
	if err != nil {
		w.letGo()
		w.again = now.Add(fileEvery)
	}
}

// put appends lines, or the notice that the file is full. mu is held.
func (w *fileWriter) put(now time.Time, lines []byte) error {
	if w.file != nil && now.Sub(w.seen) >= fileEvery && w.removed() {
		w.letGo()
	}
	if w.file == nil {
		w.store.clean(now)
		root := w.store.root.Load()
		err := w.open(root)
		if errors.Is(err, fs.ErrNotExist) || w.store.root.Load() != root {
			if err = w.store.makeAgain(root); err == nil {
				err = w.open(w.store.root.Load())
			}
		}
		if err != nil {
			return err
		}
	}
	w.seen = now
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

// name is the file of the run, below the directory.
func (w *fileWriter) name() string {
	return path.Join(w.store.day(w.key.at), logName(w.key.runID))
}

// removed reports whether the file is not any more where it was made. mu is held.
func (w *fileWriter) removed() bool {
	there, err := w.store.root.Load().Stat(w.name())
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	open, err := w.file.Stat()
	return err == nil && !os.SameFile(there, open)
}

// open opens the file of the run, which may have been written before. mu is held.
func (w *fileWriter) open(root *os.Root) error {
	if err := root.Mkdir(w.store.day(w.key.at), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := root.OpenFile(w.name(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
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
	w.letGo()
}

// letGo closes the file, which another line may open again. mu is held.
func (w *fileWriter) letGo() {
	if w.file == nil {
		return
	}
	if err := w.file.Close(); err != nil {
		w.store.log.Error("executor: could not close the log of a run", "run", w.key.id, "error", err)
	}
	w.file = nil
}

// read looks for each file that may be meant.
func (s *fileLogs) read(key logKey, part logPart) (wire.LogResult, bool, error) {
	f, err := s.find(key)
	if f == nil || err != nil {
		return wire.LogResult{}, false, err
	}
	defer f.Close()
	res, err := part.of(f)
	return res, true, err
}

// find opens the file that a request means, nil for none.
func (s *fileLogs) find(key logKey) (*os.File, error) {
	for _, name := range s.asked(key) {
		if f, err := s.root.Load().Open(name); !errors.Is(err, fs.ErrNotExist) {
			return unlessClosed(f, err)
		}
	}
	return s.findAside(key)
}

// findAside looks through all days for a run whose date was too far from when it came,
// and which is in the directory of another day for that. The latest is meant: a run that is
// accepted a second time may have a second file.
func (s *fileLogs) findAside(key logKey) (*os.File, error) {
	if key.date == 0 {
		return nil, nil
	}
	days, err := s.days()
	if err != nil {
		return unlessClosed(nil, err)
	}
	for _, d := range slices.Backward(days) {
		for _, name := range key.datedNames() {
			if f, err := s.root.Load().Open(path.Join(d.name, name)); !errors.Is(err, fs.ErrNotExist) {
				return unlessClosed(f, err)
			}
		}
	}
	return nil, nil
}

// unlessClosed is nothing where the store was closed.
func unlessClosed(f *os.File, err error) (*os.File, error) {
	if err == nil || errors.Is(err, fs.ErrClosed) {
		return f, nil
	}
	return nil, err
}

// asked are the files that a request may mean, the likeliest first: that of the run with
// its date, that of one a moment before, whose date an admin has rounded up to a whole
// second, and that of a run without a date. The moment before may be of another day.
func (s *fileLogs) asked(key logKey) []string {
	today := s.day(key.at)
	if key.date == 0 {
		return append([]string{path.Join(today, logName(key.runID))}, s.latest(today, key.id)...)
	}
	undated := logName(runID{id: key.id})
	names := key.datedNames()
	if len(names) == 1 {
		return []string{path.Join(today, names[0]), path.Join(today, undated)}
	}
	before := s.day(key.at.Add(-time.Second))
	return []string{path.Join(today, names[0]), path.Join(before, names[1]), path.Join(today, undated), path.Join(before, undated)}
}

// datedNames are the names of the file of a run that is asked for by a date: that of the
// date, and where it is a whole second that of the second before.
func (k runID) datedNames() []string {
	if k.date%1000 != 0 {
		return []string{logName(k)}
	}
	return []string{logName(k), logName(runID{k.id, k.date - 1})}
}

// latest is the last file of a day for an id, if there is one. The directory is read for
// it, since the request had no date.
func (s *fileLogs) latest(day string, id int64) []string {
	prefix := strconv.FormatInt(id, 10) + "-"
	last, found := int64(0), ""
	entries, _ := fs.ReadDir(s.root.Load().FS(), day) // of no directory there are none
	for _, e := range entries {
		rest, ours := strings.CutPrefix(strings.TrimSuffix(e.Name(), extLog), prefix)
		if at, err := strconv.ParseInt(rest, 10, 64); ours && err == nil && (found == "" || at > last) {
			last, found = at, path.Join(day, e.Name())
		}
	}
	if found == "" {
		return nil
	}
	return []string{found}
}

// clean removes the directories of days that are over for longer than the
// retention, once a day, unless the clock was moved a while ago.
func (s *fileLogs) clean(now time.Time) {
	today := s.day(now)
	s.mu.Lock()
	moved, steady := s.wall.look(now.Round(0).Sub(s.made.Round(0)), now.Sub(s.made))
	due := s.retention >= 0 && s.cleaned != today && steady
	if steady {
		s.cleaned = today
	}
	s.mu.Unlock()
	if moved != 0 {
		s.log.Warn("executor: the clock of this host was moved; no old logs are removed for an hour", "by", moved)
	}
	if !due {
		return
	}
	days, err := s.days()
	if err != nil {
		s.log.Error("executor: could not list old logs", "error", err)
		return
	}
	for _, d := range days {
		if !s.over(d, now) {
			continue
		}
		if err := s.root.Load().RemoveAll(d.name); err != nil {
			s.log.Error("executor: could not remove old logs", "day", d.name, "error", err)
		}
	}
}

// wallClock is how the host's clock goes, beside the monotonic one.
type wallClock struct {
	ahead time.Duration // by how much it has moved since it was first looked at
	moved time.Duration // when it was seen to, by the monotonic clock; zero for never
}

// look takes in how far each clock has gone. It returns by how much the host's has stepped since the
// last look, if by more than a minute, and whether it has done so within the last hour.
func (c *wallClock) look(wall, gone time.Duration) (step time.Duration, steady bool) {
	if step = wall - gone - c.ahead; step.Abs() <= time.Minute {
		step = 0
	} else {
		c.moved = gone
	}
	c.ahead = wall - gone
	return step, c.moved == 0 || gone-c.moved >= time.Hour
}

// logDay is the directory of a day.
type logDay struct {
	name string
	date time.Time // midnight, in UTC whatever the zone of the days
}

// days lists the directories of days, in their order. Whatever is not named like a day is
// not ours.
func (s *fileLogs) days() (days []logDay, err error) {
	entries, err := fs.ReadDir(s.root.Load().FS(), ".")
	if errors.Is(err, fs.ErrNotExist) { // removed: the next line makes it again
		return nil, nil
	}
	for _, d := range entries {
		if date, err := time.Parse(time.DateOnly, d.Name()); err == nil && d.IsDir() {
			days = append(days, logDay{d.Name(), date})
		}
	}
	return days, err
}

// over reports whether a day is over for longer than the retention. One that is too far
// ahead to be written to was made by a version that went by any date, or while the clock
// was ahead, and counts from when the last file was put into it.
func (s *fileLogs) over(d logDay, now time.Time) bool {
	today := midnight(now.In(s.loc))
	if d.date.After(midnight(now.Add(maxLogOff).In(s.loc))) {
		d.date = midnight(s.written(d, now).In(s.loc))
	}
	return d.date.AddDate(0, 0, s.retention).Before(today)
}

// written is when the last file was put into a directory. One that says a time to come
// is made to say now, or it would never be old.
func (s *fileLogs) written(d logDay, now time.Time) time.Time {
	info, err := s.root.Load().Stat(d.name)
	if err != nil {
		return now // whatever is wrong, the removal of it would fail too
	}
	if at := info.ModTime(); !at.After(now) {
		return at
	}
	if err := s.root.Load().Chtimes(d.name, now, now); err != nil {
		s.log.Error("executor: could not date a log directory of a future day", "day", d.name, "error", err)
	}
	return now
}

// midnight is the day of a time as a logDay has it.
func midnight(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}
