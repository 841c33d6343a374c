package xxljob

import (
	"reflect"
	"slices"

	"github.com/xxljob/xxljob/wire"
)

// routed is where a run goes.
type routed struct {
	address string
	targets []string      // of a broadcast, address being the first
	choices []string      // of a probing route: where to go after a refusal
	exec    wire.Executor // nil when the address is another node's
	remote  bool          // the executor is called over HTTP
	fanned  bool          // a further part of a broadcast: see deliver
	lane    laneName
	places  int
	serial  lot  // of kind lotSerial for a serial job
	ordered bool // a serial job: see transit.go
	refused string
	msg     string
	probing bool     // the answers to probes are not in yet
	behind  *Run     // another part of the broadcast, whose end has to be waited for
	failed  error    // the store did not tell where the other parts are
	asks    []string // among these a router of the user's has to choose yet
}

func (r *routed) key(app string) addressKey { return addressKey{app, r.address} }

// routeChoice is a router's answer about a run.
type routeChoice struct {
	version int64 // of the job
	chosen  []string
	refused string
}

// fits reports whether a choice is still one among the addresses.
func (c *routeChoice) fits(job *Job, addrs []string) bool {
	if c == nil || c.version != job.Version {
		return false
	}
	for _, a := range c.chosen {
		if _, there := slices.BinarySearch(addrs, a); !there {
			return false
		}
	}
	return true
}

// routeMemo is where the last run of a job went, for those that go the same way. It belongs to
// the start loop.
type routeMemo struct {
	job   *Job
	addrs []string // as they were read last
	kind  TriggerType
	r     *routed
}

// isFor reports whether a run of the job goes the same way, where there are the same addresses
// still. Parts of broadcasts go ways of their own.
func (m *routeMemo) isFor(job *Job, addrs []string, run *plannedRun) bool {
	return m != nil && m.job == job && m.kind == run.runType() && run.sharding() == (Sharding{}) && len(addrs) > 0 &&
		(sameList(addrs, m.addrs) || slices.Equal(addrs, m.addrs))
}

// isCalledAs reports whether a run that goes by r is called at the same executor, and bounded in the
// same way, as one that goes by the other.
func (r *routed) isCalledAs(other *routed) bool {
	return sameExecutor(r.exec, other.exec) && r.remote == other.remote && r.lane == other.lane && r.places == other.places &&
		r.serial == other.serial && r.ordered == other.ordered && r.refused == other.refused
}

// sameExecutor compares executors, which may be of a type of the user's that cannot be compared.
func sameExecutor(a, b wire.Executor) bool {
	return a == nil && b == nil || reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

// sameList reports whether two lists of addresses, which nobody changes, are one and the same.
func sameList(a, b []string) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
