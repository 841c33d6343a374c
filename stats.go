package xxljob

// What a scheduler says of itself: Scheduler.Stats.

import (
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// Stats is the state of one node at one moment. Counts of calls are since New.
type Stats struct {
	// Node is Config.Node, and Incarnation its name in the store, which each New makes anew.
	// At is the store's time as the node knows it.
	Node, Incarnation string
	At                time.Time

	// Held is how many planned runs are in memory, of which Due have come up and may be
	// started at once, and Waiting wait, by what they lack:
	//
	//	"place"     a free place at an executor of this process
	//	"address"   room for more triggers at an address, "app" of an app, "lane" in a lane
	//	"serial"    the end of the job's run at an address
	//	"run"       the end of another run, or its start
	//	"order"     an earlier run of the job, which is to be taken by another node
	//	"settle"    what a former owner of the shard has left of serial jobs
	//	"probe"     answers of executors that are asked whether they are idle
	//	"addresses" an answer of the registry, or one that succeeds
	//	"router"    a node that knows the routing strategy of their job
	//	"executor"  an executor of their app, which has none (Job.OnNoExecutor)
	//	"turn"      their turn among starts that go one by one
	Held, Due int
	Waiting   map[string]int
	// Fast and Slow are the lanes.
	Fast, Slow LaneStats
	// Running is how many runs are at executors of this process, or on their way from there to
	// the store, by app, so that there may be more than places; Calling is how many
	// triggers of other executors have no answer yet, and Away how many runs of this node's
	// shards are at other nodes.
	Running       map[string]int
	Calling, Away int
	// PlacesHeld is how many places of executors of this process are held by abandoned handlers
	// that have not returned: those beyond as many as executor.Config.Places.
	PlacesHeld int

	// Shards is how many shards the node has. LeaseLeft is for how long it may still act on
	// that without another beat: negative where it may not, and at most LeaseTTL. It is that as
	// well where the node is alone, which needs no beats.
	Shards    int
	LeaseLeft time.Duration
	// ClockOffset is how far the store's clock is ahead of this process's, at least; zero
	// where the store has none of its own.
	ClockOffset time.Duration
	// FaultStats are counts of what should not happen.
	FaultStats
	// Logs is about lines of runs that go where Config.Logs says.
	Logs LogStats
	// Troubles is how many of Scheduler.Troubles there are, by cause, without zeros.
	Troubles map[string]int

	// Calls are those of the store that the scheduler makes, by the name of the method, those
	// of optional interfaces among them: LogPages, DropEnded and the like.
	Calls map[string]CallStats
}

// Trouble is one of Scheduler.Troubles: the Cause, the App, JobID or Address that it is about,
// Since when, the Detail in words and the Remedy. See [store.Trouble].
type Trouble = store.Trouble

// TroubleCause says of what kind a trouble is. See [store.TroubleCause].
type TroubleCause = store.TroubleCause

// TroubleLockedRows: somebody's transaction holds rows that the scheduler has to lock. See
// [store.TroubleLockedRows].
const TroubleLockedRows = store.TroubleLockedRows

// TroubleFalseRefusal: an executor has run what was refused in its name. See
// [store.TroubleFalseRefusal].
const TroubleFalseRefusal = store.TroubleFalseRefusal

// TroubleSharedAddress: an address stands for several processes. See
// [store.TroubleSharedAddress].
const TroubleSharedAddress = store.TroubleSharedAddress

// TroubleUnknownZone: this node has no data of the zone of a job. See
// [store.TroubleUnknownZone].
const TroubleUnknownZone = store.TroubleUnknownZone

// TroubleUnknownSchedule: this node does not know the type of a job's schedule. See
// [store.TroubleUnknownSchedule].
const TroubleUnknownSchedule = store.TroubleUnknownSchedule

// TroubleNoExecutor: due runs find no executor. See [store.TroubleNoExecutor].
const TroubleNoExecutor = store.TroubleNoExecutor

// TroubleUnknownRouter: no live node knows the routing strategy of a job. See
// [store.TroubleUnknownRouter].
const TroubleUnknownRouter = store.TroubleUnknownRouter

// TroubleStuckRuns: due runs wait for too long. See [store.TroubleStuckRuns].
const TroubleStuckRuns = store.TroubleStuckRuns

// TroubleClock: the store's clock is not trusted. See [store.TroubleClock].
const TroubleClock = store.TroubleClock

// TroubleRefused: the store refuses for ever what has to be written about a job or one of its runs.
// See [store.TroubleRefused].
const TroubleRefused = store.TroubleRefused

// TroubleUntold: alarms of an app were given up, since no node has told of them for a day. See
// [store.TroubleUntold].
const TroubleUntold = store.TroubleUntold

// FaultStats counts, since New, what is zero at a node that is well, on a store that answers,
// with users' code that is sound: any of them that grows is worth a look at the log, which says
// more about each.
type FaultStats struct {
	// PickedUp is how many planned runs of this node's shards nobody was holding, and the
	// node has found by comparing what it holds with the store. Each is a bug of this module;
	// the run is late, and not lost.
	PickedUp uint64
	// Adopted is how many runs this node came to run only after their start or their take,
	// whose call had returned an error, turned out to have taken effect later than the node had
	// looked. Forgotten is how many
	// had run here and were under way by the store all the same, as after a fail-over to a
	// standby that was behind: they end as lost.
	Adopted, Forgotten uint64
	// Unplannable is how many jobs this node has stopped since their schedule could not be
	// evaluated.
	Unplannable uint64
	// Endless is how many runs were recorded as skipped since successes lead to each other
	// without an end, and Absent how many children were not triggered since there are no such
	// jobs.
	Endless, Absent uint64
	// AlarmsFailed is how many attempts to send an alarm have failed; each is tried again.
	AlarmsFailed uint64
	// EventsDropped is how many events hooks and subscribers were not told of.
	EventsDropped uint64
	// ResultsRefused and RegistrationsRefused are how many requests of executors elsewhere
	// were refused, or dropped after they were taken in, since too much waited for the store.
	// Each of our and of Java's executors registers again, and ours send results again.
	ResultsRefused, RegistrationsRefused uint64
	// Unread is how many requests of executors elsewhere, and how many results among others in
	// one, were not understood: no JSON, say, or a text for a number. The log says from which
	// address they came.
	Unread uint64
	// TokensRefused is how many requests to AdminHandler had no token, or one that is not good for
	// what they asked, and how many to the console that was made with this Scheduler showed one that
	// is nobody's. The log says from which address they came, once a minute, and an address is
	// told of ten a second at most.
	TokensRefused uint64
	// Untraced is how often Config.Tracer was not called, since an earlier call of it had not
	// returned in time.
	Untraced uint64
	// Panics is how many panics of users' code were recovered, by place: "Registry.Lookup",
	// "Hooks.RunEnded". Those of handlers are not among them: they are failures of their runs.
	// Of the places beyond the first thousand all are counted under "other".
	Panics map[string]uint64
}

// LaneStats is a lane: of Size places, Used are taken by triggers that have no answer yet.
type LaneStats struct{ Size, Used int }

// CallStats counts the calls of one method that have returned. Errors are all of them, also
// answers such as ErrNotFound.
type CallStats struct {
	Calls, Errors uint64
	// Total is how long all of them took, and Longest the longest.
	Total, Longest time.Duration
	// Rows is how many rows the calls were about that take a batch, and Largest the largest
	// batch: jobs of Claim; runs of Start, Take, Dispatched, Finish, Settle and SetProgress. A
	// call that is made again, since its answer was an error, counts again. Rows/Calls is the
	// mean size of a batch; both are zero for all other methods.
	Rows    uint64
	Largest int
}

func statsOf(s core.Stats) Stats {
	all := Stats{
		Node: s.Node, Incarnation: s.Incarnation, At: s.At, Held: s.Held, Due: s.Due, Waiting: s.Waiting,
		Fast: LaneStats(s.Fast), Slow: LaneStats(s.Slow), Running: s.Running, Calling: s.Calling, Away: s.Away, PlacesHeld: s.PlacesHeld,
		Shards: s.Shards, LeaseLeft: s.LeaseLeft, ClockOffset: s.ClockOffset, FaultStats: FaultStats(s.FaultStats), Logs: LogStats(s.Logs), Troubles: s.Troubles,
		Calls: make(map[string]CallStats, len(s.Calls)),
	}
	for method, c := range s.Calls {
		all.Calls[method] = CallStats(c)
	}
	return all
}
