package xxljob_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

func oneShard(c *xxljob.Config) { c.Cluster.Shards = 1 }

// pair starts two nodes, of which a, the first, owns the one shard.
func pair(t *testing.T, st xxljob.Store, j *journal) (a, b *node) {
	t.Helper()
	a = startNode(t, st, "a", j, oneShard)
	time.Sleep(time.Second)
	return a, startNode(t, st, "b", j, oneShard)
}

func onlyJ(t *testing.T, st xxljob.Store, route string) xxljob.Job {
	t.Helper()
	job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: "k", Name: "job", Handler: "work", Route: route,
		Block: "SERIAL_EXECUTION", GlueType: "BEAN", Misfire: "DO_NOTHING", Schedule: xxljob.Cron("* * * * * ?"), Next: time.Now().Add(time.Second)}, nil)
	must(t, err)
	return job
}

// TestDrainingNodeIsNotChosen: A node that stops is not chosen by the others while it drains.
func TestDrainingNodeIsNotChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a, b := startNode(t, st, "a", j, oneShard), startNode(t, st, "b", j, oneShard)
		must(t, b.Handle("long", func(context.Context, *xxljob.Task) error { time.Sleep(40 * time.Second); return nil }))
		time.Sleep(5 * time.Second)
		long, err := a.AddJob(t.Context(), xxljob.Job{Name: "long", Handler: "long"})
		must(t, err)
		_, err = a.Trigger(t.Context(), long.ID, xxljob.Trigger{})
		must(t, err)
		_, err = a.AddJob(t.Context(), xxljob.Job{Name: "round", Handler: "work", Route: "ROUND", Schedule: xxljob.Cron("* * * * * ?")})
		must(t, err)
		time.Sleep(5 * time.Second)
		stop(t, b) // drains for 35 s
		time.Sleep(5 * time.Second)
		worst := time.Duration(0)
		for _, s := range j.all() {
			worst = max(worst, s.at.Sub(s.due))
		}
		if worst > time.Second {
			t.Errorf("a run was late by %v", worst)
		}
		stop(t, a)
	})
}

// TestSlowBeats: beats take 1.9 s, so that the trust runs out before each answer and is back with it:
// the loops go on each time.
func TestSlowBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a, b := startNode(t, st, "a", j, oneShard), startNode(t, st, "b", j, oneShard)
		time.Sleep(5 * time.Second)
		job := onlyJ(t, st, "NEAREST")
		from := time.Now()
		time.Sleep(10 * time.Second)
		a.faults.Inject("Beat", storetest.Fault{Delay: 1900 * time.Millisecond})
		time.Sleep(120 * time.Second)
		to := time.Now()
		time.Sleep(time.Second)
		got := auditSeconds(t, st, j, []xxljob.Job{job}, from, to)
		if got.lost+got.skipped > 0 {
			t.Errorf("audit: %+v", got)
		}
		stop(t, a, b)
	})
}

// TestShardsTakenUnknown: TakeShards took effect and returned an error: the node finds the shards in the next
// view, and looks into them.
func TestShardsTakenUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		must(t, st.SetShards(t.Context(), 32))
		job := onlyJ(t, st, "NEAREST")
		from := time.Now()
		n := &node{name: "a", faults: storetest.Wrap(st)}
		n.faults.Inject("TakeShards", storetest.Fault{After: true, Calls: 1})
		s, err := xxljob.New(n.faults, xxljob.Config{App: "app", Node: "a", Logger: quietLog()})
		must(t, err)
		n.Scheduler = s
		must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error { j.note("a", task); return nil }))
		must(t, s.Start(t.Context()))
		time.Sleep(60 * time.Second)
		if got := auditSeconds(t, st, j, []xxljob.Job{job}, from, time.Now().Add(-time.Second)); got.lost > 0 {
			t.Errorf("audit: %+v", got)
		}
		stop(t, n)
	})
}

// TestSameNodeTwice: two nodes of one name do not bury and revive each other without a pause.
func TestSameNodeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		var calls atomic.Int64
		a := startNode(t, spinGuard{st, &calls}, "same", j)
		time.Sleep(time.Second)
		b := startNode(t, spinGuard{st, &calls}, "same", j)
		time.Sleep(10 * time.Second)
		if n := calls.Load(); n > 1000 {
			t.Errorf("%d beats and burials in 10 s", n)
		}
		stop(t, a, b)
	})
}

// spinGuard counts beats, and slows them down once there are far too many, so
// that the bubble's time moves on.
type spinGuard struct {
	xxljob.Store
	n *atomic.Int64
}

func (s spinGuard) Beat(ctx context.Context, inc string, at []xxljob.Attachment) (xxljob.View, error) {
	if s.n.Add(1) > 10_000 {
		time.Sleep(time.Second)
	}
	return s.Store.Beat(ctx, inc, at)
}

// TestMaxHoldLeavesNoGap: Shards that LeaseMaxHold makes a node give up do not lie idle.
func TestMaxHoldLeavesNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		hold := func(c *xxljob.Config) { c.Cluster.Shards = 4; c.Cluster.LeaseMaxHold = 20 * time.Second }
		a := startNode(t, st, "a", j, hold)
		time.Sleep(7 * time.Second)
		b := startNode(t, st, "b", j, hold)
		time.Sleep(5 * time.Second)
		addSeconds(t, a, 8)
		time.Sleep(3 * time.Minute)
		worst := time.Duration(0)
		for _, s := range j.all() {
			worst = max(worst, s.at.Sub(s.due))
		}
		if worst > time.Second {
			t.Errorf("a run was late by %v", worst)
		}
		stop(t, a, b)
	})
}

// slowBeats is a store at which a beat is done a tenth of a second after it was sent,
// even where nobody waits for it any more.
type slowBeats struct{ neverAlone }

func (s slowBeats) Beat(ctx context.Context, inc string, attached []xxljob.Attachment) (xxljob.View, error) {
	type answer struct {
		view xxljob.View
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		time.Sleep(100 * time.Millisecond)
		v, err := s.neverAlone.Beat(context.WithoutCancel(ctx), inc, attached)
		answers <- answer{v, err}
	}()
	select {
	case a := <-answers:
		return a.view, a.err
	case <-ctx.Done():
		return xxljob.View{}, ctx.Err()
	}
}

// TestBeatUnderWayAtStop: a beat that is under way when its node leaves does not bring
// it back: the others would wait for LostAfter.
func TestBeatUnderWayAtStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := slowBeats{neverAlone{memory.New()}}
		n := startNode(t, st, "a", &journal{})
		time.Sleep(10 * time.Second)
		stop(t, n) // which beats, and has nothing to wait for
		time.Sleep(time.Second)
		view, err := st.Join(t.Context(), xxljob.Node{ID: "b", Incarnation: "b-1"})
		must(t, err)
		for _, other := range view.Nodes {
			if other.ID == "a" && !other.Left {
				t.Errorf("the node that was stopped has not left: %+v", other)
			}
		}
	})
}
