package core

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// What a scheduler tells of as it happens.

// Hooks is xxljob.Hooks.
type Hooks struct {
	RunPlanned            func(store.Run)
	RunStarted            func(store.Run)
	RunEnded              func(store.Run)
	RunSkipped            func(store.Run)
	JobStopped            func(store.Job)
	ShardTaken, ShardLost func(store.Shard)
	StoreAway             func(error)
	StoreBack             func(away time.Duration)
	TroubleBegan          func(store.Trouble)
	TroubleOver           func(store.Trouble)
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

// Event is xxljob.Event.
type Event struct {
	Kind    EventKind
	At      time.Time
	Node    string
	Here    bool
	Run     *store.Run
	Job     *store.Job
	Shard   *store.Shard
	Trouble *store.Trouble
	Err     error
	Away    time.Duration
	Dropped int
}

// Has reports whether there is a hook for the kind.
func (h *Hooks) Has(kind EventKind) bool {
	switch kind {
	case EventRunPlanned:
		return h.RunPlanned != nil
	case EventRunStarted:
		return h.RunStarted != nil
	case EventRunEnded:
		return h.RunEnded != nil
	case EventRunSkipped:
		return h.RunSkipped != nil
	case EventJobStopped:
		return h.JobStopped != nil
	case EventShardTaken:
		return h.ShardTaken != nil
	case EventShardLost:
		return h.ShardLost != nil
	case EventStoreAway:
		return h.StoreAway != nil
	case EventStoreBack:
		return h.StoreBack != nil
	case EventTroubleBegan:
		return h.TroubleBegan != nil
	case EventTroubleOver:
		return h.TroubleOver != nil
	}
	return false
}

// Call calls the hook for an event, which is there.
func (h *Hooks) Call(e *Event) {
	switch e.Kind {
	case EventRunPlanned:
		h.RunPlanned(*e.Run)
	case EventRunStarted:
		h.RunStarted(*e.Run)
	case EventRunEnded:
		h.RunEnded(*e.Run)
	case EventRunSkipped:
		h.RunSkipped(*e.Run)
	case EventJobStopped:
		h.JobStopped(e.Job.Clone())
	case EventShardTaken:
		h.ShardTaken(*e.Shard)
	case EventShardLost:
		h.ShardLost(*e.Shard)
	case EventStoreAway:
		h.StoreAway(e.Err)
	case EventStoreBack:
		h.StoreBack(e.Away)
	case EventTroubleBegan:
		h.TroubleBegan(*e.Trouble)
	case EventTroubleOver:
		h.TroubleOver(*e.Trouble)
	}
}
