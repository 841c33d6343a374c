package memory

// Starts of planned runs.

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Start marks planned runs started or refused.
func (s *Store) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	now := toMilli(s.clock())
	dst, out := extended(dst, len(starts))
	for i := range starts {
		st := &starts[i]
		r := s.runs.find(st.RunID)
		out[i].Status = s.startable(st, r)
		switch out[i].Status {
		case store.StartOK:
			s.start(ctx, st, r, now, &out[i])
		case store.StartGone:
			if r != nil {
				out[i].Run = r.snapshot()
			}
		case store.StartBusy:
			if ahead := behind(st, r); ahead != nil {
				out[i].Run = ahead.snapshot()
			}
		}
	}
	return dst, nil
}

// startable is the compare of the compare-and-set. The fence comes first: a
// former owner learns that it is one, whatever became of the run.
func (s *Store) startable(st *store.Start, r *run) store.StartStatus {
	sh := s.fenced(st.Shard, st.Epoch)
	switch {
	case sh == nil || r != nil && r.job.shard != sh:
		return store.StartFenced
	case r == nil || r.State != store.StatePlanned || r.ahead:
		return store.StartGone
	}
	j := r.job
	switch {
	case j.removed || j.id != st.JobID || j.version != st.JobVersion || r.heldBack(),
		len(st.Targets) > 0 && r.extra().sharding.Total > 0:
		return store.StartStale
	case st.State == store.StateStarted && !s.addresseesThere(st):
		return store.StartNoNode
	case behind(st, r) != nil:
		return store.StartBusy
	case st.Serial && st.State == store.StateStarted && j.occupiesAny(st):
		return store.StartBusy
	}
	return store.StartOK
}

// heldBack reports whether the job is stopped for the run, or, for one that its schedule has
// made, has no schedule any more.
func (r *run) heldBack() bool {
	return r.Type.ScheduleBorn() && r.job.unscheduled() || r.Born && r.job.stopped
}

// behind is the retry that a start has to wait for, or nil.
func behind(st *store.Start, r *run) *run {
	if !st.AfterRetries || st.State != store.StateStarted {
		return nil
	}
	at := toMilli(st.Instant)
	for c := r.job.retries.after(noID, noID); c.peek() != nil && c.peek().at <= at; c.next() {
		if e := c.peek(); less(e.at, e.of.TriggerID, at, st.TriggerID) {
			return e.of
		}
	}
	return nil
}

// addresseesThere reports whether every node that the start goes to is there to
// take its run. Bury, which looks for unended runs, holds the same mutex: so no
// run is started at a node that is deleted.
func (s *Store) addresseesThere(st *store.Start) bool {
	for _, address := range st.Targets {
		if !s.addresseeThere(address, st.Owner) {
			return false
		}
	}
	return s.addresseeThere(st.Address, st.Owner)
}

// addresseeThere reports whether the node of an attached address has joined and
// has not left. Of its own node the owner knows; other addresses have none.
func (s *Store) addresseeThere(address, owner string) bool {
	incarnation, attached := store.LocalIncarnation(address)
	if !attached || incarnation == owner {
		return true
	}
	p := s.peers[incarnation]
	return p != nil && p.joined && !p.left
}

// occupiesAny reports whether a run of the job is at an attached address that
// the start goes to; other addresses are not counted.
func (j *job) occupiesAny(st *store.Start) bool {
	if len(j.busy) == 0 {
		return false
	}
	for _, address := range st.Targets {
		if j.occupies(address) {
			return true
		}
	}
	return j.occupies(st.Address)
}

// start starts or refuses the run, and answers with it and the further parts of a broadcast.
func (s *Store) start(ctx context.Context, st *store.Start, r *run, now int64, out *store.Started) {
	r.say(st.Msg)
	if st.HandleMsg != "" && len(st.Covers) == 0 {
		r.HandleMsg = store.PlainText(st.HandleMsg)
	}
	if r.Type.ScheduleBorn() {
		r.job.startedFor = max(r.job.startedFor, r.scheduled)
	}
	t := terms{app: r.terms.app, handler: store.PlainText(st.Handler), block: store.PlainText(st.Block), param: store.PlainText(st.Param), jobVersion: st.JobVersion, retries: int32(st.Retries)}
	if st.State == store.StateRefused {
		r.agree(t)
		s.concludeTo(ctx, &out.Run, r, ending{state: store.StateRefused}, now)
		return
	}
	s.leave(r)
	r.foreign = false
	r.State, r.started, r.Token = store.StateStarted, now, st.Token
	t.owner, t.bootID, t.address = st.Owner, store.PlainText(st.BootID), store.PlainText(st.Address)
	r.agree(t)
	if len(st.Targets) > 0 {
		r.own().sharding = store.Sharding{Index: 0, Total: len(st.Targets)}
	}
	s.place(r, now)
	r.put(&out.Run)
	if len(st.Targets) > 0 {
		out.Siblings = s.broadcast(r, st, now)
	}
	if len(st.Covers) > 0 {
		out.Covered = s.cover(ctx, r.job, st, now)
	}
}

// cover discards the runs whose place a start takes.
func (s *Store) cover(ctx context.Context, j *job, st *store.Start, now int64) (covered []store.Run) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(st.Covers))) {
		r := s.runs.find(id)
		if r == nil || r.job != j || r.State != store.StatePlanned || r.ahead {
			continue
		}
		r.HandleMsg = store.PlainText(st.HandleMsg)
		r.say(st.HandleMsg)
		covered = append(covered, s.conclude(ctx, r, ending{state: store.StateDiscarded}, now))
	}
	return covered
}

// broadcast inserts the parts behind the first.
func (s *Store) broadcast(r *run, st *store.Start, now int64) []store.Run {
	var siblings []store.Run
	for i := 1; i < len(st.Targets); i++ {
		part, as := s.newRun(r.job), r.snapshot()
		as.Created, as.Taken = fromMilli(now), time.Time{}
		as.Sharding.Index = i
		as.Address, as.BootID = store.PlainText(st.Targets[i]), ""
		if i < len(st.TargetBoots) {
			as.BootID = store.PlainText(st.TargetBoots[i])
		}
		part.keep(&as)
		part.take(now)
		s.insertRun(part)
		r.first.parts++
		s.tellInbox(part)
		siblings = append(siblings, part.snapshot())
	}
	return siblings
}

// place lets a started run that is in no set be at its address.
func (s *Store) place(r *run, now int64) {
	r.take(now)
	s.enter(r)
	s.tellInbox(r)
}

// take marks the run as taken if it is addressed to its owner.
func (r *run) take(now int64) {
	if incarnation, attached := store.LocalIncarnation(r.terms.address); attached && incarnation == r.terms.owner {
		r.taken = now
	}
}
