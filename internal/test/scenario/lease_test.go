package scenario_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

func oneShard(c *xxljob.Config) { c.Cluster.Shards = 1 }

// pair starts two nodes, of which a, the first, owns the one shard.
func pair(t *testing.T, st xxljob.Store, j *stage.Journal) (a, b *stage.Node) {
	t.Helper()
	a = stage.StartNode(t, st, "a", j, oneShard)
	time.Sleep(time.Second)
	return a, stage.StartNode(t, st, "b", j, oneShard)
}

func onlyJ(t *testing.T, st xxljob.Store, route string) xxljob.Job {
	t.Helper()
	job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: "k", Name: "job", Handler: "work", Route: route,
		Block: "SERIAL_EXECUTION", GlueType: "BEAN", Misfire: "DO_NOTHING", Schedule: xxljob.Cron("* * * * * ?"), Next: time.Now().Add(time.Second)}, nil)
	stage.Must(t, err)
	return job
}

// TestDrainingNodeIsNotChosen: A node that stops is not chosen by the others while it drains.
func TestDrainingNodeIsNotChosen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j, oneShard), stage.StartNode(t, st, "b", j, oneShard)
		stage.Must(t, b.Handle("long", func(context.Context, *xxljob.Task) error { time.Sleep(40 * time.Second); return nil }))
		time.Sleep(5 * time.Second)
		long, err := a.AddJob(t.Context(), xxljob.Job{Name: "long", Handler: "long"})
		stage.Must(t, err)
		_, err = a.Trigger(t.Context(), long.ID, xxljob.Trigger{})
		stage.Must(t, err)
		_, err = a.AddJob(t.Context(), xxljob.Job{Name: "round", Handler: "work", Route: "ROUND", Schedule: xxljob.Cron("* * * * * ?")})
		stage.Must(t, err)
		time.Sleep(5 * time.Second)
		stage.Stop(t, b) // drains for 35 s
		time.Sleep(5 * time.Second)
		worst := time.Duration(0)
		for _, s := range j.All() {
			worst = max(worst, s.At.Sub(s.Due))
		}
		if worst > time.Second {
			t.Errorf("a run was late by %v", worst)
		}
		stage.Stop(t, a)
	})
}

// TestSlowBeats: beats take 1.9 s, so that the trust runs out before each answer and is back with it:
// the loops go on each time.
func TestSlowBeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j, oneShard), stage.StartNode(t, st, "b", j, oneShard)
		time.Sleep(5 * time.Second)
		job := onlyJ(t, st, "NEAREST")
		from := time.Now()
		time.Sleep(10 * time.Second)
		a.Faults.Inject("Beat", storetest.Fault{Delay: 1900 * time.Millisecond})
		time.Sleep(120 * time.Second)
		to := time.Now()
		time.Sleep(time.Second)
		got := stage.AuditSeconds(t, st, j, []xxljob.Job{job}, from, to)
		if got.Lost+got.Skipped > 0 {
			t.Errorf("audit: %+v", got)
		}
		stage.Stop(t, a, b)
	})
}

// TestShardsTakenUnknown: TakeShards took effect and returned an error: the node finds the shards in the next
// view, and looks into them.
func TestShardsTakenUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		stage.Must(t, st.SetShards(t.Context(), 32))
		job := onlyJ(t, st, "NEAREST")
		from := time.Now()
		n := &stage.Node{Name: "a", Faults: storetest.Wrap(st)}
		n.Faults.Inject("TakeShards", storetest.Fault{After: true, Calls: 1})
		s, err := xxljob.New(n.Faults, xxljob.Config{App: "app", Node: "a", Logger: stage.QuietLog()})
		stage.Must(t, err)
		n.Scheduler = s
		stage.Must(t, s.Handle("work", func(_ context.Context, task *xxljob.Task) error { j.Note("a", task); return nil }))
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(60 * time.Second)
		if got := stage.AuditSeconds(t, st, j, []xxljob.Job{job}, from, time.Now().Add(-time.Second)); got.Lost > 0 {
			t.Errorf("audit: %+v", got)
		}
		stage.Stop(t, n)
	})
}

// TestSameNodeTwice: two nodes of one name do not bury and revive each other without a pause.
func TestSameNodeTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		var calls atomic.Int64
		a := stage.StartNode(t, bent.StoreOf(st, spinGuard{st, &calls}), "same", j)
		time.Sleep(time.Second)
		b := stage.StartNode(t, bent.StoreOf(st, spinGuard{st, &calls}), "same", j)
		time.Sleep(10 * time.Second)
		if n := calls.Load(); n > 1000 {
			t.Errorf("%d beats and burials in 10 s", n)
		}
		stage.Stop(t, a, b)
	})
}

// spinGuard counts beats, and slows them down once there are far too many, so
// that the bubble's time moves on.
type spinGuard struct {
	st xxljob.Store
	n  *atomic.Int64
}

func (s spinGuard) Beat(ctx context.Context, inc string, at []store.Attachment) (xxljob.View, error) {
	if s.n.Add(1) > 10_000 {
		time.Sleep(time.Second)
	}
	return s.st.Beat(ctx, inc, at)
}

// TestMaxHoldLeavesNoGap: Shards that LeaseMaxHold makes a node give up do not lie idle.
func TestMaxHoldLeavesNoGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		hold := func(c *xxljob.Config) { c.Cluster.Shards = 4; c.Cluster.LeaseMaxHold = 20 * time.Second }
		a := stage.StartNode(t, st, "a", j, hold)
		time.Sleep(7 * time.Second)
		b := stage.StartNode(t, st, "b", j, hold)
		time.Sleep(5 * time.Second)
		stage.AddSeconds(t, a, 8)
		time.Sleep(3 * time.Minute)
		worst := time.Duration(0)
		for _, s := range j.All() {
			worst = max(worst, s.At.Sub(s.Due))
		}
		if worst > time.Second {
			t.Errorf("a run was late by %v", worst)
		}
		stage.Stop(t, a, b)
	})
}

// slowBeats is a store at which a beat is done a tenth of a second after it was sent,
// even where nobody waits for it any more.
type slowBeats struct{ st xxljob.Store }

func (s slowBeats) Beat(ctx context.Context, inc string, attached []store.Attachment) (xxljob.View, error) {
	type answer struct {
		view xxljob.View
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		time.Sleep(100 * time.Millisecond)
		v, err := s.st.Beat(context.WithoutCancel(ctx), inc, attached)
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never := stage.NeverAlone{Store: memory.New()}
		st := bent.StoreOf(never, slowBeats{never})
		n := stage.StartNode(t, st, "a", &stage.Journal{})
		time.Sleep(10 * time.Second)
		stage.Stop(t, n) // which beats, and has nothing to wait for
		time.Sleep(time.Second)
		view, err := st.Join(t.Context(), xxljob.Node{ID: "b", Incarnation: "b-1"})
		stage.Must(t, err)
		for _, other := range view.Nodes {
			if other.ID == "a" && !other.Left {
				t.Errorf("the node that was stopped has not left: %+v", other)
			}
		}
	})
}
