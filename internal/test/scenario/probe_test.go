package scenario_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// probedExecutor answers probes and runs as a test says.
type probedExecutor struct {
	stage.SlowExecutor
	beat, idle func() (wire.Return, error)
	run        func() (wire.Return, error)
}

func (e *probedExecutor) Beat(ctx context.Context) (wire.Return, error) {
	if e.beat != nil {
		return e.beat()
	}
	return e.SlowExecutor.Beat(ctx)
}

func (e *probedExecutor) IdleBeat(ctx context.Context, r wire.IdleBeatRequest) (wire.Return, error) {
	if e.idle != nil {
		return e.idle()
	}
	return e.SlowExecutor.IdleBeat(ctx, r)
}

func (e *probedExecutor) Run(ctx context.Context, r wire.TriggerRequest) (wire.Return, error) {
	if e.run != nil {
		return e.run()
	}
	return e.SlowExecutor.Run(ctx, r)
}

// TestProbingRoutes gives the app two addresses, the first of which is not well:
// the run goes to the other one, within the deadline of a probe, and its
// trigger_msg says why.
func TestProbingRoutes(t *testing.T) {
	t.Parallel()
	hang := func() (wire.Return, error) { time.Sleep(time.Hour); return wire.Success(), nil }
	refuse := func() (wire.Return, error) { return wire.Failf("not today"), nil }
	fail := func() (wire.Return, error) { return wire.Return{}, errors.New("wire cut") }
	for _, c := range []struct {
		route, name string
		damage      func(*probedExecutor)
		within      time.Duration
		says        string
	}{
		{"FAILOVER", "the beat hangs", func(e *probedExecutor) { e.beat = hang }, 3 * time.Second, "no answer within 3s"},
		{"FAILOVER", "the beat is refused", func(e *probedExecutor) { e.beat = refuse }, 0, "not today"},
		{"FAILOVER", "the beat fails", func(e *probedExecutor) { e.beat = fail }, 0, "wire cut"},
		{"FAILOVER", "the run is refused", func(e *probedExecutor) { e.run = refuse }, 0, "not today; next: "},
		{"FAILOVER", "the run fails", func(e *probedExecutor) { e.run = fail }, 0, "wire cut; next: "},
		{"BUSYOVER", "the idle beat hangs", func(e *probedExecutor) { e.idle = hang }, 3 * time.Second, "no answer within 3s"},
		{"BUSYOVER", "the job is busy there", func(e *probedExecutor) { e.idle = refuse }, 0, "not today"},
		{"BUSYOVER", "the run is refused", func(e *probedExecutor) { e.run = refuse }, 0, "not today; next: "},
	} {
		t.Run(c.route+"/"+c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &stage.Journal{}
				one := func(c *xxljob.Config) { c.Cluster.Shards = 1 } // node a has it: it came first
				a := stage.StartNode(t, st, "a", j, one)
				time.Sleep(time.Second)
				b := stage.StartNode(t, st, "b", j, one)
				none := func(wire.TriggerRequest) time.Duration { return 0 }
				bad, good := &probedExecutor{SlowExecutor: stage.SlowExecutor{Of: "x", Delay: none}}, &probedExecutor{SlowExecutor: stage.SlowExecutor{Of: "x", Delay: none}}
				c.damage(bad)
				stage.Must(t, a.Attach(bad))
				stage.Must(t, b.Attach(good))
				time.Sleep(5 * time.Second)
				job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "probed", Handler: "work", Route: c.route})
				stage.Must(t, err)
				for range 3 {
					began := time.Now()
					ids, err := b.Trigger(t.Context(), job.ID, xxljob.Trigger{})
					stage.Must(t, err)
					run, err := b.Wait(t.Context(), ids[0])
					stage.Must(t, err)
					if run.State != xxljob.StateSucceeded || time.Since(began) > c.within || !strings.Contains(run.TriggerMsg, c.says) {
						t.Errorf("%v after %v\n%s", run.State, time.Since(began), run.TriggerMsg)
					}
					time.Sleep(10 * time.Second)
				}
				stage.Stop(t, a, b)
				time.Sleep(2 * time.Hour) // what hung lets go
			})
		})
	}
}

// TestNoAddressAnswersWell refuses the run, with what each address answered.
func TestNoAddressAnswersWell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := stage.StartNode(t, st, "a", &stage.Journal{})
		e := &probedExecutor{SlowExecutor: stage.SlowExecutor{Of: "x"}, beat: func() (wire.Return, error) { return wire.Failf("out to lunch"), nil }}
		stage.Must(t, n.Attach(e))
		job, err := n.AddJob(t.Context(), xxljob.Job{App: "x", Name: "probed", Handler: "work", Route: "FAILOVER"})
		stage.Must(t, err)
		for i := range 3 {
			ids, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
			run, err := n.Wait(t.Context(), ids[0])
			stage.Must(t, err)
			if run.State != xxljob.StateRefused || !strings.Contains(run.TriggerMsg, "out to lunch") {
				t.Errorf("%d: %v\n%s", i, run.State, run.TriggerMsg)
			}
		}
		stage.Stop(t, n)
	})
}

// TestManyProbedRuns triggers a FAILOVER job many times at once: the probes are
// shared, and all runs go on when the answers are in.
func TestManyProbedRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j)
		beats := 0
		e := &probedExecutor{SlowExecutor: stage.SlowExecutor{Of: "x", Delay: func(wire.TriggerRequest) time.Duration { return 0 }}}
		e.beat = func() (wire.Return, error) { beats++; time.Sleep(50 * time.Millisecond); return wire.Success(), nil }
		stage.Must(t, n.Attach(e))
		job, err := n.AddJob(t.Context(), xxljob.Job{App: "x", Name: "probed", Handler: "work", Route: "FAILOVER", Block: "DISCARD_LATER"})
		stage.Must(t, err)
		var ids []int64
		for range 200 {
			id, err := n.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
			ids = append(ids, id...)
		}
		began := time.Now()
		for _, id := range ids {
			run, err := n.Wait(t.Context(), id)
			stage.Must(t, err)
			if run.State != xxljob.StateSucceeded {
				t.Errorf("%v\n%s", run.State, run.TriggerMsg)
			}
		}
		stage.Stop(t, n)
		if beats != 1 {
			t.Errorf("%d beats were sent for 200 runs in %v, want 1", beats, time.Since(began))
		}
	})
}

var _ xxljob.Executor = (*probedExecutor)(nil)
