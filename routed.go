package xxljob

import (
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

func (r routed) key(app string) addressKey { return addressKey{app, r.address} }

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

// recall returns it for a run of the job, where these are the same addresses still. Parts of
// broadcasts go ways of their own.
func (m *routeMemo) recall(job *Job, addrs []string, run *plannedRun) (r *routed, ok bool) {
	if m == nil || m.job != job || m.kind != run.runType() || run.sharding() != (Sharding{}) || !m.isFor(addrs) {
		return nil, false
	}
	return m.r, true
}

// isFor reports whether the addresses are those of the memo. They are read again and again, and
// are compared once after that.
func (m *routeMemo) isFor(addrs []string) bool {
	if len(addrs) == 0 || len(addrs) != len(m.addrs) {
		return false
	}
	if sameList(addrs, m.addrs) {
		return true
	}
	if !slices.Equal(addrs, m.addrs) {
		return false
	}
	m.addrs = addrs
	return true
}

// sameList reports whether two lists of addresses, which nobody changes, are one and the same.
func sameList(a, b []string) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
