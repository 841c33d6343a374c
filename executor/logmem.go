package executor

import (
	"bytes"
	"sync"

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

	mu             sync.Mutex // guards the logs too
	origins        int        // beside the one within the process
	logs           map[memKey]*memLog
	oldest, newest *memLog
	size           int
}

// memKey names the log of one run.
type memKey struct {
	id     int64
	origin int
}

// memLog is the log of one run.
type memLog struct {
	key     memKey
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
	return &memWriter{store: m.logMemory, key: memKey{key.id, m.origin}}
}

// memWriter writes to one memLog, which it looks up by its first line.
type memWriter struct {
	store *logMemory
	key   memKey
	log   *memLog // guarded by store.mu
}

func (w *memWriter) close() {}

func (w *memWriter) write(lines []byte) {
	m := w.store
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.log == nil {
		w.log = m.open(w.key)
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
func (m *logMemory) open(key memKey) *memLog {
	if l := m.logs[key]; l != nil {
		return l
	}
	l := &memLog{key: key}
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
	delete(m.logs, l.key)
	m.size -= memOverhead + len(l.buf)
	l.dropped, l.buf, l.next = true, nil, nil
}

func (m *memLogs) read(key logKey, from int) (wire.LogResult, bool, error) {
	m.mu.Lock()
	l := m.logs[memKey{key.id, m.origin}]
	if l == nil {
		m.mu.Unlock()
		return wire.LogResult{}, false, nil
	}
	buf := l.buf // lines are only ever added behind it
	m.mu.Unlock()
	res, err := readLines(bytes.NewReader(buf), from)
	return res, true, err
}

// close keeps the logs: they can be read after Stop.
func (m *memLogs) close() error { return nil }
