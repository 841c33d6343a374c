// Command after is the service of the command before, with xxljob.
//
//	cd examples/from-cron
//	go run ./after
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/examples/from-cron/shop"
	"github.com/xxljob/xxljob/store/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	s := &shop.Shop{Say: func(what string) { log.Print(what) }, PricesTake: 15 * time.Second, InvoicesTake: 12 * time.Second}
	// With store/postgres in place of the memory, replicas share the jobs, and what was
	// missed while none was there is made up for.
	if err := run(ctx, memory.New(), s); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

// run runs the jobs until ctx ends, and then waits for those that are running, for
// Config.StopGrace at most.
func run(ctx context.Context, store xxljob.Store, s *shop.Shop) error {
	scheduler, err := schedule(ctx, store, s)
	if err != nil {
		return err
	}
	return scheduler.Run(ctx)
}

// schedule says which jobs there are. All replicas do the same.
func schedule(ctx context.Context, store xxljob.Store, s *shop.Shop) (xxljob.Scheduler, error) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		return nil, err
	}
	scheduler, err := xxljob.New(store, xxljob.Config{App: "shop", Location: berlin})
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		scheduler.Handle("poll", handler(s.Poll)),
		scheduler.Handle("prices", handler(s.Prices)),
		scheduler.Handle("invoices", handler(s.Invoices)),
		scheduler.Handle("cleanUp", handler(s.CleanUp)),
		scheduler.Handle("import", handler(s.Import)),
		scheduler.Handle("report", handler(s.Report)),
	)
	if err != nil {
		return nil, err
	}
	_, err = scheduler.EnsureJobs(ctx, "", []xxljob.Job{ // "" is Config.App
		{Key: "poll", Name: "Ask for orders", Handler: "poll", Schedule: xxljob.Cron("*/5 * * * * ?")},
		{Key: "prices", Name: "Fetch prices", Handler: "prices", Schedule: xxljob.Cron("*/10 * * * * ?"), Block: xxljob.BlockDiscardLater},
		{Key: "invoices", Name: "Write invoices", Handler: "invoices", Schedule: xxljob.Cron("*/10 * * * * ?"), Block: xxljob.BlockSerial},
		{Key: "clean-up", Name: "Clean up", Handler: "cleanUp", Schedule: xxljob.FixedRate(15 * time.Second)},
		{Key: "import", Name: "Import", Handler: "import", Schedule: xxljob.FixedRate(30 * time.Second)},
		{Key: "report", Name: "Report", Handler: "report", Schedule: xxljob.Crontab("30 4 * * 1-5"), Misfire: xxljob.MisfireFireOnceNow},
	}, xxljob.EnsureOptions{Prune: true})
	return scheduler, err
}

// handler is a job whose code needs nothing of its run. An error fails the run.
func handler(work func(context.Context) error) xxljob.Handler {
	return func(ctx context.Context, _ *xxljob.Task) error { return work(ctx) }
}
