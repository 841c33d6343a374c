package xxljob_test

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
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
