package xxljob_test

// Runs of which nobody knows whether their executor has them, at executors of this
// module: they are asked about the run itself.

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// bootOfPeer is the boot id of the peers of ours.
const bootOfPeer = "first-boot"

// TestAskedAboutTheRun: what an executor of ours says of a run whose trigger had no answer,
// to a node that has taken the run over, decides.
func TestAskedAboutTheRun(t *testing.T) {
	says := func(state wire.RunState, boot string) wire.Return {
		ret := wire.Failf(wire.MsgBusy) // with other runs of the job
		ret.RunState, ret.BootID = state, boot
		return ret
	}
	for name, c := range map[string]struct {
		answer wire.Return
		soon   xxljob.State // 20 s after the node is silent
		later  xxljob.State // after Dead
		sent   int
		words  string
	}{
		"held":                       {says(wire.RunHeld, bootOfPeer), xxljob.StateDispatched, xxljob.StateDispatched, 1, "it has it"},
		"reported":                   {says(wire.RunReported, bootOfPeer), xxljob.StateLost, xxljob.StateLost, 1, "the store has lost its result"},
		"unknown":                    {says(wire.RunUnknown, bootOfPeer), xxljob.StateDispatched, xxljob.StateDispatched, 2, "was not sent the run"},
		"unknown to another process": {says(wire.RunUnknown, "later-boot"), xxljob.StateStarted, xxljob.StateLost, 1, "did not have the run"},
		"forgotten":                  {says(wire.RunForgotten, bootOfPeer), xxljob.StateStarted, xxljob.StateLost, 1, "did not have the run"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				faults := storetest.Wrap(st)
				triggered, hang := make(chan struct{}), make(chan struct{})
				p := &peer{}
				p.ask = func(r wire.IdleBeatRequest) (wire.Return, error) {
					if p.has(r.LogID) { // by now
						return says(wire.RunHeld, bootOfPeer), nil
					}
					return c.answer, nil
				}
				p.run = func(n int, _ wire.TriggerRequest) (wire.Return, error) {
					if n > 1 {
						return wire.Success(), nil
					}
					<-triggered
					faults.Pause(true) // it dies while it waits for the answer
					<-hang
					return wire.Failf("refused, after all"), nil
				}
				peers := map[string]*peer{at1: p}
				a := newElsewhere(t, faults, xxljob.Config{Node: "a"}, peers)
				a.registerOurs("far", at1, bootOfPeer)
				id := a.trigger(xxljob.Job{App: "far"})
				close(triggered)
				synctest.Wait() // it is sent
				b := newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
				beats := func(d time.Duration) {
					for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Second) {
						b.registerOurs("far", at1, bootOfPeer)
					}
				}
				beats(25 * time.Second)
				b.mustBe(id, c.soon)
				beats(100 * time.Second)
				run := b.mustBe(id, c.later)
				sent := p.sent()
				if len(sent) != c.sent || !strings.Contains(run.TriggerMsg+run.HandleMsg, c.words) {
					t.Errorf("sent %d times: %s %s", len(sent), run.TriggerMsg, run.HandleMsg)
				}
				if c.sent == 2 && (sent[1].StartToken <= sent[0].StartToken || sent[1].LogDateTime != sent[0].LogDateTime) {
					t.Errorf("started as %+v, and again as %+v", sent[0], sent[1])
				}
				// What the first node concludes about its start ends no other.
				faults.Resume()
				close(hang)
				time.Sleep(time.Minute)
				b.mustBe(id, c.later)
			})
		})
	}
}

// realPeer is an executor of this module that schedulers in a bubble reach without a
// network; it may be cut off from them.
type realPeer struct {
	*executor.Executor
	mu      sync.Mutex
	swallow int // triggers to come that never arrive
}

func newRealPeer(t *testing.T, h http.Handler, work executor.Handler) *realPeer {
	t.Helper()
	e, err := executor.New(executor.Config{App: "far", Logger: stage.QuietLog()})
	stage.Must(t, err)
	stage.Must(t, e.Handle("work", work))
	e.Bind(handlerAdmin{t, h})
	t.Cleanup(func() { _ = e.Stop(context.Background()) })
	return &realPeer{Executor: e}
}

func (p *realPeer) Run(ctx context.Context, req wire.TriggerRequest) (wire.Return, error) {
	p.mu.Lock()
	gone := p.swallow > 0
	p.swallow--
	p.mu.Unlock()
	if gone {
		<-ctx.Done()
		return wire.Return{}, errHungUp
	}
	return p.Executor.Run(ctx, req)
}

// boot is the boot id of its process.
func (p *realPeer) boot(t *testing.T) string {
	t.Helper()
	ret, err := p.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 1, LogID: 1})
	stage.Must(t, err)
	return ret.BootID
}

// handlerAdmin delivers results to a scheduler's Handler.
type handlerAdmin struct {
	t *testing.T
	h http.Handler
}

func (a handlerAdmin) Callback(_ context.Context, reqs []wire.CallbackRequest) (wire.Return, error) {
	return stage.Post(a.t, a.h, stage.Token, "", "callback", wire.EncodeCallback(nil, wire.CallbackList, reqs)), nil
}

func (handlerAdmin) Registry(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (handlerAdmin) RegistryRemove(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

// TestBusyWithAnotherRun: a trigger never reaches its executor, which is busy with an
// earlier run of the job when the next owner asks. The run is run all the same, once.
func TestBusyWithAnotherRun(t *testing.T) {
	for _, strategy := range []string{"SERIAL_EXECUTION", "COVER_EARLY"} {
		t.Run(strategy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { busyWithAnother(t, strategy) })
		})
	}
}

func busyWithAnother(t *testing.T, strategy string) {
	st := memory.New()
	faults := storetest.Wrap(st)
	a := newElsewhere(t, faults, xxljob.Config{Node: "a", HTTP: xxljob.HTTPConfig{CallTimeout: time.Second}}, nil)
	b := newElsewhere(t, st, xxljob.Config{Node: "b", HTTP: xxljob.HTTPConfig{CallTimeout: time.Second}}, nil)
	calls := map[int64]int{}
	var mu sync.Mutex
	p := newRealPeer(t, b.admin, func(ctx context.Context, task *executor.Task) error {
		mu.Lock()
		calls[task.RunID]++
		mu.Unlock()
		select {
		case <-time.After(8 * time.Second):
		case <-ctx.Done():
		}
		return context.Cause(ctx)
	})
	for _, s := range []*elsewhere{a, b} {
		xxljob.DialWith(s.Scheduler, func(_, _, _ string) (wire.Executor, error) { return timedPeer{p, time.Second}, nil })
	}
	boot := p.boot(t)
	time.Sleep(10 * time.Second)
	var job xxljob.Job
	for i := 0; ; i++ { // one of a's
		b.registerOurs("far", at1, boot)
		var err error
		job, err = a.AddJob(t.Context(), xxljob.Job{App: "far", Name: strings.Repeat("x", i+1), Handler: "work", Route: "FIRST", Block: strategy})
		stage.Must(t, err)
		first := stage.Trigger(t, a, job)
		time.Sleep(time.Second)
		if strings.HasPrefix(b.mustBe(first, xxljob.StateDispatched).Owner, "a-") {
			break
		}
	}
	p.mu.Lock()
	p.swallow = 1
	p.mu.Unlock()
	second := stage.Trigger(t, a, job)
	time.Sleep(500 * time.Millisecond)
	faults.Pause(true) // a dies
	for range 20 {
		b.registerOurs("far", at1, boot)
		time.Sleep(5 * time.Second)
	}
	run := b.mustBe(second, xxljob.StateSucceeded)
	mu.Lock()
	defer mu.Unlock()
	if calls[second] != 1 {
		t.Errorf("the handler was called %d times: %s", calls[second], run.TriggerMsg)
	}
	faults.Resume()
}

// timedPeer gives each trigger its time, as an HTTP client does.
type timedPeer struct {
	*realPeer
	timeout time.Duration
}

func (p timedPeer) Run(ctx context.Context, req wire.TriggerRequest) (wire.Return, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return p.realPeer.Run(ctx, req)
}
