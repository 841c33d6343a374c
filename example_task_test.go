package xxljob_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

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
