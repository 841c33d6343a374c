package xxljob_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// The first program of the README, line by line (see readme_test.go).
func Example() {
	ctx, done := context.WithCancel(context.Background())
	s, err := xxljob.New(memory.New(), xxljob.Config{App: "demo"})
	if err != nil {
		log.Fatal(err)
	}
	s.Handle("greet", func(ctx context.Context, t *xxljob.Task) error {
		defer done() // a service would go on
		_, err := fmt.Println("hello,", t.Param)
		return err
	})
	s.EnsureJob(ctx, xxljob.Job{Key: "greeting", Name: "Greeting", Handler: "greet", Param: "world", Schedule: xxljob.FixedDelay(time.Second)})
	s.Run(ctx)
	// Output: hello, world
}

func ExampleCron() {
	// Quartz's dialect: the last day of each month at 18:30, Berlin time.
	s := xxljob.Cron("0 30 18 L * ?").In("Europe/Berlin")
	next, err := s.Next(time.Date(2027, 1, 31, 17, 30, 0, 0, time.UTC))
	fmt.Println(next, err)

	// Five fields are crontab's, and the error says so.
	_, err = xxljob.Cron("30 18 * * *").Next(time.Now())
	fmt.Println(strings.HasSuffix(err.Error(), "use xxljob.Crontab"))
	// Output:
	// 2027-02-28 17:30:00 +0000 UTC <nil>
	// true
}

func ExampleSchedule_Upcoming() {
	// 02:30 does not exist on 28 March 2027 in Berlin: the clocks go from 02:00
	// to 03:00. The run comes at the first instant after the gap.
	s := xxljob.Crontab("30 2 * * *").In("Europe/Berlin")
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		log.Fatal(err)
	}
	times, err := s.Upcoming(time.Date(2027, 3, 27, 0, 0, 0, 0, berlin), 3)
	for _, t := range times {
		fmt.Println(t.In(berlin))
	}
	fmt.Println(err)
	// Output:
	// 2027-03-27 02:30:00 +0100 CET
	// 2027-03-28 03:00:00 +0200 CEST
	// 2027-03-29 02:30:00 +0200 CEST
	// <nil>
}

func ExampleSchedule_Describe() {
	for _, s := range []xxljob.Schedule{
		xxljob.Cron("0 0/15 9-17 ? * MON-FRI").In("Asia/Shanghai"),
		xxljob.Crontab("@daily"),
		xxljob.FixedRate(90 * time.Second),
		xxljob.FixedDelay(time.Minute),
		xxljob.At(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)),
		xxljob.Manual(),
	} {
		fmt.Println(s.Describe())
	}
	// Output:
	// every 15 minutes of hours 9 to 17 on Monday to Friday (Asia/Shanghai)
	// at 00:00 every day (UTC)
	// every 1 minute 30 seconds
	// 1 minute after the end of the previous run
	// once at 2027-01-01T00:00:00Z
	// only when triggered
}

func ExampleScheduler_EnsureJobs() {
	ctx := context.Background()
	s, err := xxljob.New(memory.New(), xxljob.Config{App: "billing"})
	if err != nil {
		log.Fatal(err)
	}
	handler := func(context.Context, *xxljob.Task) error { return nil }
	if err := s.Handle("work", handler); err != nil {
		log.Fatal(err)
	}
	// What a release of the program wants, as each of its replicas says it at its start.
	ensure := func(build int64, jobs ...xxljob.Job) {
		done, err := s.EnsureJobs(ctx, "billing", jobs, xxljob.EnsureOptions{Prune: true, Generation: build})
		if err != nil {
			log.Fatal(err)
		}
		for _, d := range done {
			fmt.Println(d.Job.Key, d.Outcome)
		}
	}
	invoices := xxljob.Job{Key: "invoices", Name: "Invoices", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")}
	reminders := xxljob.Job{Key: "reminders", Name: "Reminders", Handler: "work", Schedule: xxljob.Crontab("@hourly")}
	ensure(41, invoices, reminders)
	ensure(41, invoices, reminders) // another replica

	later := invoices
	later.Schedule = xxljob.Cron("0 0 4 * * ?")
	ensure(42, later)               // a new release, without reminders
	ensure(41, invoices, reminders) // a replica of the former one restarts
	// Output:
	// invoices created
	// reminders created
	// invoices unchanged
	// reminders unchanged
	// invoices changed
	// invoices superseded
	// reminders superseded
}

// A release is taken back: the former one is started again, and its list applies at once.
// (deploy is in docs/guide.md, see readme_test.go.)
func ExampleEnsureOptions() {
	ctx := context.Background()
	s, err := xxljob.New(memory.New(), xxljob.Config{App: "demo"})
	if err != nil {
		log.Fatal(err)
	}
	handler := func(context.Context, *xxljob.Task) error { return nil }
	if err := s.Handle("expire", handler); err != nil {
		log.Fatal(err)
	}
	former := xxljob.Job{App: "orders", Key: "expire", Name: "Expire orders", Handler: "expire", Schedule: xxljob.Crontab("*/10 * * * *")}
	later := former
	later.Schedule = xxljob.Crontab("* * * * *")
	for _, err := range []error{
		deploy(ctx, s, 42, false, later),
		deploy(ctx, s, 41, false, former), // it changes nothing while the later list applies
		deploy(ctx, s, 41, true, former),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// expire created
	// expire superseded
	// expire changed
}

func deploy(ctx context.Context, s xxljob.Scheduler, build int64, rollback bool, jobs ...xxljob.Job) error {
	done, err := s.EnsureJobs(ctx, "orders", jobs, xxljob.EnsureOptions{Prune: true, Generation: build, Rollback: rollback})
	if err != nil {
		return err
	}
	for _, d := range done {
		fmt.Println(d.Job.Key, d.Outcome) // "superseded": the list of a later release applies
	}
	return nil
}

func ExampleScheduler_trigger() {
	ctx := context.Background()
	s, err := xxljob.New(memory.New(), xxljob.Config{App: "demo"})
	if err != nil {
		log.Fatal(err)
	}
	err = s.Handle("add", func(_ context.Context, t *xxljob.Task) error {
		var a, b int
		if _, err := fmt.Sscan(t.Param, &a, &b); err != nil {
			return fmt.Errorf("parameter %q: %w", t.Param, err)
		}
		t.SetResult(fmt.Sprint(a + b))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	job, err := s.AddJob(ctx, xxljob.Job{Key: "sum", Name: "Sum of two numbers", Handler: "add", Param: "1 2"}) // no schedule
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer s.Stop(ctx)

	other := "20 22"
	for _, t := range []xxljob.Trigger{{}, {Param: &other}} {
		ids, err := s.Trigger(ctx, job.ID, t)
		if err != nil {
			log.Fatal(err)
		}
		run, err := s.Wait(ctx, ids[0])
		fmt.Println(run.Type, run.State, run.HandleMsg, err)
	}
	// Output:
	// MANUAL succeeded 3 <nil>
	// MANUAL succeeded 42 <nil>
}

// Errors and panics of all handlers go to a tracker, and each run is timed.
func ExampleConfig_middleware() {
	report := func(t *xxljob.Task, what string, err any) { fmt.Printf("%s: %s: %v\n", t.Handler, what, err) }
	tracker := func(next xxljob.Handler) xxljob.Handler {
		return func(ctx context.Context, t *xxljob.Task) (err error) {
			defer func() {
				if p := recover(); p != nil {
					report(t, "panic", p)
					panic(p) // the executor records it
				}
			}()
			if err = next(ctx, t); err != nil {
				report(t, "error", err)
			}
			return err
		}
	}
	timing := func(next xxljob.Handler) xxljob.Handler {
		return func(ctx context.Context, t *xxljob.Task) error {
			defer func(start time.Time) { t.Log().Info("timed", "took", time.Since(start)) }(time.Now())
			return next(ctx, t)
		}
	}
	s, err := xxljob.New(memory.New(), xxljob.Config{
		Middleware: []func(xxljob.Handler) xxljob.Handler{tracker, timing}, // tracker is the outer one
		Logger:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	s.Handle("charge", func(context.Context, *xxljob.Task) error { return errors.New("the card was declined") })
	s.Handle("crash", func(context.Context, *xxljob.Task) error { panic("out of range") })
	if err := s.Start(ctx); err != nil {
		log.Fatal(err)
	}
	for _, handler := range []string{"charge", "crash"} {
		e, err := s.EnsureJob(ctx, xxljob.Job{Key: handler, Name: handler, Handler: handler})
		if err != nil {
			log.Fatal(err)
		}
		ids, err := s.Trigger(ctx, e.Job.ID, xxljob.Trigger{})
		if err != nil {
			log.Fatal(err)
		}
		run, err := s.Wait(ctx, ids[0])
		fmt.Println(run.State, err)
	}
	s.Stop(ctx)
	// Output:
	// charge: error: the card was declined
	// failed <nil>
	// crash: panic: out of range
	// failed <nil>
}

// A job is triggered by its key, with a parameter of any type.
func ExampleScheduler_triggerJob() {
	ctx := context.Background()
	s, err := xxljob.New(memory.New(), xxljob.Config{App: "shop", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	type order struct {
		Customer string
		Cents    int
	}
	s.Handle("bill", xxljob.JSON(func(_ context.Context, t *xxljob.Task, o order) error {
		fmt.Printf("%s owes %d\n", o.Customer, o.Cents)
		if o.Cents == 0 {
			return xxljob.Permanent(errors.New("nothing to bill"))
		}
		return nil
	}))
	job, err := s.EnsureJob(ctx, xxljob.Job{Key: "bill", Name: "Bill a customer", Handler: "bill"})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(ctx); err != nil {
		log.Fatal(err)
	}
	ids, err := s.TriggerJob(ctx, "", "bill", xxljob.Trigger{JSON: order{"Ada", 1250}, Key: "order-17"})
	if err != nil {
		log.Fatal(err)
	}
	run, err := s.Wait(ctx, ids[0])
	fmt.Println(run.State, err)

	// By its id, and with one id back, as the job is no broadcast.
	id, err := s.TriggerOne(ctx, job.Job.ID, xxljob.Trigger{JSON: order{Customer: "Bob"}})
	if err != nil {
		log.Fatal(err)
	}
	run, err = s.Wait(ctx, id)
	fmt.Println(run.State, run.NoRetry, err)
	s.Stop(ctx)
	// Output:
	// Ada owes 1250
	// succeeded <nil>
	// Bob owes 0
	// failed true <nil>
}

func ExampleScheduler_nextFire() {
	ctx := context.Background()
	s, err := xxljob.New(memory.New(), xxljob.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	day := time.Date(2040, 2, 29, 12, 0, 0, 0, time.UTC)
	job, err := s.EnsureJob(ctx, xxljob.Job{Key: "leap", Name: "On a leap day", Handler: "leap", Schedule: xxljob.At(day)})
	if err != nil {
		log.Fatal(err)
	}
	next, err := s.NextFire(ctx, job.Job.ID)
	fmt.Println(next, err)
	if err := s.StopJob(ctx, job.Job.ID); err != nil {
		log.Fatal(err)
	}
	next, err = s.NextFire(ctx, job.Job.ID)
	fmt.Println(next.IsZero(), err)
	// Output:
	// 2040-02-29 12:00:00 +0000 UTC <nil>
	// true <nil>
}

// A list, as from a file, that says of each job whether it is stopped.
func ExampleEnsureOptions_applyStopped() {
	ctx := context.Background()
	s, err := xxljob.New(memory.New(), xxljob.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	ensure := func(stopped bool) {
		done, err := s.EnsureJobs(ctx, "", []xxljob.Job{{
			Key: "report", Name: "Report", Handler: "report", Schedule: xxljob.Crontab("@daily"), Stopped: stopped,
		}}, xxljob.EnsureOptions{ApplyStopped: true})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(done[0].Outcome, done[0].Job.Stopped)
	}
	ensure(false)
	ensure(true)
	ensure(false)
	// Output:
	// created false
	// changed true
	// changed false
}

// Who reads events may call back into the scheduler: here, the second job runs whenever the
// first has succeeded.
func ExampleScheduler_events() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := xxljob.New(memory.New(), xxljob.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	s.Handle("load", func(context.Context, *xxljob.Task) error { fmt.Println("loading"); return nil })
	s.Handle("report", func(context.Context, *xxljob.Task) error { fmt.Println("reporting"); close(done); return nil })
	for _, key := range []string{"load", "report"} {
		if _, err := s.EnsureJob(ctx, xxljob.Job{Key: key, Name: key, Handler: key}); err != nil {
			log.Fatal(err)
		}
	}
	events := s.Events(ctx)
	go func() {
		for e := range events {
			if e.Kind == xxljob.EventRunEnded && e.Run.JobKey == "load" && e.Run.State == xxljob.StateSucceeded {
				s.TriggerJob(ctx, "", "report", xxljob.Trigger{})
			}
		}
	}()
	if err := s.Start(ctx); err != nil {
		log.Fatal(err)
	}
	s.TriggerJob(ctx, "", "load", xxljob.Trigger{})
	<-done
	s.Stop(ctx)
	// Output:
	// loading
	// reporting
}

// Runs of a CONCURRENT job are side by side, here three at a time.
func ExampleJob_concurrent() {
	ctx := context.Background()
	s, err := xxljob.New(memory.New(), xxljob.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	var all sync.WaitGroup
	all.Add(3)
	s.Handle("resize", func(context.Context, *xxljob.Task) error {
		all.Done()
		all.Wait() // for the two others: a serial job would wait for ever
		return nil
	})
	job, err := s.EnsureJob(ctx, xxljob.Job{
		Key: "resize", Name: "Resize pictures", Handler: "resize", Block: xxljob.BlockConcurrent, MaxPerExecutor: 3,
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(ctx); err != nil {
		log.Fatal(err)
	}
	var ids []int64
	for range 3 {
		id, err := s.TriggerOne(ctx, job.Job.ID, xxljob.Trigger{})
		if err != nil {
			log.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		run, err := s.Wait(ctx, id)
		fmt.Println(run.State, err)
	}
	s.Stop(ctx)
	// Output:
	// succeeded <nil>
	// succeeded <nil>
	// succeeded <nil>
}

// A run may be planned years ahead. It has its id from the start, by which it can be read
// and killed, and a call that is repeated returns the same one.
func ExampleTrigger_at() {
	ctx := context.Background()
	store := memory.New()
	s, err := xxljob.New(store, xxljob.Config{App: "demo"})
	if err != nil {
		log.Fatal(err)
	}
	job, err := s.AddJob(ctx, xxljob.Job{Key: "remind", Name: "Remind", Handler: "remind"})
	if err != nil {
		log.Fatal(err)
	}
	order := "4711"
	warranty := xxljob.Trigger{At: time.Date(2045, 6, 1, 9, 0, 0, 0, time.UTC), Param: &order, Key: "warranty-" + order}
	first, err := s.Trigger(ctx, job.ID, warranty)
	if err != nil {
		log.Fatal(err)
	}
	again, err := s.Trigger(ctx, job.ID, warranty)
	if err != nil {
		log.Fatal(err)
	}
	run, err := store.Run(ctx, first[0])
	fmt.Println(run.State, run.Scheduled, run.Param, again[0] == first[0], err)
	if err := s.Kill(ctx, run.ID); err != nil {
		log.Fatal(err)
	}
	run, err = s.Wait(ctx, run.ID)
	fmt.Println(run.State, err)

	warranty.At = warranty.At.AddDate(20, 0, 0)
	_, err = s.Trigger(ctx, job.ID, warranty)
	fmt.Println(err)
	// Output:
	// planned 2045-06-01 09:00:00 +0000 UTC 4711 true <nil>
	// cancelled <nil>
	// xxljob: trigger: At "2065-06-01T09:00:00Z": want a time before the year 2059, which is as far as ids of runs reach
}

func ExampleJob_maxRuns() {
	ctx := context.Background()
	store := memory.New()
	s, err := xxljob.New(store, xxljob.Config{App: "demo", Limits: xxljob.Limits{AllowSubSecond: true}})
	if err != nil {
		log.Fatal(err)
	}
	err = s.Handle("remind", func(_ context.Context, t *xxljob.Task) error {
		_, err := fmt.Println("reminder")
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Three reminders, or as many as the next fortnight has room for.
	job, err := s.AddJob(ctx, xxljob.Job{
		Key: "reminders", Name: "Reminders", Handler: "remind", Schedule: xxljob.FixedRate(10 * time.Millisecond),
		NotAfter: time.Now().AddDate(0, 0, 14), MaxRuns: 3,
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer s.Stop(ctx)
	for !job.Stopped {
		time.Sleep(time.Millisecond)
		if job, err = store.Job(ctx, job.ID); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(job.StopReason, job.Runs)
	err = s.StartJob(ctx, job.ID) // a greater MaxRuns, or another schedule, would start it
	fmt.Println(errors.Is(err, xxljob.ErrNeverFires))
	// Output:
	// reminder
	// reminder
	// reminder
	// finished: MaxRuns 3
	// true
}
