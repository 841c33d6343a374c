package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// TestWaitForOneself: a handler that waits for its own run, or for one that is queued
// behind it, would hang until its context ends. It is told so at once.
func TestWaitForOneself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := stage.NewWaiting(t)
		job, err := w.AddJob(t.Context(), xxljob.Job{Name: "self", Handler: "work"})
		stage.Must(t, err)
		other, err := w.AddJob(t.Context(), xxljob.Job{Name: "other", Handler: "work"})
		stage.Must(t, err)
		refused := func(what string, ctx context.Context, id int64) {
			t.Helper()
			began := time.Now()
			run, err := w.Wait(ctx, id)
			if !errors.Is(err, xxljob.ErrWaitsForItself) || !strings.Contains(err.Error(), fmt.Sprint("run ", id)) || run.ID != id {
				t.Errorf("%s: run %d, %v", what, run.ID, err)
			}
			if d := time.Since(began); d > 0 {
				t.Errorf("%s: told after %v", what, d)
			}
		}
		w.Do(t, job, func(ctx context.Context, task *xxljob.Task) {
			refused("its own run", ctx, task.RunID)
			derived, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			refused("its own run, a context made of the handler's", derived, task.RunID)
			next := stage.Trigger(t, w, job)
			refused("a run that was just triggered", ctx, next)
			synctest.Wait()
			refused("a run that is queued", ctx, next)
			later, err := w.Trigger(ctx, job.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)})
			stage.Must(t, err)
			refused("a run that is due later", ctx, later[0])
			stage.Must(t, w.Kill(ctx, later[0]))

			for name, id := range map[string]int64{"another job's run": stage.Trigger(t, w, other), "a cancelled run": later[0]} {
				if run, err := w.Wait(ctx, id); err != nil || !run.State.Ended() {
					t.Errorf("%s: %v, %v", name, run.State, err)
				}
			}
			short, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if _, err := w.Wait(short, next); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a context that says nothing of the handler: %v", err)
			}
		})
	})
}

// TestWaitForOneselfWithOnePlace: concurrent runs of which an executor has one at a time queue
// behind each other too.
func TestWaitForOneselfWithOnePlace(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			w := stage.NewWaiting(t)
			job, err := w.AddJob(t.Context(), xxljob.Job{Name: "self", Handler: "work", Block: xxljob.BlockConcurrent, MaxPerExecutor: most})
			stage.Must(t, err)
			w.Do(t, job, func(ctx context.Context, _ *xxljob.Task) {
				next := stage.Trigger(t, w, job)
				short, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				_, err := w.Wait(short, next)
				if most == 1 && !errors.Is(err, xxljob.ErrWaitsForItself) || most == 2 && err != nil {
					t.Errorf("%d at an executor: %v", most, err)
				}
			})
		})
	}
}

// TestWaitForARunThatIsNotBehind: other runs of the same job may be waited for.
func TestWaitForARunThatIsNotBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := stage.NewWaitingNode(t, memory.New(), "a")
		b, err := xxljob.New(w.Store, xxljob.Config{App: "app", Node: "b", Logger: stage.QuietLog()})
		stage.Must(t, err)
		held, freed := make(chan struct{}), make(chan struct{})
		stage.Must(t, b.Handle("work", func(ctx context.Context, _ *xxljob.Task) error { close(held); <-freed; return nil }))
		stage.Must(t, b.Start(context.Background()))
		time.Sleep(10 * time.Second) // until the nodes know each other
		addressOfA, addressOfB := stage.AddressAt(t, w.Store, "a"), stage.AddressAt(t, w.Store, "b")

		job, err := w.AddJob(t.Context(), xxljob.Job{Name: "two nodes", Handler: "work"})
		stage.Must(t, err)
		done := make(chan struct{})
		w.Within <- func(ctx context.Context, _ *xxljob.Task) {
			defer close(done)
			there, err := w.Trigger(ctx, job.ID, xxljob.Trigger{Addresses: []string{addressOfB}})
			stage.Must(t, err)
			go func() { <-held; time.Sleep(time.Second); close(freed) }()
			if run, err := w.Wait(ctx, there[0]); err != nil || run.State != xxljob.StateSucceeded || run.Address != addressOfB {
				t.Errorf("a run at another address: %v at %s, %v", run.State, run.Address, err)
			}
		}
		_, err = w.Trigger(t.Context(), job.ID, xxljob.Trigger{Addresses: []string{addressOfA}})
		stage.Must(t, err)
		<-done
		stage.Must(t, b.Stop(t.Context()))

		for _, strategy := range []string{block.DiscardLater, block.CoverEarly} {
			job, err := w.AddJob(t.Context(), xxljob.Job{Name: strategy, Handler: "work", Block: strategy})
			stage.Must(t, err)
			w.Do(t, job, func(ctx context.Context, _ *xxljob.Task) {
				ids, err := w.Trigger(context.Background(), job.ID, xxljob.Trigger{})
				stage.Must(t, err)
				run, err := w.Wait(ctx, ids[0])
				switch {
				case strategy == block.DiscardLater && (err != nil || run.State != xxljob.StateDiscarded):
					t.Errorf("%s: %v, %v", strategy, run.State, err)
				case strategy == block.CoverEarly && !errors.Is(err, context.Canceled): // the later run ends this one
					t.Errorf("%s: %v, %v", strategy, run.State, err)
				}
			})
		}
	})
}

// TestWaitForOneselfAtAnAttachedExecutor: also for executors of other apps, and not for
// the runs of another scheduler in the process that have the same ids.
func TestWaitForOneselfAtAnAttachedExecutor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := stage.NewWaiting(t), stage.NewWaiting(t)
		own, err := executor.New(executor.Config{App: "attached", Logger: stage.QuietLog()})
		stage.Must(t, err)
		stage.Must(t, own.Handle("work", a.Serve))
		stage.Must(t, a.Attach(own))
		defer own.Stop(context.Background())
		ja, err := a.AddJob(t.Context(), xxljob.Job{App: "attached", Name: "same", Handler: "work"})
		stage.Must(t, err)
		a.Do(t, ja, func(ctx context.Context, task *xxljob.Task) {
			if _, err := a.Wait(ctx, task.RunID); !errors.Is(err, xxljob.ErrWaitsForItself) {
				t.Errorf("its own run: %v", err)
			}
		})

		ja, err = a.AddJob(t.Context(), xxljob.Job{Key: "twin", Name: "twin", Handler: "work"})
		stage.Must(t, err)
		jb, err := b.AddJob(t.Context(), xxljob.Job{Key: "twin", Name: "twin", Handler: "work"})
		stage.Must(t, err)
		if ja.ID != jb.ID {
			t.Fatalf("the jobs have ids %d and %d: nothing to take for each other", ja.ID, jb.ID)
		}
		stage.Trigger(t, b, jb) // a's run before this was one as well
		synctest.Wait()
		a.Do(t, ja, func(ctx context.Context, task *xxljob.Task) {
			b.Within <- func(context.Context, *xxljob.Task) { time.Sleep(time.Second) } // both are under way
			inB := stage.Trigger(t, b, jb)
			synctest.Wait()
			if inB != task.RunID {
				t.Errorf("the runs have ids %d and %d: nothing to take for each other", task.RunID, inB)
			}
			if run, err := b.Wait(ctx, inB); err != nil || run.State != xxljob.StateSucceeded {
				t.Errorf("a run of another scheduler: %v, %v", run.State, err)
			}
		})
	})
}

// selfWait is a job whose handler at one of two nodes triggers the job once more, and
// waits for that run.
type selfWait struct {
	route, block string
	to           string // the addresses of the trigger: "", "own", "other" or "both"
	later        bool   // the run is due in 20 s, when no node has it yet
}

// certain reports whether the run waits for its handler's end wherever it is sent from.
// own is the handler's address, addrs are those of both nodes, and owner is that of the one
// which has the job's shard.
func (c *selfWait) certain(jobID int64, own, owner string, addrs []string) bool {
	builtin := route.Builtin(time.Now, "")[c.route]
	switch {
	case c.block != block.SerialExecution || c.to == "other" || c.route == route.Busyover || builtin == nil:
		return false
	case c.to == "own" || c.route == route.ShardingBroadcast || c.route == route.Nearest && own == owner:
		return true
	case !slices.Contains([]string{route.First, route.Last, route.Failover, route.ConsistentHash}, c.route):
		return false
	}
	chosen, err := builtin.Route(context.Background(), jobID, addrs)
	return err == nil && chosen[0] == own
}

// TestWaitForOneselfOverTwoNodes: a handler is told that it waits for itself where the
// run is certain to come to its own address, and nowhere else: not where it would have
// ended if it had been waited for.
func TestWaitForOneselfOverTwoNodes(t *testing.T) {
	t.Parallel()
	for _, strategy := range append(route.Names(), "USERS") {
		for _, queueing := range block.Names() {
			t.Run(strategy+" "+queueing, func(t *testing.T) {
				if testing.Short() && !slices.Contains([]string{route.First, route.Failover, route.Busyover, route.ShardingBroadcast, "USERS"}, strategy) {
					t.Skip("it chooses one address without asking it, as FIRST does; leave out -short")
				}
				if stage.Detector && strategy != route.First && queueing != block.SerialExecution {
					t.Skip("each of both in all of the other's: the race detector has nothing more to say of it")
				}
				synctest.Test(t, func(t *testing.T) {
					st := memory.New()
					nodes := []*stage.Waiting{stage.NewWaitingNode(t, st, "a"), stage.NewWaitingNode(t, st, "b")}
					time.Sleep(10 * time.Second) // until the nodes know each other
					told, waited := 0, 0
					triggers := []string{"", "", "own", "other", "both"}
					if queueing != block.SerialExecution {
						triggers = triggers[1:3] // nothing is queued
					}
					for i, to := range triggers {
						for _, later := range []bool{false, true} {
							for at := range nodes {
								if waitForOneself(t, nodes, at, selfWait{strategy, queueing, to, later}, fmt.Sprint(i, later, at)) {
									told++
								} else {
									waited++
								}
							}
						}
					}
					if waited == 0 || told == 0 && queueing == block.SerialExecution && strategy != route.Busyover && strategy != "USERS" {
						t.Errorf("told %d times, waited %d times", told, waited)
					}
				})
			})
		}
	}
}

// waitForOneself reports whether the handler at one of the nodes was told that it waits
// for itself.
func waitForOneself(t *testing.T, nodes []*stage.Waiting, at int, c selfWait, name string) (told bool) {
	t.Helper()
	names := []string{"a", "b"}
	own, other := stage.AddressAt(t, nodes[at].Store, names[at]), stage.AddressAt(t, nodes[at].Store, names[1-at])
	both := []string{own, other}
	slices.Sort(both)
	job, err := nodes[at].AddJob(t.Context(), xxljob.Job{Name: name, Handler: "work", Route: c.route, Block: c.block})
	stage.Must(t, err)
	again := xxljob.Trigger{Addresses: map[string][]string{"": nil, "own": {own}, "other": {other}, "both": both}[c.to]}
	begun, done := make(chan context.Context), make(chan struct{})
	nodes[at].Within <- func(ctx context.Context, _ *xxljob.Task) { begun <- ctx; <-done }
	defer func() { close(done); time.Sleep(30 * time.Second) }() // until what is due later is over
	_, err = nodes[at].Trigger(t.Context(), job.ID, xxljob.Trigger{Addresses: []string{own}})
	stage.Must(t, err)
	ctx := <-begun // from here on handlers do nothing
	if c.later {
		again.At = time.Now().Add(20 * time.Second)
	}
	ids, err := nodes[at].Trigger(context.Background(), job.ID, again)
	stage.Must(t, err)
	short, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	began := time.Now()
	_, err = nodes[at].Wait(short, ids[0])
	told = errors.Is(err, xxljob.ErrWaitsForItself)
	if d := time.Since(began); told && d > 0 {
		t.Errorf("%+v at %s: told after %v", c, own, d)
	}
	if want := c.certain(job.ID, own, ownerOf(t, nodes[at].Store, job), both); told != want {
		t.Errorf("%+v at %s: told %v, want %v", c, own, told, want)
	}
	long, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if run, err := nodes[at].Wait(long, ids[0]); told && err == nil {
		t.Errorf("%+v at %s: told that it waits for itself, but it is %v at %s", c, own, run.State, run.Address)
	}
	return told
}

// ownerOf is the address of the node that has the shard of a job.
func ownerOf(t *testing.T, st xxljob.Store, job xxljob.Job) string {
	t.Helper()
	for _, sh := range stage.Observe(t, st).Shards {
		if sh.ID == job.Shard {
			return store.LocalAddress(sh.Owner)
		}
	}
	t.Fatalf("there is no shard %d", job.Shard)
	return ""
}
