package executor

import (
	"errors"
	"io"

	"github.com/xxljob/xxljob/executor/internal/spool"
	"github.com/xxljob/xxljob/wire"
)

// NewOver is New with admins that are reached by dial.
func NewOver(cfg Config, dial func(addr string) wire.Admin) (*Executor, error) {
	return newExecutor(cfg, func(addr string, _ wire.ClientConfig) (wire.Admin, error) { return dial(addr), nil })
}

// Boot is the executor's boot id.
func (e *Executor) Boot() string { return e.boot }

// As is the executor as the admin of a cluster sees it.
func (e *Executor) As(cluster string) wire.Executor {
	for _, o := range e.origins[1:] {
		if o.name == cluster {
			return remote{e, o}
		}
	}
	return nil
}

// BreakDisk makes a write ("write") to the spool of the first cluster end with
// what fail returns, after half of the bytes, and an fsync ("sync") likewise.
func (e *Executor) BreakDisk(fail func(op string) error) {
	s := e.origins[1].out.spool
	create := s.Create
	s.Create = func(name string) (spool.File, error) {
		f, err := create(name)
		return brokenFile{f, fail}, err
	}
}

type brokenFile struct {
	spool.File
	fail func(op string) error
}

func (f brokenFile) Write(b []byte) (int, error) {
	if err := f.fail("write"); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f brokenFile) Sync() error { return errors.Join(f.fail("sync"), f.File.Sync()) }

// HoldWrites has what comes wait for the spool of the first cluster until release is called.
func (e *Executor) HoldWrites() (release func()) {
	o := e.origins[1].out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = true
	return func() { go o.write() }
}

// BreakReads makes an attempt to open a file in the spool of the first cluster ("open")
// end with what fail returns, and likewise one to read it ("read"), after a byte.
func (e *Executor) BreakReads(fail func(op, file string) error) {
	s := e.origins[1].out.spool
	open := s.Read
	s.Read = func(name string) (io.ReadCloser, error) {
		if err := fail("open", name); err != nil {
			return nil, err
		}
		f, err := open(name)
		return brokenReader{f, func() error { return fail("read", name) }}, err
	}
}

type brokenReader struct {
	io.ReadCloser
	fail func() error
}

func (r brokenReader) Read(b []byte) (int, error) {
	if err := r.fail(); err != nil {
		n, _ := r.ReadCloser.Read(b[:1])
		return n, err
	}
	return r.ReadCloser.Read(b)
}

// InMemory is how many results the outbox of the first cluster holds in memory,
// but for the batch under way.
func (e *Executor) InMemory() int {
	o := e.origins[1].out
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.pending) + o.unkept
}

// Jobs is how many jobs of the admin in the process are known, and the bound on those that
// are idle.
func (e *Executor) Jobs() (known, bound int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.local.jobs), keptJobs
}

// WithdrawnStarts is how many starts of the admin in the process are refused.
func (e *Executor) WithdrawnStarts() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.local.withdrawn.young.n + e.local.withdrawn.old.n
}

// Crash ends what an executor has on the disk as the death of its process would:
// its locks are gone, and nothing is written or removed any more.
func (e *Executor) Crash() {
	for _, o := range e.origins[1:] {
		if o.out.spool != nil {
			_ = o.out.spool.Close()
		}
	}
}
