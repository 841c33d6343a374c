package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// fixture is a store whose shards all belong to one node.
type fixture struct {
	testing.TB
	*memory.Store
	node   string
	shards []store.Shard
	token  int64
}

const here = "node-1"

func newFixture(t testing.TB, shards int, opts ...memory.Option) *fixture {
	f := &fixture{TB: t, Store: memory.New(opts...), node: here}
	f.must(f.SetShards(t.Context(), shards))
	v, err := f.Join(t.Context(), store.Node{ID: "node", Incarnation: here})
	f.must(err)
	f.shards, err = f.TakeShards(t.Context(), here, v.Shards)
	f.must(err)
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// job adds an enabled job that is due now.
func (f *fixture) job(change ...func(*store.Job)) store.Job {
	f.Helper()
	j := store.Job{App: "app", Name: "job", Handler: "h", Schedule: schedule.FixedRate(time.Second), Next: time.Now()}
	for _, c := range change {
		c(&j)
	}
	j, err := f.AddJob(f.Context(), j, nil)
	f.must(err)
	return j
}

// plan claims the next n instants of the job, a second apart.
func (f *fixture) plan(j store.Job, n int) store.Plan {
	p := store.Plan{
		JobID: j.ID, Shard: j.Shard, Epoch: f.shards[j.Shard].Epoch, Version: j.Version,
		Due: j.Next, Next: j.Next.Add(time.Duration(n) * time.Second),
	}
	for i := range n {
		p.Runs = append(p.Runs, store.NewRun{At: j.Next.Add(time.Duration(i) * time.Second), Type: store.TriggerFixRate})
	}
	return p
}

func (f *fixture) start(r store.Run, address string, version int64) store.Start {
	f.token++
	return store.Start{
		RunID: r.ID, JobID: r.JobID, Shard: r.Shard, Epoch: f.shards[r.Shard].Epoch, JobVersion: version,
		State: store.StateStarted, Owner: f.node, Token: f.token, Address: address, Handler: "h",
	}
}

// started adds a run of the job and starts it at the address.
func (f *fixture) started(job int64, address string) store.Run {
	f.Helper()
	r, err := f.AddRun(f.Context(), job, store.Trigger{})
	f.must(err)
	j, err := f.Job(f.Context(), job)
	f.must(err)
	out, err := f.Start(f.Context(), nil, []store.Start{f.start(r, address, j.Version)})
	f.must(err)
	if out[0].Status != store.StartOK {
		f.Fatalf("start: status %d", out[0].Status)
	}
	return out[0].Run
}

// success is the result of a run at an attached address.
func success(r store.Run) store.Result {
	incarnation, _ := store.LocalIncarnation(r.Address)
	return store.Result{RunID: r.ID, Incarnation: incarnation, Token: r.Token, State: store.StateSucceeded}
}

// done makes n runs of the job that succeeded, and returns their ids.
func (f *fixture) done(job int64, n int) []int64 {
	f.Helper()
	var ids []int64
	for range n {
		r := f.started(job, store.LocalAddress(f.node))
		_, err := f.Finish(f.Context(), nil, []store.Result{success(r)})
		f.must(err)
		ids = append(ids, r.ID)
	}
	return ids
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
