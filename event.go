package xxljob

import (
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// What a scheduler tells of as it happens.

// Hooks are functions of yours, each of which may be nil. They are called one at a time, on
// a goroutine of their own, shortly after the events they report and in the same order: for
// a run that this node both started and ended, RunStarted comes first. They should be quick,
// and must not call the Scheduler: what does that reads Scheduler.Events. A panic in a hook,
// or runtime.Goexit, is logged once for each hook.
//
// A slow hook holds nothing else up, nor those who read Events: up to 20,000 calls queue behind it. When the queue is
// full and its oldest call has waited for a second, further calls are dropped. An error is
// logged when that begins, and a warning with their number once half of the queue has been
// worked off. Stop waits for the calls still queued, for at most StopGrace and until about a
// second after the end of its context; a hook that has not returned by then is left running,
// with a warning.
//
// Each run that a hook is given has its job's name and key, as far as they can be found out.
//
// RunStarted, RunEnded and RunSkipped are called at the node that does it, and, some two seconds
// later, at each other node that has executors of the run's app attached, at least once while it
// lives. A hook is not told which of the two it is: Event.Here says so to those who read
// Scheduler.Events. Nodes read for that what is new in the store, once a second, if they have one of
// these hooks, or somebody reads their events, and other nodes are there.
type Hooks struct {
	// RunPlanned is called when this node has planned a run of a schedule, or has found one
	// that a trigger or another node planned. It may be called more than once for a run.
	RunPlanned func(Run)
	// RunStarted is called when this node has marked a run started, or another one has, of an app
	// that is attached here: the run may have ended by then.
	RunStarted func(Run)
	// RunEnded is called when this node has stored the final state of a run whose time
	// had come, including refused ones. It is not called for runs that are cancelled
	// before their time. It is called as well where another node has stored it, of an app that is
	// attached here.
	RunEnded func(Run)
	// RunSkipped is called when this node, or another one for an app that is attached here, has
	// recorded instants that are not run, with the
	// reason in Run.Reason. It is not called for the record that an edit leaves
	// (ReasonEdit).
	RunSkipped func(Run)
	// JobStopped is called when this node has stopped a job, or has found that it stopped
	// by itself as this node planned or ended a run of it. Job.StopReason is empty where
	// somebody asked for it.
	JobStopped func(Job)
	// ShardTaken and ShardLost are called when this node begins and ends to schedule the
	// jobs of a shard.
	ShardTaken, ShardLost func(store.Shard)
	// StoreAway is called when the store has not answered for so long that this node relies
	// on its shards no more, and plans and starts nothing, with the last error; StoreBack
	// when it has answered again, with how long it had not.
	StoreAway func(error)
	StoreBack func(away time.Duration)
	// TroubleBegan and TroubleOver are called for each of Scheduler.Troubles of this node, as it
	// begins and when it is over.
	TroubleBegan, TroubleOver func(Trouble)
}

// EventKind says what has happened. Its text is the name of the hook for it.
type EventKind string

// The kinds of events: see the fields of Hooks of these names.
const (
	EventRunPlanned EventKind = "RunPlanned"
	EventRunStarted EventKind = "RunStarted"
	EventRunEnded   EventKind = "RunEnded"
	EventRunSkipped EventKind = "RunSkipped"
	EventJobStopped EventKind = "JobStopped"
	EventShardTaken EventKind = "ShardTaken"
	EventShardLost  EventKind = "ShardLost"
	EventStoreAway  EventKind = "StoreAway"
	EventStoreBack  EventKind = "StoreBack"

	EventTroubleBegan EventKind = "TroubleBegan"
	EventTroubleOver  EventKind = "TroubleOver"
)

// Event is something that has happened at one node. What its pointers point to is shared
// with other receivers and must not be changed.
type Event struct {
	Kind EventKind
	// At is when it was noticed, by this process's clock, in UTC.
	At time.Time
	// Node is Config.Node of the node that tells of it.
	Node string
	// Here says that this node has done it, or noticed it itself. It is false for a RunStarted,
	// RunEnded or RunSkipped of an app that is attached here which another node has done: such an
	// event is told at each node of the app, so who adds up goes by those of Here alone.
	Here bool
	// Run is set for the kinds that begin with Run, Job for JobStopped, and Shard for
	// ShardTaken and ShardLost.
	Run   *Run
	Job   *Job
	Shard *store.Shard
	// Trouble is set for TroubleBegan and TroubleOver.
	Trouble *Trouble
	// Err is why the store is away (StoreAway), and Away how long it was (StoreBack).
	Err  error
	Away time.Duration
	// Dropped is how many events this subscription has lost, for want of room, since the
	// one before.
	Dropped int
}

func eventOf(e *core.Event) Event {
	return Event{Kind: EventKind(e.Kind), At: e.At, Node: e.Node, Here: e.Here, Run: e.Run, Job: e.Job, Shard: e.Shard, Trouble: e.Trouble, Err: e.Err, Away: e.Away, Dropped: e.Dropped}
}
