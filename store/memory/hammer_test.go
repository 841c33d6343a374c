package memory_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// hammer is one node that does whatever it may, in no sensible order.
type hammer struct {
	*fixture
	rnd *rand.Rand
}

// TestHammer lets nodes fight over one small store and then counts.
func TestHammer(t *testing.T) {
	f := newFixture(t, 3, memory.Retain(20, 150), memory.RetainBytes(4<<10))
	const steps = 4000
	var wg sync.WaitGroup
	for i, node := range []string{here, "node-2", "node-3"} {
		h := &hammer{rnd: rand.New(rand.NewPCG(3, uint64(i)))}
		h.fixture = &fixture{TB: t, Store: f.Store, node: node, token: int64(i) << 32}
		wg.Go(func() {
			for range steps {
				h.step()
			}
		})
	}
	wg.Wait()
	f.must(f.Consistent())
	if runs, _, _ := f.Sizes(); runs == 0 || len(f.list(store.RunFilter{Limit: 10_000})) != runs {
		t.Errorf("%d runs, and a list of others", runs)
	}
}

func (h *hammer) step() {
	ctx := h.Context()
	switch h.rnd.IntN(15) {
	case 0:
		if h.rnd.IntN(3) == 0 {
			h.addJob()
		}
	case 1:
		_, _ = h.EditJob(ctx, h.someJob(), h.someEdit())
	case 2:
		if h.rnd.IntN(8) == 0 {
			_ = h.RemoveJob(ctx, h.someJob())
		}
	case 3:
		_, _ = h.AddRun(ctx, h.someJob(), store.Trigger{Key: []string{"", "a", "b"}[h.rnd.IntN(3)]})
	case 4, 5:
		h.scan()
	case 6, 7:
		h.startPlanned()
	case 8:
		h.inbox()
	case 9:
		h.finish()
	case 10:
		h.settle()
	case 11:
		h.takeOver()
	case 12:
		_, _ = h.Kill(ctx, h.someRun().ID, "x")
	case 13:
		_ = h.Sweep(ctx, h.shards)
		_, _ = h.Jobs(ctx, store.JobFilter{App: "app", Stopped: new(false)})
	case 14:
		now := time.Now()
		_, _ = h.AddAhead(ctx, h.someJob(), store.Trigger{At: now.Add(time.Second), Key: []string{"", "a", "b"}[h.rnd.IntN(3)]}, now.Add(time.Duration(h.rnd.IntN(20))*time.Millisecond))
		_, _ = h.MoveAhead(ctx, store.AheadQuery{Shards: h.shards, Before: now, Limit: 1 + h.rnd.IntN(3)})
	}
}

func (h *hammer) someSchedule(j *store.Job) {
	j.Key = []string{"", "a", "b", "c"}[h.rnd.IntN(4)]
	if h.rnd.IntN(2) == 0 {
		j.Schedule = schedule.FixedDelay(time.Millisecond)
	}
}

// addJob adds a job, if there is none with its key.
func (h *hammer) addJob() {
	j := store.Job{App: "app", Name: "job", Handler: "h", Schedule: schedule.FixedRate(time.Second), Next: time.Now()}
	h.someSchedule(&j)
	if _, err := h.AddJob(h.Context(), j, nil); err != nil && !errors.Is(err, store.ErrDuplicateKey) {
		h.Error(err)
	}
}

func (h *hammer) someEdit() store.Edit {
	stop := h.rnd.IntN(3) == 0
	key := []string{"a", "b", "c", "d"}[h.rnd.IntN(4)]
	return store.Edit{Verb: "update",
		Change: func(j *store.Job) (bool, error) {
			j.Stopped, j.Key = stop, key
			return h.rnd.IntN(2) == 0, nil
		},
		Next: func(store.Job, time.Time, time.Time) (time.Time, error) { return time.Now(), nil }}
}

// someJob is a job that was there a moment ago, or none.
func (h *hammer) someJob() int64 {
	jobs, _ := h.Jobs(h.Context(), store.JobFilter{App: "app", Limit: 20})
	if len(jobs) == 0 {
		return 1
	}
	return jobs[h.rnd.IntN(len(jobs))].ID
}

func (h *hammer) someRun() store.Run {
	runs, _ := h.Runs(h.Context(), store.RunFilter{JobID: h.someJob(), Limit: 20})
	if len(runs) == 0 {
		return store.Run{}
	}
	return runs[h.rnd.IntN(len(runs))]
}

func (h *hammer) someAddress() string {
	return []string{"http://far", store.LocalAddress(here), store.LocalAddress("node-2"), store.LocalAddress("node-3")}[h.rnd.IntN(4)]
}

func (h *hammer) scan() {
	res, err := h.Scan(h.Context(), store.ScanResult{}, store.ScanQuery{Shards: h.shards, Before: time.Now(), Jobs: 5, Runs: 5})
	if err != nil {
		h.Error(err)
	}
	var plans []store.Plan
	for _, d := range res.Jobs {
		p := h.plan(d.Job, 1+h.rnd.IntN(3))
		p.Next = d.Next.Add(time.Millisecond)
		if d.Schedule.Type == schedule.TypeFixDelay {
			p.Wait, p.Runs = true, p.Runs[:1]
		}
		if h.rnd.IntN(4) == 0 {
			p.Next = time.Time{}
		}
		if h.rnd.IntN(4) == 0 {
			p.Runs[0].State = store.StateSkipped
		}
		if h.rnd.IntN(20) == 0 {
			p.Stop = "hammered"
		}
		plans = append(plans, p)
	}
	_, _ = h.Claim(h.Context(), nil, plans)
}

// plan overrides the fixture's, for a node may own only some shards.
func (h *hammer) plan(j store.Job, n int) store.Plan {
	own := &fixture{TB: h, shards: make([]store.Shard, 3)}
	for _, sh := range h.shards {
		own.shards[sh.ID] = sh
	}
	return own.plan(j, n)
}

func (h *hammer) epoch(shard int) int64 {
	for _, sh := range h.shards {
		if sh.ID == shard {
			return sh.Epoch
		}
	}
	return -1
}

func (h *hammer) startPlanned() {
	runs, err := h.Planned(h.Context(), nil, store.PlannedQuery{Shards: h.shards, Before: time.Now().Add(time.Hour), Limit: 6})
	if err != nil {
		h.Error(err)
	}
	var starts []store.Start
	for _, r := range runs {
		j, _ := h.Job(h.Context(), r.JobID)
		h.token++
		s := store.Start{
			RunID: r.ID, JobID: r.JobID, Shard: r.Shard, Epoch: h.epoch(r.Shard), JobVersion: j.Version,
			State: store.StateStarted, Owner: h.node, Token: h.token, Address: h.someAddress(), Serial: h.rnd.IntN(2) == 0,
		}
		switch h.rnd.IntN(5) {
		case 0:
			s.State = store.StateRefused
		case 1:
			s.Targets = []string{s.Address, h.someAddress(), h.someAddress()}
		}
		starts = append(starts, s)
	}
	_, _ = h.Start(h.Context(), nil, starts)
}

func (h *hammer) inbox() {
	in, err := h.Inbox(h.Context(), h.node, 0, 5)
	if err != nil {
		h.Error(err)
	}
	_, _ = h.Take(h.Context(), h.node, idsOf(in.Runs))
	for _, r := range in.Kills {
		_, _ = h.Finish(h.Context(), nil, []store.Result{success(r)})
	}
}

func (h *hammer) finish() {
	r := h.someRun()
	switch h.rnd.IntN(3) {
	case 0:
		_, _ = h.Finish(h.Context(), nil, []store.Result{success(r)})
	case 1:
		_, _ = h.Finish(h.Context(), nil, []store.Result{{RunID: r.ID, State: store.StateFailed}})
	case 2:
		_, _ = h.Dispatched(h.Context(), []store.Dispatch{{RunID: r.ID, Owner: r.Owner, Token: r.Token, Msg: "sent"}})
	}
}

func (h *hammer) settle() {
	runs, err := h.StartedBy(h.Context(), h.shards, []string{here, "node-2", "node-3"}, 0, 3)
	if err != nil {
		h.Error(err)
	}
	for _, r := range runs {
		if h.rnd.IntN(2) == 0 {
			_, _ = h.Readdress(h.Context(), store.Readdress{RunID: r.ID, Shard: r.Shard, Epoch: h.epoch(r.Shard), Owner: r.Owner, Token: r.Token, Address: h.someAddress()})
			continue
		}
		h.token++
		_, _ = h.Settle(h.Context(), []store.Verdict{{
			RunID: r.ID, Shard: r.Shard, Epoch: h.epoch(r.Shard), Owner: r.Owner, Token: r.Token, Taken: !r.Taken.IsZero(),
			To: []store.State{store.StatePlanned, store.StateLost, store.StateStarted}[h.rnd.IntN(3)], NewOwner: h.node, NewToken: h.token,
		}})
	}
}

func (h *hammer) takeOver() {
	v, err := h.Beat(h.Context(), h.node, nil)
	if err != nil {
		h.Error(err)
	}
	switch h.rnd.IntN(12) {
	case 0:
		_ = h.Leave(h.Context(), h.node)
	case 1:
		_ = h.ReleaseShards(h.Context(), h.node, v.Shards)
	case 2:
		_ = h.Bury(h.Context(), v.Nodes[0].Incarnation, v.Nodes[0].Beats)
	}
	i := h.rnd.IntN(len(v.Shards))
	if _, err := h.TakeShards(h.Context(), h.node, v.Shards[i:i+1]); err != nil {
		h.Error(err)
	}
	v, _ = h.Beat(h.Context(), h.node, nil)
	h.shards = nil
	for _, sh := range v.Shards {
		if sh.Owner == h.node {
			h.shards = append(h.shards, sh)
		}
	}
}
