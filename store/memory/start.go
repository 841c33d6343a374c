package memory

import (
	"context"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// Start marks planned runs started or refused.
func (s *Store) Start(ctx context.Context, starts []xxljob.Start) ([]xxljob.Started, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	now := clock()
	out := make([]xxljob.Started, len(starts))
	for i := range starts {
		st := &starts[i]
		r := s.runs.find(st.RunID)
		out[i].Status = s.startable(st, r)
		switch out[i].Status {
		case store.StartOK:
			out[i].Run, out[i].Siblings = s.start(ctx, st, r, now)
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
	return out, nil
}

// startable is the compare of the compare-and-set. The fence comes first: a
// former owner learns that it is one, whatever became of the run.
func (s *Store) startable(st *xxljob.Start, r *run) store.StartStatus {
	sh := s.fenced(st.Shard, st.Epoch)
	switch {
	case sh == nil || r != nil && r.job.shard != sh:
		return store.StartFenced
	case r == nil || r.State != xxljob.StatePlanned || r.ahead:
		return store.StartGone
	}
	j := r.job
	switch {
	case j.removed || j.id != st.JobID || j.version != st.JobVersion || r.heldBack(),
		len(st.Targets) > 0 && r.Sharding.Total > 0:
		return store.StartStale
	case st.State == xxljob.StateStarted && !s.addresseesThere(st):
		return store.StartNoNode
	case behind(st, r) != nil:
		return store.StartBusy
	case st.Serial && st.State == xxljob.StateStarted && j.occupiesAny(st):
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
func behind(st *xxljob.Start, r *run) *run {
	if !st.AfterRetries || st.State != xxljob.StateStarted {
		return nil
	}
	at := toMilli(stored(st.Instant))
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
func (s *Store) addresseesThere(st *xxljob.Start) bool {
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
func (j *job) occupiesAny(st *xxljob.Start) bool {
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

// start starts or refuses the run, which it returns with the further parts of a broadcast.
func (s *Store) start(ctx context.Context, st *xxljob.Start, r *run, now time.Time) (started xxljob.Run, siblings []xxljob.Run) {
	r.say(st.Msg)
	if st.HandleMsg != "" {
		r.HandleMsg = st.HandleMsg
	}
	r.JobVersion, r.Handler, r.Block = st.JobVersion, st.Handler, st.Block
	r.Param, r.Retries = st.Param, st.Retries
	j := r.job
	if r.Type.ScheduleBorn() {
		j.startedFor = max(j.startedFor, toMilli(r.Scheduled))
	}
	if st.State == xxljob.StateRefused {
		return s.conclude(ctx, r, ending{state: xxljob.StateRefused}, toMilli(now)), nil
	}
	s.leave(r)
	r.foreign = false
	r.State, r.Started = xxljob.StateStarted, now
	r.Owner, r.Token, r.BootID = st.Owner, st.Token, st.BootID
	if len(st.Targets) == 0 {
		s.place(r, st.Address, now)
		return r.snapshot(), nil
	}
	r.Sharding = xxljob.Sharding{Index: 0, Total: len(st.Targets)}
	s.place(r, st.Address, now)
	return r.snapshot(), s.broadcast(r, st, now)
}

// broadcast inserts the parts behind the first.
func (s *Store) broadcast(r *run, st *xxljob.Start, now time.Time) []xxljob.Run {
	var siblings []xxljob.Run
	for i := 1; i < len(st.Targets); i++ {
		part := s.runs.add()
		id := part.ID
		part.Run = r.snapshot()
		part.ID, part.Created, part.Taken = id, now, time.Time{}
		part.Sharding.Index = i
		part.Address, part.BootID = st.Targets[i], ""
		if i < len(st.TargetBoots) {
			part.BootID = st.TargetBoots[i]
		}
		part.take(now)
		s.insertRun(r.job, part)
		r.first.parts++
		s.tellInbox(part)
		siblings = append(siblings, part.snapshot())
	}
	return siblings
}

// place gives a started run that is in no set its address.
func (s *Store) place(r *run, address string, now time.Time) {
	r.Address = address
	r.take(now)
	s.enter(r)
	s.tellInbox(r)
}

// take marks the run as taken if it is addressed to its owner.
func (r *run) take(now time.Time) {
	if incarnation, attached := store.LocalIncarnation(r.Address); attached && incarnation == r.Owner {
		r.Taken = now
	}
}
