package xxljob

// A planned run as a node holds it: of the many that wait for their time most are as their
// schedules have made them, which takes few words.

import (
	"slices"
	"time"
)

// plannedRun is a planned run. It does not change, but for its part of a broadcast.
type plannedRun struct {
	ID, JobID   int64
	App         string
	at, created int64 // Run.Scheduled and Run.Created, in milliseconds since 1970
	epoch       int64 // Run.PlanEpoch
	rest        *Run  // the whole of it, of a run of which more has to be known
	Shard       int32
	kind        uint8 // the place of Run.Type in firstTypes
}

// firstTypes are the types of runs that no other run has led to: those that schedules make, and
// those that somebody asks for.
func firstTypes() [7]TriggerType {
	return [...]TriggerType{TriggerCron, TriggerFixRate, TriggerFixDelay, TriggerOnce, TriggerMisfire, TriggerManual, TriggerAPI}
}

// plannedOf is how a planned run is held.
func plannedOf(r *Run) plannedRun {
	p := plainOf(r)
	if !isPlain(r, &p) {
		whole := *r
		p.rest = &whole
	}
	return p
}

// plainOf is what is held of each.
func plainOf(r *Run) plannedRun {
	types := firstTypes()
	return plannedRun{
		ID: r.ID, JobID: r.JobID, App: r.App, at: r.Scheduled.UnixMilli(), created: r.Created.UnixMilli(), epoch: r.PlanEpoch,
		Shard: int32(r.Shard), kind: uint8(max(slices.Index(types[:], r.Type), 0)),
	}
}

// isPlain reports whether nothing more is to be known of a run than what is held of each.
func isPlain(r *Run, p *plannedRun) bool {
	return r.State == StatePlanned && isBorn(r, p) && isFirst(r) && hasNotStarted(r) && saysNothing(r) &&
		r.Param == "" && r.Retries == -1 && r.TriggerMsg == ""
}

// isBorn reports whether the run is what its schedule, or somebody, has made in what is held of each.
func isBorn(r *Run, p *plannedRun) bool {
	return r.Type == firstTypes()[p.kind] && r.Born == r.Type.ScheduleBorn() && r.TriggerID == r.ID &&
		r.Scheduled == p.scheduled() && r.Created == time.UnixMilli(p.created).UTC() && r.Shard == int(p.Shard)
}

// isFirst reports whether a run is what its schedule has made, and nobody has asked for anything.
func isFirst(r *Run) bool {
	return r.JobName == "" && r.JobKey == "" && r.ParentID == 0 && r.Attempt == 0 && r.Depth == 0 && r.Business.IsZero() &&
		!r.ParamSet && !r.RetriesSet && r.Sharding == Sharding{} && len(r.Addresses) == 0 && r.Reruns == 0 && r.Snoozes == 0 &&
		r.Trace == "" && r.First.IsZero() && r.Last.IsZero() && r.Count == 0
}

// hasNotStarted reports whether a planned run was never started, and put back.
func hasNotStarted(r *Run) bool {
	return r.JobVersion == 0 && r.Handler == "" && r.Block == "" && r.Address == "" && r.Owner == "" && r.Token == 0 && r.BootID == "" &&
		r.Started.IsZero() && r.Taken.IsZero() && r.Ended.IsZero()
}

// saysNothing reports whether nothing is noted about a run.
func saysNothing(r *Run) bool {
	return !r.LateNoted && !r.NoRetry && !r.StoppedJob && r.KillReason == "" && r.HandleMsg == "" &&
		r.Progress == 0 && r.ProgressText == "" && r.AlarmStatus == 0 && r.Reason == ""
}

// full is the run.
func (p *plannedRun) full() (r Run) {
	p.fill(&r)
	return r
}

// fill makes r the run.
func (p *plannedRun) fill(r *Run) {
	if p.rest != nil {
		*r = *p.rest
		return
	}
	*r = Run{
		ID: p.ID, JobID: p.JobID, App: p.App, Shard: int(p.Shard), TriggerID: p.ID, Type: p.runType(), Born: p.runType().ScheduleBorn(),
		Scheduled: p.scheduled(), Created: time.UnixMilli(p.created).UTC(), Retries: -1, PlanEpoch: p.epoch,
	}
}

// scheduled is Run.Scheduled.
func (p *plannedRun) scheduled() time.Time { return time.UnixMilli(p.at).UTC() }

// key is keyOfRun.
func (p *plannedRun) key() ringEntry { return ringEntry{p.at, p.ID} }

// runType is Run.Type.
func (p *plannedRun) runType() TriggerType {
	if p.rest != nil {
		return p.rest.Type
	}
	return firstTypes()[p.kind]
}

// triggerID is Run.TriggerID.
func (p *plannedRun) triggerID() int64 {
	if p.rest != nil {
		return p.rest.TriggerID
	}
	return p.ID
}

// addresses are Run.Addresses.
func (p *plannedRun) addresses() []string {
	if p.rest != nil {
		return p.rest.Addresses
	}
	return nil
}

// sharding is Run.Sharding.
func (p *plannedRun) sharding() Sharding {
	if p.rest != nil {
		return p.rest.Sharding
	}
	return Sharding{}
}

// setSharding makes it that part of a broadcast.
func (p *plannedRun) setSharding(s Sharding) {
	whole := p.full()
	whole.Sharding, p.rest = s, &whole
}
