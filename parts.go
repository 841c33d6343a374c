package xxljob

// Where a part of a broadcast goes that is started by itself: it was put back, or a
// trigger asked for it alone. Input: the part and the addresses. Output: one of them.

import (
	"context"

	"github.com/xxljob/xxljob/block"
)

// isPart reports whether a run is one part of a broadcast already.
func isPart(r *Run) bool { return r.Sharding != Sharding{} }

// choosePart takes the address that has the part's place in the list, and for a part
// beyond the list the first, as XXL-JOB does; but none at which another part of the same
// broadcast is under way, or the one would cover or discard the other. Where there is no
// such address the part waits. Parts of one trigger that wait at one address are kept
// apart by a serial place of theirs there, whatever the block strategy.
func (ro *router) choosePart(ctx context.Context, run *Run, job *Job, addrs []string) routed {
	i := run.Sharding.Index
	if i >= len(addrs) {
		i = 0
	}
	if job.Block == block.SerialExecution {
		return routed{address: addrs[i]} // the parts queue
	}
	under, err := call(ctx, func(ctx context.Context) ([]Run, error) {
		return ro.store.Runs(ctx, RunFilter{TriggerID: run.TriggerID, States: []State{StateStarted, StateDispatched}, Limit: storeBatch})
	})
	if err != nil {
		return routed{failed: err}
	}
	at := make(map[string]Run, len(under))
	for _, r := range under {
		at[r.Address] = r
	}
	for n := range addrs {
		if addr := addrs[(i+n)%len(addrs)]; at[addr].ID == 0 {
			return routed{address: addr}
		}
	}
	return routed{behind: at[addrs[i]]}
}
