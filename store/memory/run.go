package memory

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// run is a run with its places in the sets it is in. All of it is guarded by
// Store.mu; a run that was evicted is used again.
//
// Hundreds of thousands that have ended are kept, and each time the garbage is collected their
// pointers are followed. So a run has as few as may be, and those in front; what runs of a job
// have in common is in terms, what few have in extras; times are in milliseconds. It is made a
// whole store.Run when somebody reads it.
type run struct {
	job       *job
	terms     *terms  // never nil
	extras    *extras // nil for none; see extra
	owner     *peer   // set while started or dispatched by a node
	addressee *peer   // set while started or dispatched at an attached address
	first     *run    // of its trigger, itself perhaps; kept for as long as one of them has not ended
	links     [listKinds]link

	Type                  store.TriggerType
	TriggerMsg, HandleMsg string

	ID, TriggerID, PlanEpoch, Token           int64
	scheduled, created, started, taken, ended int64

	unended   int32 // runs of the trigger, where it is the first
	parts     int32 // of the trigger, where it is the first
	succeeded int32 // of these
	count     int32 // of the job, when the run was planned
	place     int32 // in job.planned or job.ahead while planned, in shard.started while started

	State                                          store.State
	AlarmStatus                                    int8
	Born, ParamSet, RetriesSet, LateNoted, NoRetry bool

	followed bool // another run follows it
	late     bool // an alarm has said so
	foreign  bool // planned, and neither planned nor loaded under the shard's epoch
	ahead    bool // planned, and kept apart until extras.move: see ahead.go
}

func (r *run) slot() *int32 { return &r.place }

// snapshot is the run as callers get it.
func (r *run) snapshot() (out store.Run) {
	r.put(&out)
	return out
}

// put makes a run that is empty the snapshot.
func (r *run) put(out *store.Run) {
	out.ID, out.JobID, out.Shard, out.TriggerID = r.ID, r.job.id, r.job.shard.id, r.TriggerID
	out.Type, out.State, out.PlanEpoch, out.Token, out.AlarmStatus = r.Type, r.State, r.PlanEpoch, r.Token, int(r.AlarmStatus)
	out.Born, out.ParamSet, out.RetriesSet, out.LateNoted, out.NoRetry = r.Born, r.ParamSet, r.RetriesSet, r.LateNoted, r.NoRetry
	out.TriggerMsg, out.HandleMsg = r.TriggerMsg, r.HandleMsg
	out.Scheduled, out.Created = fromMilli(r.scheduled), fromMilli(r.created)
	out.Started, out.Taken, out.Ended = fromMilli(r.started), fromMilli(r.taken), fromMilli(r.ended)
	r.terms.put(out)
	if r.extras != nil {
		r.extras.put(out)
	}
}

// keep makes the run that of a snapshot, but for what insertRun gives it.
func (r *run) keep(from *store.Run) {
	r.Type, r.State, r.PlanEpoch, r.Token, r.AlarmStatus = from.Type, from.State, from.PlanEpoch, from.Token, int8(from.AlarmStatus)
	r.Born, r.ParamSet, r.RetriesSet, r.LateNoted, r.NoRetry = from.Born, from.ParamSet, from.RetriesSet, from.LateNoted, from.NoRetry
	r.TriggerID, r.TriggerMsg, r.HandleMsg = from.TriggerID, from.TriggerMsg, from.HandleMsg
	r.scheduled, r.created = toMilli(from.Scheduled), toMilli(from.Created)
	r.started, r.taken, r.ended = toMilli(from.Started), toMilli(from.Taken), toMilli(from.Ended)
	r.agree(termsOf(from, r.job.app))
	r.keepExtras(from)
}

// read is the run with the names that its job has now, as those get it who read runs.
func (r *run) read() store.Run {
	out := r.snapshot()
	if j := r.job; !j.removed {
		out.JobName, out.JobKey = j.def.name, j.def.key
	}
	return out
}

// instant is when it is due, or its first run was, in milliseconds; see store.Run.Instant.
func (r *run) instant() int64 {
	if r.Type == store.TriggerRetry {
		if last := r.extra().last; !last.IsZero() {
			return toMilli(last)
		}
	}
	return r.scheduled
}

// createdAt is when the run was inserted.
func (r *run) createdAt() time.Time { return fromMilli(r.created) }

// say adds a line to the TriggerMsg.
func (r *run) say(line string) {
	switch {
	case line == "":
	case r.TriggerMsg == "":
		r.TriggerMsg = line
	default:
		r.TriggerMsg += "\n" + line
	}
}
