// Package compact keeps a run in few words. A node holds many runs in memory, and most are as their
// schedules have made them, and started as their jobs say: what follows from that is not kept. Whatever
// a run has beside it is kept whole, so that nothing of a run is lost.
package compact

import (
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/store"
)

// Planned is a planned run. It does not change, but for its part of a broadcast.
type Planned struct {
	ID, JobID   int64
	App         string
	At, Created int64      // Run.Scheduled and Run.Created, in milliseconds since 1970
	epoch       int64      // Run.PlanEpoch
	Rest        *store.Run // the whole of it, of a run of which more has to be known
	Shard       int32
	kind        uint8 // the place of Run.Type in firstTypes
}

// firstTypes are the types of runs that no other run has led to: those that schedules make, and
// those that somebody asks for.
func firstTypes() [7]store.TriggerType {
	return [...]store.TriggerType{store.TriggerCron, store.TriggerFixRate, store.TriggerFixDelay, store.TriggerOnce, store.TriggerMisfire, store.TriggerManual, store.TriggerAPI}
}

// PlannedOf is how a planned run is held.
func PlannedOf(r *store.Run) Planned {
	p := plainOf(r)
	if !isPlain(r, &p) {
		whole := *r
		p.Rest = &whole
	}
	return p
}

// plainOf is what is held of each.
func plainOf(r *store.Run) Planned {
	types := firstTypes()
	return Planned{
		ID: r.ID, JobID: r.JobID, App: r.App, At: r.Scheduled.UnixMilli(), Created: r.Created.UnixMilli(), epoch: r.PlanEpoch,
		Shard: int32(r.Shard), kind: uint8(max(slices.Index(types[:], r.Type), 0)),
	}
}

// isPlain reports whether nothing more is to be known of a run than what is held of each.
func isPlain(r *store.Run, p *Planned) bool {
	return r.State == store.StatePlanned && isBorn(r, p) && isFirst(r) && hasNotStarted(r) && saysNothing(r) &&
		r.Param == "" && r.Retries == -1 && r.TriggerMsg == ""
}

// isBorn reports whether the type, the times and the ids of r follow from p.
func isBorn(r *store.Run, p *Planned) bool {
	return r.Type == firstTypes()[p.kind] && r.Born == r.Type.ScheduleBorn() && r.TriggerID == r.ID &&
		r.Scheduled == p.Scheduled() && r.Created == time.UnixMilli(p.Created).UTC() && r.Shard == int(p.Shard)
}

// isFirst reports whether a run is what its schedule has made, and nobody has asked for anything.
func isFirst(r *store.Run) bool {
	return r.JobName == "" && r.JobKey == "" && !r.Secret && r.ParentID == 0 && r.Attempt == 0 && r.Depth == 0 && r.Business.IsZero() && r.StandsFor.IsZero() &&
		!r.ParamSet && !r.RetriesSet && r.Sharding == store.Sharding{} && len(r.Addresses) == 0 && r.Reruns == 0 && r.Snoozes == 0 &&
		r.Trace == "" && r.First.IsZero() && r.Last.IsZero() && r.Count == 0
}

// hasNotStarted reports whether a planned run was never started, and put back.
func hasNotStarted(r *store.Run) bool {
	return r.JobVersion == 0 && r.Handler == "" && r.Block == "" && r.Address == "" && r.Owner == "" && r.Token == 0 && r.BootID == "" &&
		r.Started.IsZero() && r.Taken.IsZero() && r.Ended.IsZero()
}

// saysNothing reports whether nothing is noted about a run.
func saysNothing(r *store.Run) bool {
	return !r.LateNoted && !r.NoRetry && !r.StoppedJob && r.KillReason == "" && r.HandleMsg == "" &&
		r.Progress == 0 && r.ProgressText == "" && r.AlarmStatus == 0 && r.Reason == ""
}

// full is the run.
func (p *Planned) Run() (r store.Run) {
	p.Fill(&r)
	return r
}

// Fill makes r the run.
func (p *Planned) Fill(r *store.Run) {
	if p.Rest != nil {
		*r = *p.Rest
		return
	}
	*r = store.Run{
		ID: p.ID, JobID: p.JobID, App: p.App, Shard: int(p.Shard), TriggerID: p.ID, Type: p.RunType(), Born: p.RunType().ScheduleBorn(),
		Scheduled: p.Scheduled(), Created: time.UnixMilli(p.Created).UTC(), Retries: -1, PlanEpoch: p.epoch,
	}
}

// Scheduled is Run.Scheduled.
func (p *Planned) Scheduled() time.Time { return time.UnixMilli(p.At).UTC() }

// KeyOf is the key of a run: runs are in its order, here as in the store.
func KeyOf(r *store.Run) timering.Key {
	return timering.Key{At: r.Scheduled.UnixMilli(), RunID: r.ID}
}

// Key is KeyOf of the run.
func (p *Planned) Key() timering.Key { return timering.Key{At: p.At, RunID: p.ID} }

// RunType is Run.Type.
func (p *Planned) RunType() store.TriggerType {
	if p.Rest != nil {
		return p.Rest.Type
	}
	return firstTypes()[p.kind]
}

// TriggerID is Run.TriggerID.
func (p *Planned) TriggerID() int64 {
	if p.Rest != nil {
		return p.Rest.TriggerID
	}
	return p.ID
}

// Addresses are Run.Addresses.
func (p *Planned) Addresses() []string {
	if p.Rest != nil {
		return p.Rest.Addresses
	}
	return nil
}

// Sharding is Run.Sharding.
func (p *Planned) Sharding() store.Sharding {
	if p.Rest != nil {
		return p.Rest.Sharding
	}
	return store.Sharding{}
}

// SetSharding makes it that part of a broadcast.
func (p *Planned) SetSharding(s store.Sharding) {
	whole := p.Run()
	whole.Sharding, p.Rest = s, &whole
}

// Started is a started run. It does not change.
type Started struct {
	Planned        Planned // with the whole started run as its rest where more has to be known
	started, taken int64   // Run.Started and Run.Taken, in milliseconds since 1970; 0 for none
	Token          int64
	*startedWith
}

// startedWith is what runs that go to one executor mostly have in common. It does not change.
type startedWith struct {
	Address, Owner, BootID string
	msg                    string // Run.TriggerMsg
}

// Shared has the last one of each address, so that most runs share theirs. It is guarded by
// the lock of the Queue.
type Shared map[string]*startedWith

// mostLately is how many addresses it has at most: they come and go.
const mostLately = 1000

// of returns what a run has in common with others: theirs, where the last one at its address had
// the same.
func (l Shared) of(r *store.Run) *startedWith {
	is := startedWith{r.Address, r.Owner, r.BootID, r.TriggerMsg}
	if last := l[r.Address]; last != nil && *last == is {
		return last
	}
	if len(l) >= mostLately {
		clear(l)
	}
	with := new(startedWith) // not the above, which would be in the heap each time
	*with = is
	l[r.Address] = with
	return with
}

// StartedOf is how a run of a job is held that was started.
func StartedOf(r *store.Run, job *store.Job, lately Shared) Started {
	s := Started{Planned: plainOf(r), started: milliOf(r.Started), taken: milliOf(r.Taken), Token: r.Token, startedWith: lately.of(r)}
	if !isUsual(r, &s, job) {
		whole := *r
		s.Planned.Rest = &whole
	}
	return s
}

// milliOf is a time in milliseconds since 1970; 0 for the zero time.
func milliOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// timeOf is the time that milliOf has made that of.
func timeOf(milli int64) time.Time {
	if milli == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milli).UTC()
}

// isUsual reports whether nothing more is to be known of a started run than what is held of each.
func isUsual(r *store.Run, s *Started, job *store.Job) bool {
	return r.State == store.StateStarted && isBorn(r, &s.Planned) && isFirst(r) && saysNothing(r) &&
		r.Started == timeOf(s.started) && r.Taken == timeOf(s.taken) && r.Ended.IsZero() &&
		r.JobVersion == job.Version && r.Handler == job.Handler && r.Block == job.Block && r.Param == job.Param && r.Retries == max(job.Retries, 0)
}

// Fill makes r the run, which is one of the job.
func (s *Started) Fill(r *store.Run, job *store.Job) {
	s.Planned.Fill(r)
	if s.Planned.Rest != nil {
		return
	}
	r.State, r.Started, r.Taken, r.TriggerMsg = store.StateStarted, timeOf(s.started), timeOf(s.taken), s.msg
	r.Token, r.Address, r.Owner, r.BootID = s.Token, s.Address, s.Owner, s.BootID
	r.JobVersion, r.Handler, r.Block, r.Param, r.Retries = job.Version, job.Handler, job.Block, job.Param, max(job.Retries, 0)
}

// Instant is Run.Instant, in milliseconds since 1970.
func (s *Started) Instant() int64 {
	if rest := s.Planned.Rest; rest != nil {
		return rest.Instant().UnixMilli()
	}
	return s.Planned.At
}

// IsOf reports whether a date that came with a run's result, in milliseconds since 1970, is that
// of the run, or none.
func (s *Started) IsOf(date int64) bool { return date == 0 || date == s.Planned.Created }

// Slimmed is a run without its long texts: enough to find it, and to put it in order.
func Slimmed(r store.Run) store.Run {
	r.Param, r.TriggerMsg, r.HandleMsg, r.ProgressText, r.Addresses = "", "", "", "", nil
	return r
}
