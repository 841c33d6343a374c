package events

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Names of jobs for those who tell of events, and whether jobs have stopped.

// jobNames reads jobs for those who tell of events. It belongs to the goroutine that tells,
// but for inMemory and over.
type jobNames struct {
	*core.Core
	job    func(int64) *store.Job // as this node has it in memory
	mu     sync.Mutex
	known  map[int64]jobName   // guarded by mu
	told   map[int64]time.Time // jobs that have stopped by themselves, and when they changed
	silent time.Time           // until when the store is not asked: it did not answer
	over   atomic.Bool         // nothing will be told any more: nobody looks again
}

// jobName is what a job was called when it was looked up.
type jobName struct {
	name, key string
	read      time.Time
}

const (
	// namesMost is how many names are remembered, and namesLast for how long.
	namesMost = 10_000
	namesLast = time.Minute
	// namesPause is how long a store that did not answer is left alone.
	namesPause = 5 * time.Second
)

func newJobNames(s *core.Core, job func(int64) *store.Job) *jobNames {
	return &jobNames{Core: s, job: job, known: map[int64]jobName{}, told: map[int64]time.Time{}}
}

// of returns the name and the key of a job, or nothing where they cannot be found out.
func (n *jobNames) of(id int64) (name, key string) {
	if name, key, known := n.inMemory(id); known {
		return name, key
	}
	if job := n.read(id); job != nil {
		return job.Name, job.Key
	}
	return "", ""
}

// inMemory returns the name and the key of a job that this node has in memory, or had a moment
// ago, and whether it is known what it is called. It asks room queue, whose lock all loops use,
// about a job once in a while only.
func (n *jobNames) inMemory(id int64) (name, key string, known bool) {
	n.mu.Lock()
	last, ok := n.known[id]
	n.mu.Unlock()
	if ok && time.Since(last.read) < namesLast {
		return last.name, last.key, true
	}
	job := n.job(id)
	if job == nil || job.Name == "" {
		return "", "", false
	}
	n.know(id, job)
	return job.Name, job.Key, true
}

// know remembers what a job is called.
func (n *jobNames) know(id int64, job *store.Job) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= namesMost {
		clear(n.known)
	}
	n.known[id] = jobName{job.Name, job.Key, time.Now()}
}

// read reads a job, nil where there is none or the store does not answer.
func (n *jobNames) read(id int64) *store.Job {
	if time.Now().Before(n.silent) {
		return nil
	}
	job, err := loop.Call(context.Background(), func(ctx context.Context) (store.Job, error) { return n.Store.Job(ctx, id) })
	if err != nil && !errs.IsNotFound(err) {
		n.silent = time.Now().Add(namesPause)
		return nil
	}
	n.know(id, &job) // also that it is not there
	if err != nil {
		return nil
	}
	return &job
}

// finished returns a job if it has stopped by itself, once for each time. It is not known
// where the store does not answer.
func (n *jobNames) finished(id int64) (job *store.Job, known bool) {
	job = n.read(id)
	if time.Now().Before(n.silent) {
		return nil, false
	}
	if job == nil || !job.Stopped || job.StopReason == "" || job.StopReason == store.StopPruned {
		return nil, true
	}
	if at, told := n.told[job.ID]; told && at.Equal(job.Updated) {
		return nil, true
	}
	if len(n.told) >= namesMost {
		clear(n.told)
	}
	n.told[job.ID] = job.Updated
	return job, true
}
