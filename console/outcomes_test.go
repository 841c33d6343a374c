package console_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
)

// TestOutcomes: of no runs, of one, and of a hundred.
func TestOutcomes(t *testing.T) {
	if o := console.SumUp(nil); o.Runs != 0 || o.Measured != 0 || len(o.Counts) != 0 {
		t.Errorf("of nothing: %+v", o)
	}
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var runs []xxljob.Run
	for i := 1; i <= 100; i++ { // the slowest first
		n := time.Duration(101-i) * time.Second
		runs = append(runs, xxljob.Run{State: xxljob.StateSucceeded, Scheduled: at, Started: at.Add(n / 10), Ended: at.Add(n/10 + n)})
	}
	o := console.SumUp(runs)
	if o.Took != [2]time.Duration{50 * time.Second, 95 * time.Second} || o.Late != [2]time.Duration{5 * time.Second, 9500 * time.Millisecond} {
		t.Errorf("took %v, late %v", o.Took, o.Late)
	}
	if n := len(o.Bars); n != 60 || o.Bars[n-1].High != 40 || o.Bars[n-1].Y() != 0 || o.Bars[0].High >= 40 || o.Bars[0].High < 4 || o.Bars[1].X != 10 {
		t.Errorf("%d bars: %+v", n, o.Bars)
	}
	runs = append(runs[:2:2], xxljob.Run{State: xxljob.StateRefused, Scheduled: at.Add(-time.Hour)})
	o = console.SumUp(runs)
	if o.Runs != 3 || o.Measured != 2 || len(o.Counts) != 2 || o.Counts[0].State != "succeeded" || o.Counts[0].Share != 67 || o.Counts[1].N != 1 || !o.Since.Equal(at.Add(-time.Hour)) {
		t.Errorf("%+v", o)
	}
}

// TestFailingJobs: one whose last runs have all failed is found; one that has succeeded since, or
// is of an app of others, is not.
func TestFailingJobs(t *testing.T) {
	atOnce(t)
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		must(t, x.s.Handle("work", func(ctx context.Context, task *xxljob.Task) error {
			if task.Param == "fine" {
				return nil
			}
			return errors.New("no luck")
		}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- x.s.Run(ctx) }()
		bad, mended := x.job("orders", "bad one"), x.job("orders", "mended one")
		fine := "fine"
		for _, j := range []xxljob.Job{bad, mended} {
			for range 4 {
				must1(x.s.Trigger(ctx, j.ID, xxljob.Trigger{}))
			}
		}
		time.Sleep(30 * time.Second)
		must1(x.s.Trigger(ctx, mended.ID, xxljob.Trigger{Param: &fine}))
		time.Sleep(30 * time.Second)
		root.get("jobs?failing=yes").is(200).has("bad one").lacks("mended one")
		root.get("jobs?failing=yes&app=billing").is(200).lacks("bad one")
		root.get("jobs?failing=yes&text=nothing").is(200).lacks("bad one")
		root.get("jobs/"+itoa(mended.ID)).has("Last 5 runs", "succeeded 1 20 %", "failed 4 80 %", "median")
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"billing": console.Viewer}})
		ann.get("jobs?failing=yes").is(200).lacks("bad one")
		root.get("jobs/" + itoa(bad.ID) + "/once").is(200)
		if !strings.Contains(root.body, `name="address" value="local://`) {
			t.Error("the node that serves the app is not offered")
		}
		cancel()
		<-done
	})
}

// gone is a store whose sessions cannot be asked for.
type gone struct {
	st  Store
	err error
}

func (a *gone) Session(ctx context.Context, hash string, limits store.SessionLimits) (store.Session, store.User, error) {
	if a.err != nil {
		return store.Session{}, store.User{}, a.err
	}
	return a.st.Session(ctx, hash, limits)
}

// TestNobodyCanBeAsked: a form is kept also where the store cannot say who has sent it, and where
// the host says that nobody has.
func TestNobodyCanBeAsked(t *testing.T) { inMemory(t, testNobodyCanBeAsked) }

func testNobodyCanBeAsked(t *testing.T) {
	a := &gone{}
	x := newSite(t, func(c *console.Config) { a.st = c.Store.(Store); c.Store = bent.WholeOf(a.st, a) })
	root := x.admin()
	j := x.job("orders", "nightly")
	edit := "jobs/" + itoa(j.ID) + "/edit"
	form := with(root.get(edit).filled("jobform"), "handler", "typed")
	a.err = errors.New("gone")
	root.post(edit, form).is(503).has("What you typed is kept below.").lacks("param of nightly is")
	back := root.filled("jobform")
	a.err = nil
	if back.Get("version") != "1" || back.Get("app") != "orders" {
		t.Errorf("%v", back)
	}
	root.post(edit, back).is(200)
	if now := must1(x.store.Job(t.Context(), j.ID)); now.Handler != "typed" {
		t.Errorf("%+v", now)
	}
}

// TestTheHostLogsIn: it is said where, beside the form that was sent.
func TestTheHostLogsIn(t *testing.T) { onBothStores(t, testTheHostLogsIn) }

func testTheHostLogsIn(t *testing.T) {
	who := errors.New("set below")
	x := newSite(t, func(c *console.Config) {
		c.Auth = console.Func(func(*http.Request) (console.User, error) { return console.User{Name: "ann", Admin: true}, who }, "/enter")
	})
	who = nil
	ann := x.browser()
	form := with(ann.get("jobs/new").filled("jobform"), "name", "fresh", "app", "orders", "handler", "typed")
	who = console.ErrNoUser
	ann.post("jobs/new", form).is(401).has("Log in in another tab", "What you typed is kept below.")
	if hrefOf(ann.body, `>Log in<`) != "/enter" {
		t.Errorf("the login is at %q", hrefOf(ann.body, ">Log in<"))
	}
	back := ann.filled("jobform")
	who = nil
	ann.post("jobs/new", back).is(200).has("The job has been added.")
}
