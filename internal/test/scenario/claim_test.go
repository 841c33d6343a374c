package scenario_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// lateClaim is a store in which a claim can hang until its caller gives it up, and take
// effect later still, as a commit does that hangs in a database. Up to then the rows
// of its jobs are locked: other claims pass them over.
type lateClaim struct {
	st     xxljob.Store
	mu     sync.Mutex
	after  time.Duration  // guarded by mu: of the next claim; 0 for one that does not hang
	locked map[int64]bool // guarded by mu: jobs
	landed time.Time      // guarded by mu
	runs   []xxljob.Run   // guarded by mu: what landed
}

func (s *lateClaim) Claim(ctx context.Context, dst []xxljob.Run, plans []store.Plan) ([]xxljob.Run, error) {
	s.mu.Lock()
	after := s.after
	s.after = 0
	free := slices.DeleteFunc(slices.Clone(plans), func(p store.Plan) bool { return s.locked[p.JobID] })
	for _, p := range free {
		s.locked[p.JobID] = after > 0
	}
	s.mu.Unlock()
	if after == 0 {
		return s.st.Claim(ctx, dst, free)
	}
	<-ctx.Done()
	time.AfterFunc(after, func() { // with the caller's memory, which it has given up with the call
		runs, _ := s.st.Claim(context.Background(), dst, plans)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs, s.landed = runs, time.Now()
		clear(s.locked)
	})
	return nil, ctx.Err()
}

// TestLateClaim: what a claim plans that takes effect after its error is started once each,
// at its time or soon after it has landed, also where nothing else calls for a scan.
func TestLateClaim(t *testing.T) {
	t.Parallel()
	for _, cron := range []string{"* * * * * ?", "0 * * * * ?"} {
		for _, after := range []time.Duration{10 * time.Millisecond, time.Second, 8 * time.Second, 25 * time.Second} {
			t.Run(fmt.Sprint(cron, " ", after, " after its error"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { landLate(t, xxljob.Cron(cron), after) })
			})
		}
	}
}

func landLate(t *testing.T, schedule xxljob.Schedule, after time.Duration) {
	claims, j := &lateClaim{st: stage.PlannedApart{Store: memory.New()}, locked: map[int64]bool{}}, &stage.Journal{}
	st := bent.StoreOf(claims.st, claims)
	a := stage.StartNode(t, st, "a", j)
	time.Sleep(time.Second)
	for i := range 5 {
		_, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "work", Schedule: schedule})
		stage.Must(t, err)
	}
	time.Sleep(20 * time.Second)
	claims.mu.Lock()
	claims.after = after
	claims.mu.Unlock()
	time.Sleep(3 * time.Minute)
	stage.Stop(t, a)
	starts := map[int64][]time.Time{}
	for _, s := range j.All() {
		starts[s.Run] = append(starts[s.Run], s.At)
	}
	for _, r := range stage.AllRuns(t, st) {
		if n := len(starts[r.ID]); r.State == xxljob.StateSucceeded && n != 1 || r.State == xxljob.StatePlanned && r.Scheduled.Before(time.Now()) {
			t.Errorf("run %d of %v is %v and was started %d times", r.ID, r.Scheduled, r.State, n)
		}
	}
	claims.mu.Lock()
	defer claims.mu.Unlock()
	if len(claims.runs) == 0 {
		t.Error("the claim planned nothing when it landed")
	}
	for _, r := range claims.runs {
		soon := r.Scheduled
		if landed := claims.landed.Add(3 * time.Second); soon.Before(landed) {
			soon = landed
		}
		if at := starts[r.ID]; len(at) != 1 || at[0].Before(r.Scheduled) || at[0].After(soon) {
			t.Errorf("run %d of %v, landed at %v, was started at %v", r.ID, r.Scheduled, claims.landed, at)
		}
	}
}
