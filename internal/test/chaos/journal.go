//go:build unix

package chaos

import (
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
)

// journal is what the supervisor did, for the auditor.
type journal struct {
	mu     sync.Mutex
	jobs   []audit.Job   // guarded by mu
	ops    []audit.Op    // guarded by mu
	faults []audit.Fault // guarded by mu
}

func (j *journal) job(v audit.Job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.ContainsFunc(j.jobs, func(had audit.Job) bool { return had.ID == v.ID }) {
		j.jobs = append(j.jobs, v)
	}
}

func (j *journal) op(v audit.Op) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ops = append(j.ops, v)
}

func (j *journal) fault(v audit.Fault) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.faults = append(j.faults, v)
}

// input is the journal as the auditor takes it.
func (j *journal) input() audit.Input {
	j.mu.Lock()
	defer j.mu.Unlock()
	return audit.Input{Jobs: slices.Clone(j.jobs), Ops: slices.Clone(j.ops), Faults: slices.Clone(j.faults), Rules: audit.DefaultRules()}
}

// now is the moment by the machine's clock, which is that of nodes and database.
func now() int64 { return time.Now().UnixMicro() }
