package xxljobtest_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/xxljobtest"
)

// greet is the handler under test.
func greet(_ context.Context, task *xxljob.Task) error {
	task.Log().Info("greeting", "whom", task.Param)
	task.SetResult("hello " + task.Param)
	return nil
}

func ExampleWork() {
	t := new(exampleTB) // in a test, its t
	defer t.end()

	res := xxljobtest.Work(t, t.Context(), greet, xxljob.Task{Param: "world"})
	fmt.Println(res.Result, res.Err, res.Log)
	// Output: hello world <nil> [INFO greeting whom=world]
}

// Outside of a bubble a job is triggered by hand.
func ExampleScheduler_RunNow() {
	t := new(exampleTB) // in a test, its t
	defer t.end()

	s := xxljobtest.NewWith(t,
		xxljobtest.Options{Handlers: map[string]xxljob.Handler{"greet": greet}},
		xxljob.Job{Key: "new-year", Name: "New year's greeting", Handler: "greet", Schedule: xxljob.At(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))},
	)
	run := s.RunNow("new-year", "Ada")
	fmt.Println(run.State, "-", run.HandleMsg)
	fmt.Println("next:", s.NextFireOf("new-year"))
	s.RequireRuns("new-year") // none by its schedule so far
	// Output:
	// succeeded - hello Ada
	// next: 2100-01-01 00:00:00 +0000 UTC
}

// A scheduler's triggers are tested with a fake of the executor in the other process.
func ExampleNewExecutor() {
	t := new(exampleTB) // in a test, its t
	defer t.end()

	far := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{
		App:        "reports",
		Generation: xxljobtest.G2, // as XXL-JOB 2.3 to 3.2
		Answer: func(_ context.Context, run xxljobtest.ExecutorRun) xxljobtest.Answer {
			if run.ExecutorParams == "" {
				return xxljobtest.Refuse("which region?")
			}
			return xxljobtest.Succeed("3 pages")
		},
	})
	s := xxljobtest.NewWith(t, xxljobtest.Options{Executors: []*xxljobtest.Executor{far}},
		xxljob.Job{App: "reports", Key: "nightly", Name: "Nightly report", Handler: "report"})

	for _, region := range []string{"EMEA", ""} {
		run := s.RunNow("nightly", region)
		fmt.Println(run.State, "-", run.HandleMsg)
	}
	for _, run := range far.Runs() {
		fmt.Printf("asked for %s(%q), part %d of %d\n", run.ExecutorHandler, run.ExecutorParams, run.BroadcastIndex, run.BroadcastTotal)
	}
	// Output:
	// succeeded - 3 pages
	// refused - which region?
	// asked for report("EMEA"), part 0 of 1
	// asked for report(""), part 0 of 1
}

// exampleTB stands for the t of a test; examples have none.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (*exampleTB) Helper()                  {}
func (*exampleTB) Context() context.Context { return context.Background() }
func (*exampleTB) Logf(string, ...any)      {}
func (*exampleTB) Output() io.Writer        { return io.Discard }
func (t *exampleTB) Cleanup(f func())       { t.cleanups = append(t.cleanups, f) }

func (t *exampleTB) end() {
	for _, f := range t.cleanups {
		f()
	}
}
