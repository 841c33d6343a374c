package executor

// Logs of runs in memory, as many as their bound allows.

import (
	"bytes"
	"log/slog"
	"sync"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// memOverhead is what an empty log counts for, so that many small ones are
// bounded too.
const memOverhead = 256

// memLogs is the logs of one origin in the memory that all share.
type memLogs struct {
	*logMemory
	origin int // 0 for the one within the process
}

// logMemory keeps logs in memory. Over the bound the log begun first goes.
type logMemory struct {
	logFormat
	maxRun, maxAll int

	mu             sync.Mutex         // guards the logs too
	origins        int                // beside the one within the process
	logs           map[memKey]*memLog // the newest with an id, which leads to the others
	oldest, newest *memLog
	size           int
}

// memKey names the logs of the runs with one id.
type memKey struct {
	id     int64
	origin int
}

// memLog is the log of one run.
type memLog struct {
	key     memKey
	run     runID
	twin    *memLog // of the same id and another date
	buf     []byte
	full    bool    // it has ended with the notice
	dropped bool    // it is not in memLogs any more
	next    *memLog // the next younger one
}

func newMemLogs(f logFormat, maxRun, maxAll int) *memLogs {
	return &memLogs{logMemory: &logMemory{logFormat: f, maxRun: maxRun, maxAll: maxAll, logs: make(map[memKey]*memLog)}}
}

func (m *memLogs) of(Config, string) (logStore, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.origins++
	return &memLogs{logMemory: m.logMemory, origin: m.origins}, nil
}

func (m *memLogs) writer(key logKey) lineWriter {
	return &memWriter{store: m.logMemory, key: memKey{key.id, m.origin}, run: key.runID}
}

// memWriter writes to one memLog, which it looks up by its first line.
type memWriter struct {
	store *logMemory
	key   memKey
	run   runID
	log   *memLog // guarded by store.mu
}

func (w *memWriter) close() {}

func (w *memWriter) write(_ time.Time, _ slog.Level, lines []byte) {
	m := w.store
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.log == nil {
		w.log = m.open(w.key, w.run)
	}
	l := w.log
	if l.full || l.dropped {
		return
	}
	if len(l.buf)+len(lines) > m.maxRun {
		l.full = true
		lines = []byte(cutNotice(m.maxRun))
	}
	l.buf = append(l.buf, lines...)
	m.size += len(lines)
	for m.size > m.maxAll && m.oldest != nil {
		m.drop()
	}
}

// open returns the log of a run, a new one when there is none. mu is held.
func (m *logMemory) open(key memKey, run runID) *memLog {
	for l := m.logs[key]; l != nil; l = l.twin {
		if l.run == run {
			return l
		}
	}
	l := &memLog{key: key, run: run, twin: m.logs[key]}
	m.logs[key] = l
	if m.newest == nil {
		m.oldest = l
	} else {
		m.newest.next = l
	}
	m.newest = l
	m.size += memOverhead
	return l
}

// drop forgets the oldest log. mu is held.
func (m *logMemory) drop() {
	l := m.oldest
	if m.oldest = l.next; m.oldest == nil {
		m.newest = nil
	}
	m.unlink(l)
	m.size -= memOverhead + len(l.buf)
	l.dropped, l.buf, l.next, l.twin = true, nil, nil, nil
}

// unlink takes a log from those with its id. mu is held.
func (m *logMemory) unlink(l *memLog) {
	head := m.logs[l.key]
	switch {
	case head == l && l.twin == nil:
		delete(m.logs, l.key)
	case head == l:
		m.logs[l.key] = l.twin
	default:
		for head.twin != l {
			head = head.twin
		}
		head.twin = l.twin
	}
}

// asked returns the log that a request means, nil for none: the one of exactly that date,
// or else the newest that it may mean. mu is held.
func (m *memLogs) asked(key logKey) (found *memLog) {
	for l := m.logs[memKey{key.id, m.origin}]; l != nil; l = l.twin {
		if l.run.date == key.date {
			return l
		}
		if found == nil && l.run.isAsked(key.date) {
			found = l
		}
	}
	return found
}

func (m *memLogs) read(key logKey, part logPart) (wire.LogResult, bool, error) {
	m.mu.Lock()
	l := m.asked(key)
	if l == nil {
		m.mu.Unlock()
		return wire.LogResult{}, false, nil
	}
	buf := l.buf // lines are only ever added behind it
	m.mu.Unlock()
	res, err := part.of(bytes.NewReader(buf))
	return res, true, err
}

// close keeps the logs: they can be read after Stop.
func (m *memLogs) close() error { return nil }
