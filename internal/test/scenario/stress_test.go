package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// TestStress starts, stops and uses several schedulers of one store from many
// goroutines at once. Every error is one that the calls promise, and no
// goroutine is left.
func TestStress(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var group sync.WaitGroup
		for i := range 6 {
			group.Go(func() { stressOne(t, st, rand.New(rand.NewPCG(seed, uint64(i)))) })
		}
		group.Wait()
	})
}

// stressOne makes schedulers one after the other, and for each four goroutines
// that do as they please with it.
func stressOne(t *testing.T, st xxljob.Store, r *rand.Rand) {
	for range 4 {
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Error(err)
			return
		}
		if err := s.Handle("work", func(context.Context, *xxljob.Task) error { time.Sleep(300 * time.Millisecond); return nil }); err != nil {
			t.Error(err)
		}
		var group sync.WaitGroup
		for range 4 {
			dice := rand.New(rand.NewPCG(r.Uint64(), 1))
			group.Go(func() {
				for range 60 {
					time.Sleep(time.Duration(dice.IntN(200)) * time.Millisecond)
					stressCall(t, s, dice)
				}
			})
		}
		group.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := s.Stop(ctx); err != nil {
			t.Errorf("Stop: %v", err)
		}
		cancel()
	}
}

func stressCall(t *testing.T, s xxljob.Scheduler, dice *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	id := 1 + dice.Int64N(40)
	job := xxljob.Job{Name: fmt.Sprint("job ", dice.IntN(20)), Handler: "work", Schedule: xxljob.FixedRate(time.Second)}
	var err error
	switch dice.IntN(12) {
	case 0, 1:
		err = s.Start(context.Background())
	case 2:
		if dice.IntN(10) == 0 {
			err = s.Stop(ctx)
		}
	case 3:
		_, err = s.AddJob(ctx, job)
	case 4:
		_, err = s.EnsureJob(ctx, job)
	case 5:
		_, err = s.EnsureJobs(ctx, "", []xxljob.Job{job}, xxljob.EnsureOptions{Prune: true})
	case 6:
		err = s.StopJob(ctx, id)
	case 7:
		err = s.StartJob(ctx, id)
	case 8:
		job.ID = id
		_, err = s.UpdateJob(ctx, job)
	case 9:
		if dice.IntN(5) == 0 {
			err = s.RemoveJob(ctx, id)
		}
	case 10:
		var ids []int64
		if ids, err = s.Trigger(ctx, id, xxljob.Trigger{}); err == nil && dice.IntN(2) == 0 {
			err = s.Kill(ctx, ids[0])
		}
		if err == nil {
			_, err = s.Wait(ctx, ids[0])
		}
	case 11:
		err = s.Ready()
	}
	for _, fine := range []error{nil, xxljob.ErrStarted, xxljob.ErrStopped, xxljob.ErrNotReady, xxljob.ErrNotFound, xxljob.ErrDuplicateKey, xxljob.ErrManual, context.DeadlineExceeded} {
		if errors.Is(err, fine) {
			return
		}
	}
	t.Errorf("unexpected: %v", err)
}
