package queue

import (
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// What this node holds of one planned run, from the ring to its start: an entry, where it was routed, and
// an attempt to start it. What is here is in the store too, planned: losing this loses nothing. All of
// it is guarded by the lock of the Queue.

// Entry is a planned run that this node holds.
type Entry struct {
	Run compact.Planned
	Ref *jobRef
	// held is set while it is the one in held.
	held bool
	// Due is set when the run has come up on the ring. From then on it has its routing.
	due bool
	// starting is set while the store is asked to start the run, readAgain when the run was read
	// meanwhile, planned.
	starting, readAgain bool
	// Waited is set while the run has been let out of the waitlist from, and has not taken yet
	// what it waited for; keeps, while room there is kept for it.
	Waited, keeps bool
	// HadTurn is set for one that is started singly (dispatch/startsingly.go) when its turn has come, until it has
	// to wait for another run or its start has had no effect.
	HadTurn bool
	tried   tried
	*routing
}

// tried says of an entry that a start of its own has had no effect, and no other run was in its way:
// rows are locked, perhaps, or the store has refused it.
type tried uint8

const (
	triedNot tried = iota
	triedAlready
	triedRefused
)

// routing is what a due run goes through until it is started.
type routing struct {
	// Route is where the run was routed, kept while it waits for room there, RoutedFor
	// the version of the job that it was routed by, and RoutedAt when that was. It is never
	// nil, and others may have the same one: it is replaced, and not changed.
	Route     *Routed
	RoutedFor int64
	RoutedAt  time.Time
	// Choice is what the router has said, until the run is started or waits for room.
	Choice *RouteChoice
	// from is the waitlist that it was let out of last, which others may have as well; nil for none.
	from *WaitKey
	// cover is what goes with it, where its job covers earlier runs; nil for nothing.
	cover *covering
}

// CameFrom reports whether a waitlist is the one that an entry was let out of last.
func (en *Entry) CameFrom(at WaitKey) bool { return en.from != nil && *en.from == at }

// found takes in that the run was read, planned, while it was held.
func (en *Entry) found(r *store.Run) {
	en.readAgain = en.starting
	en.refresh(r)
}

// refresh takes over what another node may have changed of a planned run: it was
// started as part of a broadcast, and put back.
func (en *Entry) refresh(r *store.Run) {
	if en.Run.Sharding() == r.Sharding {
		return
	}
	if en.Run.SetSharding(r.Sharding); en.routing != nil {
		en.RoutedFor = 0 // to be routed anew
	}
}

// Attempt is one entry on its way to be started.
type Attempt struct {
	*Entry
	Job   *store.Job
	Start store.Start
	// Used is the Choice that it was routed by.
	Used *RouteChoice
}

// Keep appends the attempt at i to those of the batch that were kept, which are at its beginning.
func Keep(kept, batch []Attempt, i int) []Attempt {
	if len(kept) < i { // an attempt is large: most are where they are to be
		return append(kept, batch[i])
	}
	return batch[:i+1]
}

// StartsSingly reports whether the start of a routed entry is one of those that are made singly.
func (en *Entry) StartsSingly() bool {
	return en.Route.Refused != "" || len(en.Route.Targets) > 0 || en.tried == triedRefused
}

// Routed is what room router has decided about a due run: where it goes; or that it is refused; or what
// has to be known before.
type Routed struct {
	Destination        // where it goes; nothing while that is not known, or where it is refused
	Msg         string // for Run.TriggerMsg

	Refused string // why it is refused; empty where it is not
	Nobody  bool   // since nobody could run it
	Unknown bool   // since its routing strategy is not known here

	Probing bool       // the answers to probes are not in yet
	Asks    []string   // among these a router of the user's has to choose yet
	Behind  *store.Run // another part of the broadcast, whose end has to be waited for
}

// Destination is where a run goes, and what it takes there.
type Destination struct {
	Address  string
	Targets  []string      // of a broadcast, Address being the first
	Choices  []string      // of a probing route: where to go after a refusal
	Exec     wire.Executor // nil when the address is another node's
	Remote   bool          // the executor is called over HTTP
	Fanned   bool          // a further part of a broadcast: see fanOut in room dispatch
	Lane     laneName
	Places   int     // how many runs of the app have a place at the address at once; 0 for no bound
	JobPlace WaitKey // of kind kindJobPlace where the runs of the job go one after the other
	Ordered  bool    // a serial job: see order.go
}

func (d *Destination) key(app string) addressKey { return addressKey{app, d.Address} }

// RouteChoice is a router's answer about a run.
type RouteChoice struct {
	Version int64 // of the job
	Chosen  []string
	Refused string
	Nobody  *Unanswered // nobody was there to choose
}

// Unanswered is why nobody has chosen by a strategy, what came of asking where somebody has it, and
// Leases.Changes of before anybody was asked.
type Unanswered struct {
	Why, Route, Said string
	Seen             uint64
}

// NoChoice is that of a run which waits for somebody who chooses, or has: it fits no job.
func NoChoice() *RouteChoice { return &RouteChoice{Version: -1} }

// Fits reports whether a choice is still one among the addresses.
func (c *RouteChoice) Fits(job *store.Job, addrs []string) bool {
	if c == nil || c.Version != job.Version {
		return false
	}
	for _, a := range c.Chosen {
		if _, there := slices.BinarySearch(addrs, a); !there {
			return false
		}
	}
	return true
}
