// Command before is a service with github.com/robfig/cron. The one beside it, after, is
// the same with xxljob.
//
//	cd examples/from-cron
//	go run ./before
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/xxljob/xxljob/examples/from-cron/shop"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	s := &shop.Shop{Say: func(what string) { log.Print(what) }, PricesTake: 15 * time.Second, InvoicesTake: 12 * time.Second}
	if err := run(ctx, s); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

// run runs the jobs until ctx ends, and then waits for those that are running.
func run(ctx context.Context, s *shop.Shop) error {
	c, _, err := schedule(s)
	if err != nil {
		return err
	}
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done()
	return nil
}

// schedule says which jobs there are, and returns their ids by name.
func schedule(s *shop.Shop) (*cron.Cron, map[string]cron.EntryID, error) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		return nil, nil, err
	}
	c := cron.New(cron.WithSeconds(), cron.WithLocation(berlin))
	logger := cron.DefaultLogger
	// Recover is the innermost: outside of SkipIfStillRunning, a panic would leave the job
	// running for ever.
	plain := cron.NewChain(cron.Recover(logger))
	skip := cron.NewChain(cron.SkipIfStillRunning(logger), cron.Recover(logger))
	delay := cron.NewChain(cron.DelayIfStillRunning(logger), cron.Recover(logger))

	ids := map[string]cron.EntryID{}
	for _, j := range []struct {
		name, spec string
		chain      cron.Chain
		work       func(context.Context) error
	}{
		{"poll", "*/5 * * * * *", plain, s.Poll},
		{"prices", "*/10 * * * * *", skip, s.Prices},
		{"invoices", "*/10 * * * * *", delay, s.Invoices},
		{"clean-up", "@every 15s", plain, s.CleanUp},
		{"import", "@every 30s", plain, s.Import},
		{"report", "0 30 4 * * 1-5", plain, s.Report},
	} {
		ids[j.name], err = c.AddJob(j.spec, j.chain.Then(cron.FuncJob(func() {
			if err := j.work(context.Background()); err != nil {
				log.Printf("%s: %v", j.name, err)
			}
		})))
		if err != nil {
			return nil, nil, err
		}
	}
	return c, ids, nil
}
