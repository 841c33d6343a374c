package executor

import (
	"bytes"
	"sync"

	"github.com/xxljob/xxljob/wire"
)

// memOverhead is what an empty log counts for, so that many small ones are
// bounded too.
const memOverhead = 256

// memLogs keeps logs in memory. Over the bound the log begun first goes.
type memLogs struct {
	logFormat
	maxRun, maxAll int

	mu             sync.Mutex // guards the logs too
	logs           map[int64]*memLog
	oldest, newest *memLog
	size           int
}

// memLog is the log of one run.
type memLog struct {
	id      int64
	buf     []byte
	full    bool    // it has ended with the notice
	dropped bool    // it is not in memLogs any more
	next    *memLog // the next younger one
}

func newMemLogs(f logFormat, maxRun, maxAll int) *memLogs {
	return &memLogs{logFormat: f, maxRun: maxRun, maxAll: maxAll, logs: make(map[int64]*memLog)}
}

func (m *memLogs) writer(key logKey) lineWriter { return &memWriter{store: m, id: key.id} }

// memWriter writes to one memLog, which it looks up by its first line.
type memWriter struct {
	store *memLogs
	id    int64
	log   *memLog // guarded by store.mu
}

func (w *memWriter) close() {}

func (w *memWriter) write(lines []byte) {
	m := w.store
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.log == nil {
		w.log = m.open(w.id)
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
func (m *memLogs) open(id int64) *memLog {
	if l := m.logs[id]; l != nil {
		return l
	}
	l := &memLog{id: id}
	m.logs[id] = l
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
func (m *memLogs) drop() {
	l := m.oldest
	if m.oldest = l.next; m.oldest == nil {
		m.newest = nil
	}
	delete(m.logs, l.id)
	m.size -= memOverhead + len(l.buf)
	l.dropped, l.buf, l.next = true, nil, nil
}

func (m *memLogs) read(key logKey, from int) (wire.LogResult, bool, error) {
	m.mu.Lock()
	l := m.logs[key.id]
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
