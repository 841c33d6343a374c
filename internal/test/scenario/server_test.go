package scenario_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// failedOver is a store behind a server that another one may take the place of. Planned
// runs that only the later one has, for it has forgotten their starts, are in no Scan.
type failedOver struct {
	st     xxljob.Store
	mu     *sync.Mutex
	server *string
}

func (s failedOver) Beat(ctx context.Context, inc string, attached []store.Attachment) (xxljob.View, error) {
	v, err := s.st.Beat(ctx, inc, attached)
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Server = *s.server
	return v, err
}

func (s failedOver) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	res, err := s.st.Scan(ctx, dst, q)
	res.Runs = nil
	return res, err
}

// TestAnotherServer: when a standby that was behind is promoted, runs whose starts it has
// forgotten are planned again, in shards that do not change their owner. They are read as
// soon as another server answers.
func TestAnotherServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := "first"
		over, j := failedOver{stage.NeverAlone{Store: memory.New()}, &sync.Mutex{}, &first}, &stage.Journal{}
		st := bent.StoreOf(over.st, over)
		n := stage.StartNode(t, st, "a", j)
		time.Sleep(time.Second)
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work"})
		stage.Must(t, err)
		run, err := st.AddRun(t.Context(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		time.Sleep(20 * time.Second)
		if r, err := st.Run(t.Context(), run.ID); err != nil || r.State != xxljob.StatePlanned {
			t.Errorf("before the fail-over: %v %v", r.State, err)
		}
		over.mu.Lock()
		*over.server = "second"
		over.mu.Unlock()
		time.Sleep(2 * time.Second)
		if r, err := st.Run(t.Context(), run.ID); err != nil || r.State != xxljob.StateSucceeded {
			t.Errorf("after the fail-over: %v %v", r.State, err)
		}
		stage.Stop(t, n)
	})
}

// resurrected is a store that has one job removed for a while, and then has forgotten that.
type resurrected struct {
	st      xxljob.Store
	removed *atomic.Int64 // the job's ID; zero for none
}

func (s resurrected) Jobs(ctx context.Context, f xxljob.JobFilter) ([]xxljob.Job, error) {
	jobs, err := s.st.Jobs(ctx, f)
	return slices.DeleteFunc(jobs, func(j xxljob.Job) bool { return j.ID == s.removed.Load() }), err
}

func (s resurrected) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	if len(starts) > 0 && starts[0].JobID == s.removed.Load() {
		answers := make([]store.Started, len(starts))
		for i := range answers {
			answers[i].Status = store.StartStale
		}
		return answers, nil
	}
	return s.st.Start(ctx, dst, starts)
}

// TestARemovedJobThatIsThereAgain: a database that failed over has forgotten that a job was
// removed. Its runs are planned again, and started.
func TestARemovedJobThatIsThereAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		again, j := resurrected{stage.NeverAlone{Store: memory.New()}, &atomic.Int64{}}, &stage.Journal{}
		st := bent.StoreOf(again.st, again)
		n := stage.StartNode(t, st, "a", j)
		job, err := n.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
		stage.Must(t, err)
		time.Sleep(10 * time.Second)
		again.removed.Store(job.ID)
		time.Sleep(3 * time.Second)
		again.removed.Store(0)
		time.Sleep(10 * time.Second) // what was planned before is dropped; what is planned from here on is not
		from := time.Now()
		time.Sleep(20 * time.Second)
		stage.Stop(t, n)
		started := 0
		for _, s := range j.All() {
			started += stage.One(!s.Due.Before(from))
		}
		if started < 19 {
			t.Errorf("%d runs in 20 s, want one a second", started)
		}
	})
}
