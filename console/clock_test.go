package console_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
)

// ahead is a store with what was written before a clock was set back: the times of its runs, jobs
// and entries up to an ID are of what is the future now.
type ahead struct {
	st   Store
	by   time.Duration
	upTo int64 // the last of the runs
}

func (a *ahead) moved(list ...*time.Time) {
	for _, t := range list {
		if !t.IsZero() {
			*t = t.Add(a.by)
		}
	}
}

func (a *ahead) runs(list []xxljob.Run, err error) ([]xxljob.Run, error) {
	list = slices.Clone(list)
	for i := range list {
		if r := &list[i]; r.ID <= a.upTo {
			a.moved(&r.Created, &r.Scheduled, &r.Started, &r.Taken, &r.Ended)
		}
	}
	return list, err
}

func (a *ahead) Run(ctx context.Context, id int64) (xxljob.Run, error) {
	r, err := a.st.Run(ctx, id)
	list, err := a.runs([]xxljob.Run{r}, err)
	return list[0], err
}

func (a *ahead) Runs(ctx context.Context, f xxljob.RunFilter) ([]xxljob.Run, error) {
	return a.runs(a.st.Runs(ctx, f))
}

func (a *ahead) Tree(ctx context.Context, id int64) ([]xxljob.Run, error) {
	return a.runs(a.st.Tree(ctx, id))
}

func (a *ahead) LastRuns(ctx context.Context, jobs []int64, n int) ([]xxljob.Run, error) {
	return a.runs(a.st.LastRuns(ctx, jobs, n))
}

func (a *ahead) SearchRuns(ctx context.Context, q xxljob.RunSearch) (xxljob.RunsFound, error) {
	found, err := a.st.SearchRuns(ctx, q)
	found.Runs, err = a.runs(found.Runs, err)
	return found, err
}

func (a *ahead) Job(ctx context.Context, id int64) (xxljob.Job, error) {
	j, err := a.st.Job(ctx, id)
	a.moved(&j.Added, &j.Updated)
	return j, err
}

func (a *ahead) SearchChanges(ctx context.Context, q xxljob.ChangeSearch) (xxljob.ChangesFound, error) {
	found, err := a.st.SearchChanges(ctx, q)
	for i := range found.Changes {
		a.moved(&found.Changes[i].At)
	}
	return found, err
}

// TestAClockSetBack: pages are whole where what the store has is of the future, a run that goes on
// takes no time less than none, and one comes from it to the next run.
func TestAClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &ahead{by: 90 * time.Minute}
		x := newSite(t, func(c *console.Config) { a.st = c.Store.(Store); c.Store = bent.WholeOf(a.st, a) })
		root := x.admin()
		go1, end := make(chan bool), make(chan bool)
		x.s.Handle("work", func(ctx context.Context, task *xxljob.Task) error {
			task.Log().Info("before")
			go1 <- true
			select {
			case <-end:
			case <-ctx.Done():
			}
			return nil
		})
		must(t, x.s.Start(t.Context()))
		job := x.job("orders", "nightly")
		id := must1(x.s.TriggerOne(xxljob.WithActor(t.Context(), "ann"), job.ID, xxljob.Trigger{}))
		<-go1
		time.Sleep(time.Minute)
		later := must1(x.s.TriggerOne(t.Context(), job.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)}))
		a.upTo = id // and then the clock was set back
		page := "runs/" + itoa(id)
		less := regexp.MustCompile(`-\d+ (?:ms|s|min|h|d)\b`)
		for range 2 { // as a page and as a part of one
			for _, p := range []string{page, page + "/log", "runs", "runs?state=open", "runs?state=waiting", "jobs", "jobs/" + itoa(job.ID), "changes",
				"overview", "overview?range=1h", "timetable?range=24h", "executors", "executors?tab=nodes", "executors?tab=shards", "executors?app=orders", "users", "account"} {
				root.get(p).is(200)
				if m := less.FindString(root.text()); m != "" {
					t.Errorf("%s says %s:\n%s", p, m, root.text())
				}
			}
			root.live()
		}
		root.header.Del("HX-Request")
		root.get(page).has("Took 0 ms …")
		for _, m := range regexp.MustCompile(`<rect class="bar[^"]*" x="(-?\d+)" width="(-?\d+)"`).FindAllStringSubmatch(root.body, -1) {
			if from, wide := must1(parse(m[1])), must1(parse(m[2])); from < 0 || wide < 1 || from+wide > 1000 {
				t.Errorf("a bar from %d, %d wide", from, wide)
			}
		}
		if root.get(root.link("Next run")); root.at != "/console/runs/"+itoa(later) {
			t.Errorf("the next run is at %s", root.at)
		}
		if root.get(root.link("Previous run")); root.at != "/console/"+page {
			t.Errorf("the run before is at %s", root.at)
		}
		// Forms go by versions, and not by times.
		edit := "jobs/" + itoa(job.ID) + "/edit"
		form := root.get(edit).is(200).filled("jobform")
		root.post(edit, with(form, "author", "ann")).is(200).has("The job has been saved.")
		root.post(edit, with(form, "author", "bob")).is(409)
		if root.get(page + "/log?from=1"); !strings.Contains(root.body, "before") {
			t.Error("the log is gone")
		}
		close(end)
		must(t, x.s.Stop(context.Background()))
	})
}
