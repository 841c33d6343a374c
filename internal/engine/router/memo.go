package router

import (
	"reflect"
	"slices"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// What is remembered of where a job's runs go, so that most are not routed anew.

// routeMemo is where the last run of a job went, for those that go the same way. It belongs to
// the start loop.
type routeMemo struct {
	job   *store.Job
	addrs []string // as they were read last
	kind  store.TriggerType
	to    *queue.Routed
}

// isFor reports whether a run of the job goes the same way, where there are the same addresses
// still. Parts of broadcasts go ways of their own.
func (m *routeMemo) isFor(job *store.Job, addrs []string, run *compact.Planned) bool {
	return m != nil && m.job == job && m.kind == run.RunType() && run.Sharding() == (store.Sharding{}) && len(addrs) > 0 &&
		(sameList(addrs, m.addrs) || slices.Equal(addrs, m.addrs))
}

// isCalledAs reports whether a run that goes to r is called at the same executor, and bounded in the
// same way, as one that goes to the other.
func isCalledAs(r, other *queue.Destination) bool {
	return sameExecutor(r.Exec, other.Exec) && r.Remote == other.Remote && r.Lane == other.Lane && r.Places == other.Places &&
		r.JobPlace == other.JobPlace && r.Ordered == other.Ordered
}

// sameExecutor compares executors, which may be of a type of the user's that cannot be compared.
func sameExecutor(a, b wire.Executor) bool {
	return a == nil && b == nil || reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

// sameList reports whether two lists of addresses, which nobody changes, are one and the same.
func sameList(a, b []string) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
