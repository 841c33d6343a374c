package xxljob_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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

// lateAnswer takes its time with the first trigger, and notes when each came.
type lateAnswer struct {
	mu   sync.Mutex
	ids  []int64
	at   []time.Duration
	from time.Time
}

const late = 3500 * time.Millisecond

func (l *lateAnswer) takes(req wire.TriggerRequest) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids, l.at = append(l.ids, req.LogID), append(l.at, time.Since(l.from).Round(100*time.Millisecond))
	if len(l.ids) == 1 {
		return late
	}
	return 0
}

func (l *lateAnswer) run(_ int, req wire.TriggerRequest) (wire.Return, error) {
	time.Sleep(l.takes(req))
	return wire.Success(), nil
}

// TestOrderWhateverTheBlockStrategy: the runs of a job are sent to an executor that is not ours one
// after the other, each when the one before was answered; those of a concurrent one are not.
func TestOrderWhateverTheBlockStrategy(t *testing.T) {
	for _, block := range []string{xxljob.BlockSerial, xxljob.BlockDiscardLater, xxljob.BlockCoverEarly, xxljob.BlockConcurrent} {
		for _, where := range []string{"remote", "attached", "broadcast"} {
			switch {
			case where == "attached" && block == xxljob.BlockSerial: // the next waits for the end of the one before
				continue
			case where != "attached" && block == xxljob.BlockConcurrent: // others' executors are not sent such runs
				continue
			}
			t.Run(block+" "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := &lateAnswer{from: time.Now()}
					p := &peer{run: l.run}
					peers := map[string]*peer{at1: p}
					job := xxljob.Job{App: "far", Name: "job", Handler: "work", Route: "FIRST", Block: block}
					addresses := []string{at1}
					if where == "broadcast" { // the late answer is that of its second part
						peers = map[string]*peer{at1: {}, at2: p}
						addresses, job.Route = []string{at1, at2}, "SHARDING_BROADCAST"
					}
					e := newElsewhere(t, memory.New(), xxljob.Config{}, peers)
					if where == "attached" {
						stage.Must(t, e.Attach(&stage.SlowExecutor{Of: "far", Delay: l.takes}))
					} else {
						stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: addresses}))
					}
					job, err := e.AddJob(t.Context(), job)
					stage.Must(t, err)
					for range 3 {
						stage.Trigger(t, e, job)
						time.Sleep(700 * time.Millisecond)
					}
					time.Sleep(time.Minute)
					l.mu.Lock()
					defer l.mu.Unlock()
					want := []time.Duration{0, late, late}
					if block == xxljob.BlockConcurrent {
						want = []time.Duration{0, 700 * time.Millisecond, 1400 * time.Millisecond}
					}
					if !slices.Equal(l.at, want) || !slices.IsSorted(l.ids) {
						t.Errorf("runs %v were sent at %v, want them in order at %v", l.ids, l.at, want)
					}
				})
			})
		}
	}
}

// TestOvertakenIsOnlyAskedAbout: the next run may go where the one before is in doubt, which is not
// sent again from then on.
func TestOvertakenIsOnlyAskedAbout(t *testing.T) {
	for _, block := range []string{xxljob.BlockSerial, xxljob.BlockDiscardLater, xxljob.BlockCoverEarly, xxljob.BlockConcurrent} {
		t.Run(block, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peer{
					run: func(n int, _ wire.TriggerRequest) (wire.Return, error) {
						if n == 1 {
							return wire.Return{}, errHungUp
						}
						return wire.Success(), nil
					},
					ask: func(r wire.IdleBeatRequest) (wire.Return, error) {
						return wire.Return{Code: wire.CodeFail, Msg: wire.MsgBusy, RunState: wire.RunHeld, BootID: "boot-1"}, nil
					},
				}
				e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
				e.registerOurs("far", at1, "boot-1")
				job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "job", Handler: "work", Route: "FIRST", Block: block})
				stage.Must(t, err)
				first := stage.Trigger(t, e, job)
				time.Sleep(500 * time.Millisecond)
				second := stage.Trigger(t, e, job)
				time.Sleep(time.Minute)
				var sent []int64
				for _, r := range p.sent() {
					sent = append(sent, r.LogID)
				}
				want := []int64{first, second}
				if block == xxljob.BlockConcurrent { // no order to keep
					want = append(want, first)
				} else if p.about == 0 {
					t.Error("nobody asked about the first")
				}
				if !slices.Equal(sent, want) {
					t.Errorf("sent %v, want %v", sent, want)
				}
				e.mustBe(first, xxljob.StateDispatched)
				e.mustBe(second, xxljob.StateDispatched)
			})
		})
	}
}

// endsOf are the states in which the runs of a job have ended, in the order of when they were due.
func endsOf(t *testing.T, st xxljob.Store, job xxljob.Job) (ends []string, runs []xxljob.Run) {
	t.Helper()
	runs, err := st.Runs(t.Context(), xxljob.RunFilter{JobID: job.ID, Limit: 1000})
	stage.Must(t, err)
	slices.SortFunc(runs, func(a, b xxljob.Run) int { return cmp.Or(a.Scheduled.Compare(b.Scheduled), cmp.Compare(a.ID, b.ID)) })
	for _, r := range runs {
		end := r.State.String()
		if r.State == xxljob.StateDiscarded {
			end += " " + r.HandleMsg
			if trigger, handle := r.State.Codes(); trigger != 500 || handle != 0 {
				t.Errorf("the codes of a covered run are %d, %d", trigger, handle)
			}
		}
		ends = append(ends, end)
	}
	return ends, runs
}

const covered = "discarded block strategy effect：Cover Early"

// TestTheLatestCoverStarts: of several runs of a schedule that are due and go to one address the
// latest starts, and takes the place of the others; nothing follows these. Runs that somebody has
// asked for are each started, in order.
func TestTheLatestCoverStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lateAnswer{from: time.Now()}
		st := memory.New()
		e := newElsewhere(t, st, xxljob.Config{}, map[string]*peer{at1: {run: l.run}})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		job, err := e.AddJob(t.Context(), xxljob.Job{
			App: "far", Name: "job", Handler: "work", Route: "FIRST", Block: xxljob.BlockCoverEarly, Retries: 3,
			Schedule: xxljob.FixedRate(time.Second),
		})
		stage.Must(t, err)
		time.Sleep(2500 * time.Millisecond) // the first two are due, and the first is not answered
		asked := stage.Trigger(t, e, job)
		time.Sleep(2300 * time.Millisecond)
		stage.Must(t, e.StopJob(t.Context(), job.ID))
		time.Sleep(time.Minute)
		ends, runs := endsOf(t, st, job)
		want := []string{"dispatched", covered, "dispatched", covered, "dispatched"}
		if len(ends) < len(want) || !slices.Equal(ends[:len(want)], want) || runs[2].ID != asked {
			t.Fatalf("the runs are %q, want %q, the third of them asked for", ends, want)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if wantIDs := []int64{runs[0].ID, asked, runs[4].ID}; !slices.Equal(l.ids, wantIDs) {
			t.Errorf("sent %v at %v, want %v", l.ids, l.at, wantIDs)
		}
	})
}

// TestTheLatestCoverOfThoseThatWaitForAPlace: so it is at an attached executor, whose places are
// taken for a while.
func TestTheLatestCoverOfThoseThatWaitForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j)
		busy := &places{SlowExecutor: stage.SlowExecutor{Of: "few", Delay: func(r wire.TriggerRequest) time.Duration {
			if r.ExecutorParams == "long" {
				return 4500 * time.Millisecond
			}
			return 0
		}}}
		stage.Must(t, n.Attach(busy))
		long, err := n.AddJob(t.Context(), xxljob.Job{App: "few", Name: "long", Handler: "work", Param: "long"})
		stage.Must(t, err)
		job, err := n.AddJob(t.Context(), xxljob.Job{App: "few", Name: "covers", Handler: "work", Block: xxljob.BlockCoverEarly, Schedule: xxljob.FixedRate(time.Second)})
		stage.Must(t, err)
		stage.Trigger(t, n, long)
		time.Sleep(4900 * time.Millisecond)
		stage.Must(t, n.StopJob(t.Context(), job.ID))
		time.Sleep(10 * time.Second)
		if ends, _ := endsOf(t, st, job); len(ends) < 4 || !slices.Equal(ends[:4], []string{covered, covered, covered, "succeeded"}) {
			t.Errorf("the runs are %q", ends)
		}
		stage.Stop(t, n)
	})
}

// places is an executor with one place.
type places struct{ stage.SlowExecutor }

func (*places) Places() int { return 1 }

// TestCoversOfAStartWithoutAnAnswer: where it is not known whether a start has taken effect which has
// taken the place of others, the store is asked: the latest goes on, sent once, and who waits for the
// others hears of their end.
func TestCoversOfAStartWithoutAnAnswer(t *testing.T) {
	for name, fault := range map[string]storetest.Fault{"took effect": {After: true, Calls: 1}, "did not": {Before: true, Calls: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, st := &lateAnswer{from: time.Now()}, memory.New()
				faults := storetest.Wrap(st)
				e := newElsewhere(t, faults, xxljob.Config{}, map[string]*peer{at1: {run: l.run}})
				stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
				job, err := e.AddJob(t.Context(), xxljob.Job{
					App: "far", Name: "job", Handler: "work", Route: "FIRST", Block: xxljob.BlockCoverEarly,
					Schedule: xxljob.FixedRate(time.Second), MaxRuns: 4,
				})
				stage.Must(t, err)
				time.Sleep(4200 * time.Millisecond) // all are due, and the first is not answered
				faults.Inject("Start", fault)
				_, runs := endsOf(t, st, job)
				waited := make(chan xxljob.Run, 1)
				go func() {
					r, _ := e.Wait(t.Context(), runs[1].ID)
					waited <- r
				}()
				time.Sleep(10 * time.Second)
				ends, runs := endsOf(t, st, job)
				if want := []string{"dispatched", covered, covered, "dispatched"}; !slices.Equal(ends, want) {
					t.Fatalf("the runs are %q, want %q", ends, want)
				}
				select {
				case r := <-waited:
					if r.State != xxljob.StateDiscarded {
						t.Errorf("who waits for the second is told that it is %v", r.State)
					}
				default:
					t.Error("who waits for the second hears nothing")
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				if want := []int64{runs[0].ID, runs[3].ID}; !slices.Equal(l.ids, want) {
					t.Errorf("sent %v at %v, want %v", l.ids, l.at, want)
				}
			})
		})
	}
}

// TestCoversOutliveTheirOwner: what waits, planned, behind a call that is not answered when its node
// dies is brought together by the next owner: the latest of each job starts, once, and has taken the
// place of those before it.
func TestCoversOutliveTheirOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sent := map[int64][]int64{}
		run := func(_ int, req wire.TriggerRequest) (wire.Return, error) {
			mu.Lock()
			first := len(sent[req.JobID]) == 0
			sent[req.JobID] = append(sent[req.JobID], req.LogID)
			mu.Unlock()
			if first {
				time.Sleep(2900 * time.Millisecond)
			}
			return wire.Success(), nil
		}
		st := memory.New()
		faults, peers := storetest.Wrap(st), map[string]*peer{at1: {run: run}}
		newElsewhere(t, faults, xxljob.Config{Node: "a"}, peers)
		b := newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
		stage.Must(t, b.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		time.Sleep(10 * time.Second)
		var jobs []xxljob.Job
		for i := range 12 {
			job, err := b.AddJob(t.Context(), xxljob.Job{
				App: "far", Name: fmt.Sprint("job ", i), Handler: "work", Route: "FIRST", Block: xxljob.BlockCoverEarly,
				Schedule: xxljob.FixedRate(time.Second), MaxRuns: 3,
			})
			stage.Must(t, err)
			jobs = append(jobs, job)
		}
		time.Sleep(3500 * time.Millisecond)
		faults.Pause(true) // the node dies: two runs of each job are planned
		orphans := 0
		for _, sh := range stage.Observe(t, st).Shards {
			for _, job := range jobs {
				if ends, _ := endsOf(t, st, job); sh.ID == job.Shard && strings.HasPrefix(sh.Owner, "a-") && slices.Equal(ends[1:], []string{"planned", "planned"}) {
					orphans++
				}
			}
		}
		if orphans < 3 {
			t.Fatalf("%d jobs of the dead node have runs that wait", orphans)
		}
		time.Sleep(20 * time.Second)
		for _, job := range jobs {
			ends, runs := endsOf(t, st, job)
			if len(ends) != 3 || !slices.Equal(ends[1:], []string{covered, "dispatched"}) {
				t.Errorf("the runs of job %d are %q", job.ID, ends)
				continue
			}
			mu.Lock()
			n := 0
			for _, id := range sent[job.ID] {
				n += stage.One(id == runs[2].ID)
				if id == runs[1].ID {
					t.Errorf("run %d was sent, and the later %d has taken its place", id, runs[2].ID)
				}
			}
			mu.Unlock()
			if n != 1 {
				t.Errorf("run %d was sent %d times", runs[2].ID, n)
			}
		}
		faults.Resume()
	})
}

// TestAnExecutorRefusesAnEarlierCover: it has a later run of the job already, from a former owner. The
// earlier one ends as covered: nothing follows it, and the later one goes on.
func TestAnExecutorRefusesAnEarlierCover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		e := newElsewhere(t, st, xxljob.Config{}, nil)
		far, err := executor.New(executor.Config{App: "far", Logger: stage.QuietLog()})
		stage.Must(t, err)
		var called []int64
		stage.Must(t, far.Handle("work", func(ctx context.Context, k *xxljob.Task) error {
			called = append(called, k.RunID)
			<-ctx.Done()
			return ctx.Err()
		}))
		stage.Must(t, e.Attach(far))
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "job", Handler: "work", Block: xxljob.BlockCoverEarly, Retries: 3})
		stage.Must(t, err)
		now := time.Now()
		later := wire.TriggerRequest{JobID: job.ID, LogID: 1 << 50, LogDateTime: now.UnixMilli(), DueAt: now.Add(time.Hour).UnixMilli(),
			ExecutorHandler: "work", ExecutorBlockStrategy: xxljob.BlockCoverEarly, BroadcastTotal: 1}
		if ret, _ := far.Run(t.Context(), later); !ret.OK() {
			t.Fatalf("the later run: %+v", ret)
		}
		stage.Trigger(t, e, job)
		time.Sleep(time.Minute)
		if ends, _ := endsOf(t, st, job); !slices.Equal(ends, []string{covered}) {
			t.Errorf("the runs are %q", ends)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = far.Stop(soon) // which nobody lets deliver the result of the later run
		synctest.Wait()
		if !slices.Equal(called, []int64{later.LogID}) {
			t.Errorf("handlers were called for %v", called)
		}
	})
}
