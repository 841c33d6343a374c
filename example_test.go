package xxljob_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// The first program of the README, line by line (see readme_test.go).
func Example() {
	ctx, done := context.WithCancel(context.Background())
	s, err := xxljob.New(memory.New(), xxljob.Config{})
	if err != nil {
		log.Fatal(err)
	}
	s.Handle("greet", func(ctx context.Context, t *xxljob.Task) error {
		defer done() // a service would go on
		_, err := fmt.Println("hello,", t.Param)
		return err
	})
	s.EnsureJob(ctx, xxljob.Job{Name: "greeting", Handler: "greet", Param: "world", Schedule: xxljob.FixedDelay(time.Second)})
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
	// every 1m30s
	// 1m0s after the end of the previous run
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
	invoices := xxljob.Job{Name: "invoices", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")}
	reminders := xxljob.Job{Name: "reminders", Handler: "work", Schedule: xxljob.Crontab("@hourly")}
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
// (deploy is in the README, see readme_test.go.)
func ExampleEnsureOptions() {
	ctx := context.Background()
	s, err := xxljob.New(memory.New(), xxljob.Config{})
	if err != nil {
		log.Fatal(err)
	}
	handler := func(context.Context, *xxljob.Task) error { return nil }
	if err := s.Handle("expire", handler); err != nil {
		log.Fatal(err)
	}
	former := xxljob.Job{App: "orders", Name: "expire orders", Handler: "expire", Schedule: xxljob.Crontab("*/10 * * * *")}
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
	// expire orders created
	// expire orders superseded
	// expire orders changed
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
	s, err := xxljob.New(memory.New(), xxljob.Config{})
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
	job, err := s.AddJob(ctx, xxljob.Job{Name: "sum", Handler: "add", Param: "1 2"}) // no schedule
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

func ExampleJob_maxRuns() {
	ctx := context.Background()
	store := memory.New()
	s, err := xxljob.New(store, xxljob.Config{Limits: xxljob.Limits{AllowSubSecond: true}})
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
		Name: "reminders", Handler: "remind", Schedule: xxljob.FixedRate(10 * time.Millisecond),
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
