package xxljob_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// A handler knows its job, and says how far it is. Lists of runs show both.
func ExampleTask_Progress() {
	ctx := context.Background()
	st := memory.New()
	s, err := xxljob.New(st, xxljob.Config{App: "shop", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	s.Handle("import", func(ctx context.Context, t *xxljob.Task) error {
		fmt.Printf("%s of %s, by %s\n", t.JobName, t.App, t.TriggerType)
		files := []string{"customers.csv", "orders.csv", "prices.csv", "stock.csv"}
		for i, file := range files {
			t.Progress(i*100/len(files), file) // in a loop too: at most one write a second
		}
		t.Progress(100, "4 files")
		return nil
	})
	job, err := s.EnsureJob(ctx, xxljob.Job{Key: "import", Name: "Nightly import", Handler: "import"})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(ctx); err != nil {
		log.Fatal(err)
	}
	id, err := s.TriggerOne(ctx, job.Job.ID, xxljob.Trigger{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Wait(ctx, id); err != nil {
		log.Fatal(err)
	}
	runs, err := st.Runs(ctx, xxljob.RunFilter{App: "shop"})
	for _, r := range runs {
		fmt.Printf("%s: %d %%, %s\n", r.JobName, r.Progress, r.ProgressText)
	}
	fmt.Println(err)
	s.Stop(ctx)
	// Output:
	// Nightly import of shop, by MANUAL
	// Nightly import: 100 %, 4 files
	// <nil>
}

// errClosed and errGone are what a shop's API answers.
var (
	errClosed = errors.New("the shop is closed")
	errGone   = errors.New("the shop is gone")
)

// charge is a handler that says what is to follow: tried again in five minutes, never again, or
// not yet. Any other error is tried again after the pauses of its job.
func charge(_ context.Context, t *xxljob.Task) error {
	switch t.Param {
	case "closed":
		return xxljob.RetryAfter(5*time.Minute, errClosed)
	case "gone":
		return xxljob.Permanent(errGone)
	case "not booked yet":
		return xxljob.Snooze(time.Minute)
	}
	return nil
}

// A failed run is tried again, each attempt as a run of its own.
func ExampleJob_retries() {
	ctx := context.Background()
	st := memory.New()
	s, err := xxljob.New(st, xxljob.Config{App: "shop", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	s.Handle("charge", charge)
	job, err := s.EnsureJob(ctx, xxljob.Job{
		Key: "charge", Name: "Charge an order", Handler: "charge",
		Retries: 8, RetryBackoff: xxljob.Backoff{First: 2 * time.Second, Max: 10 * time.Minute, Jitter: 20},
		OnLost: xxljob.OnLostRerun, // charging twice is no harm here
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(ctx); err != nil {
		log.Fatal(err)
	}
	for _, param := range []string{"closed", "gone", "not booked yet"} {
		id, err := s.TriggerOne(ctx, job.Job.ID, xxljob.Trigger{Param: &param})
		if err != nil {
			log.Fatal(err)
		}
		s.Wait(ctx, id)
		runs, err := st.Tree(ctx, id)
		for _, r := range runs {
			fmt.Printf("%s: attempt %d is %s\n", param, r.Attempt, r.State)
		}
		if s.Kill(ctx, id) != nil || err != nil { // ends what waits to be tried again
			log.Fatal(err)
		}
	}
	s.Stop(ctx)
	// Output:
	// closed: attempt 0 is failed
	// closed: attempt 1 is planned
	// gone: attempt 0 is failed
	// not booked yet: attempt 0 is snoozed
	// not booked yet: attempt 0 is planned
}
