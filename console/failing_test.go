package console_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// fragile is a store of which one call fails, counted from one: instead of being carried out, or
// after that.
type fragile struct {
	*memory.Store
	mu    sync.Mutex
	calls int
	at    int // the call that fails, zero for none
	after bool
	which string // the method that has failed
}

var errCable = errors.New("the cable is out")

// prepare begins to count anew.
func (f *fragile) prepare(at int, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.at, f.after, f.which = 0, at, after, ""
}

// asked is what a call comes to.
func asked[T any](f *fragile, name string, call func() (T, error)) (T, error) {
	f.mu.Lock()
	f.calls++
	fails := f.calls == f.at
	if fails {
		f.which = name
	}
	f.mu.Unlock()
	var none T
	if fails && !f.after {
		return none, errCable
	}
	v, err := call()
	if fails && err == nil {
		return none, errCable
	}
	return v, err
}

// told is asked for a call that has no answer.
func told(f *fragile, name string, call func() error) error {
	_, err := asked(f, name, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func (f *fragile) Job(ctx context.Context, id int64) (xxljob.Job, error) {
	return asked(f, "Job", func() (xxljob.Job, error) { return f.Store.Job(ctx, id) })
}
func (f *fragile) Jobs(ctx context.Context, q xxljob.JobFilter) ([]xxljob.Job, error) {
	return asked(f, "Jobs", func() ([]xxljob.Job, error) { return f.Store.Jobs(ctx, q) })
}
func (f *fragile) Links(ctx context.Context) ([]xxljob.Job, error) {
	return asked(f, "Links", func() ([]xxljob.Job, error) { return f.Store.Links(ctx) })
}
func (f *fragile) Run(ctx context.Context, id int64) (xxljob.Run, error) {
	return asked(f, "Run", func() (xxljob.Run, error) { return f.Store.Run(ctx, id) })
}
func (f *fragile) Runs(ctx context.Context, q xxljob.RunFilter) ([]xxljob.Run, error) {
	return asked(f, "Runs", func() ([]xxljob.Run, error) { return f.Store.Runs(ctx, q) })
}
func (f *fragile) RunsByID(ctx context.Context, ids []int64) ([]xxljob.Run, error) {
	return asked(f, "RunsByID", func() ([]xxljob.Run, error) { return f.Store.RunsByID(ctx, ids) })
}
func (f *fragile) Tree(ctx context.Context, id int64) ([]xxljob.Run, error) {
	return asked(f, "Tree", func() ([]xxljob.Run, error) { return f.Store.Tree(ctx, id) })
}
func (f *fragile) Group(ctx context.Context, app string) (xxljob.Group, error) {
	return asked(f, "Group", func() (xxljob.Group, error) { return f.Store.Group(ctx, app) })
}
func (f *fragile) Groups(ctx context.Context) ([]xxljob.Group, error) {
	return asked(f, "Groups", func() ([]xxljob.Group, error) { return f.Store.Groups(ctx) })
}
func (f *fragile) Addresses(ctx context.Context, app string, age time.Duration) ([]xxljob.Registration, error) {
	return asked(f, "Addresses", func() ([]xxljob.Registration, error) { return f.Store.Addresses(ctx, app, age) })
}
func (f *fragile) Changes(ctx context.Context, job int64, n int) ([]xxljob.Change, error) {
	return asked(f, "Changes", func() ([]xxljob.Change, error) { return f.Store.Changes(ctx, job, n) })
}
func (f *fragile) SearchChanges(ctx context.Context, q xxljob.ChangeSearch) (xxljob.ChangesFound, error) {
	return asked(f, "SearchChanges", func() (xxljob.ChangesFound, error) { return f.Store.SearchChanges(ctx, q) })
}
func (f *fragile) JobAt(ctx context.Context, id, version int64) (xxljob.Job, error) {
	return asked(f, "JobAt", func() (xxljob.Job, error) { return f.Store.JobAt(ctx, id, version) })
}
func (f *fragile) RecordChange(ctx context.Context, c xxljob.Change) (xxljob.Change, error) {
	return asked(f, "RecordChange", func() (xxljob.Change, error) { return f.Store.RecordChange(ctx, c) })
}
func (f *fragile) SearchRuns(ctx context.Context, q xxljob.RunSearch) (xxljob.RunsFound, error) {
	return asked(f, "SearchRuns", func() (xxljob.RunsFound, error) { return f.Store.SearchRuns(ctx, q) })
}
func (f *fragile) LastRuns(ctx context.Context, jobs []int64, n int) ([]xxljob.Run, error) {
	return asked(f, "LastRuns", func() ([]xxljob.Run, error) { return f.Store.LastRuns(ctx, jobs, n) })
}
func (f *fragile) Children(ctx context.Context, id, after int64, n int) ([]xxljob.Run, error) {
	return asked(f, "Children", func() ([]xxljob.Run, error) { return f.Store.Children(ctx, id, after, n) })
}
func (f *fragile) Waiting(ctx context.Context, after xxljob.Run, n int) ([]xxljob.Run, error) {
	return asked(f, "Waiting", func() ([]xxljob.Run, error) { return f.Store.Waiting(ctx, after, n) })
}
func (f *fragile) SearchJobs(ctx context.Context, q xxljob.JobSearch) ([]xxljob.Job, error) {
	return asked(f, "SearchJobs", func() ([]xxljob.Job, error) { return f.Store.SearchJobs(ctx, q) })
}
func (f *fragile) CountJobs(ctx context.Context) ([]store.JobCount, error) {
	return asked(f, "CountJobs", func() ([]store.JobCount, error) { return f.Store.CountJobs(ctx) })
}
func (f *fragile) View(ctx context.Context) (xxljob.View, error) {
	return asked(f, "View", func() (xxljob.View, error) { return f.Store.View(ctx) })
}
func (f *fragile) User(ctx context.Context, name string) (store.User, error) {
	return asked(f, "User", func() (store.User, error) { return f.Store.User(ctx, name) })
}
func (f *fragile) Users(ctx context.Context, after string, n int) ([]store.User, error) {
	return asked(f, "Users", func() ([]store.User, error) { return f.Store.Users(ctx, after, n) })
}
func (f *fragile) AddFirstUser(ctx context.Context, u store.User, code string) (store.User, error) {
	return asked(f, "AddFirstUser", func() (store.User, error) { return f.Store.AddFirstUser(ctx, u, code) })
}
func (f *fragile) AddSession(ctx context.Context, s store.Session, l store.SessionLimits) (store.Session, error) {
	return asked(f, "AddSession", func() (store.Session, error) { return f.Store.AddSession(ctx, s, l) })
}
func (f *fragile) Session(ctx context.Context, hash string, l store.SessionLimits) (s store.Session, u store.User, err error) {
	s, err = asked(f, "Session", func() (store.Session, error) { s, u, err = f.Store.Session(ctx, hash, l); return s, err })
	return s, u, err
}
func (f *fragile) EndSession(ctx context.Context, user string, id int64) error {
	return told(f, "EndSession", func() error { return f.Store.EndSession(ctx, user, id) })
}
func (f *fragile) TryLogin(ctx context.Context, name string) (time.Duration, error) {
	return asked(f, "TryLogin", func() (time.Duration, error) { return f.Store.TryLogin(ctx, name) })
}
func (f *fragile) PassLogin(ctx context.Context, name string) error {
	return told(f, "PassLogin", func() error { return f.Store.PassLogin(ctx, name) })
}
func (f *fragile) SaveSettings(ctx context.Context, name, settings string) error {
	return told(f, "SaveSettings", func() error { return f.Store.SaveSettings(ctx, name, settings) })
}
func (f *fragile) AddJob(ctx context.Context, j xxljob.Job, first xxljob.FirstInstant) (xxljob.Job, error) {
	return asked(f, "AddJob", func() (xxljob.Job, error) { return f.Store.AddJob(ctx, j, first) })
}
func (f *fragile) EditJob(ctx context.Context, id int64, e xxljob.Edit) (xxljob.Job, error) {
	return asked(f, "EditJob", func() (xxljob.Job, error) { return f.Store.EditJob(ctx, id, e) })
}
func (f *fragile) RemoveJob(ctx context.Context, id int64) error {
	return told(f, "RemoveJob", func() error { return f.Store.RemoveJob(ctx, id) })
}
func (f *fragile) AddRun(ctx context.Context, id int64, t xxljob.Trigger) (xxljob.Run, error) {
	return asked(f, "AddRun", func() (xxljob.Run, error) { return f.Store.AddRun(ctx, id, t) })
}
func (f *fragile) Kill(ctx context.Context, id int64, reason string) (xxljob.Run, error) {
	return asked(f, "Kill", func() (xxljob.Run, error) { return f.Store.Kill(ctx, id, reason) })
}

// newFragile is a site on a store that fails.
func newFragile(t *testing.T) (*site, *fragile) {
	f := &fragile{}
	x := newSite(t, func(c *console.Config) {
		f.Store = c.Store.(*memory.Store)
		c.Store, c.Scheduler = f, must1(xxljob.New(f, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler)}))
	})
	return x, f
}

// TestAnyCallMayFail: whichever call of the store fails that a page makes, the page says so, and
// does not show less than there is.
func TestAnyCallMayFail(t *testing.T) {
	x, f := newFragile(t)
	root := x.admin()
	few := x.user(console.User{Name: "few", Apps: map[string]console.Role{"*": console.Editor, "billing": console.None}})
	full := x.fullJob()
	full.Author = "other"
	full = must1(x.s.UpdateJob(t.Context(), full))
	run := must1(x.s.TriggerOne(xxljob.WithActor(t.Context(), "root"), full.ID, xxljob.Trigger{}))
	id := itoa(full.ID)
	// A page of a run and of its log says in its place that the log cannot be had.
	for _, page := range []string{"", "jobs", "jobs?app=orders", "jobs?type=CRON", "jobs?failing=yes", "jobs/new", "jobs/new?copy=" + id, "jobs/" + id, "jobs/" + id + "/edit", "jobs/" + id + "/edit?version=1", "jobs/" + id + "/once", "jobs/" + id + "/remove",
		"runs", "runs?state=waiting", "runs?text=" + itoa(run), "runs/" + itoa(run), "runs/" + itoa(run) + "/kill", "runs/" + itoa(run) + "/previous", "runs/" + itoa(run) + "/next", "runs/" + itoa(run) + "/log", "changes", "changes?app=orders&id=" + id} {
		for _, b := range []*browser{root, few} {
			f.prepare(0, false)
			b.alone().get(page)
			good, n := b.res.StatusCode, f.calls
			if good >= 400 || n == 0 {
				t.Fatalf("%s: status %d, %d calls", page, good, n)
			}
			for k := 1; k <= n; k++ {
				f.prepare(k, false)
				b.alone().get(page)
				switch said := strings.Contains(b.body, errCable.Error()); {
				case strings.Contains(page, "runs/") && b.res.StatusCode == 200 && said: // it is the log that is not there
				case b.res.StatusCode != http.StatusServiceUnavailable, !said && f.which != "Session":
					t.Errorf("%s, the %d. call (%s) of %d: status %d, said: %v", page, k, f.which, n, b.res.StatusCode, said)
				}
			}
		}
	}
}

// TestAnyCallOfAChangeMayFail: whichever call fails of a request that changes something, before or
// after it is carried out, nobody is told that it was done unless it was, and it is done once where
// it is asked for again.
func TestAnyCallOfAChangeMayFail(t *testing.T) {
	for _, rt := range console.Routes() {
		if !rt.Changes || rt.Pattern == "setup" {
			continue
		}
		for _, after := range []bool{false, true} {
			for k := 1; k < 30; k++ {
				x, f := newFragile(t)
				console.WithHashes(x.console, func(uint32, uint32) {})
				b := x.admin().alone()
				u := must1(x.store.User(t.Context(), "root"))
				u.Password = console.HashedBy(x.console, password)
				if rt.Pattern == "login" {
					must1(x.store.UpdateUser(t.Context(), u))
					b = x.browser().alone()
				}
				to, form := x.changingOne(rt.Pattern)
				before := x.state()
				f.prepare(k, after)
				b.post(to, form)
				where := rt.Pattern + ", " + f.which + map[bool]string{false: " before", true: " after"}[after] + " its commit"
				if f.which == "" {
					break // it has made no more calls
				}
				status, did := b.res.StatusCode, x.state() != before
				done := status < 400 && !strings.Contains(b.body, "state-failed") && !strings.Contains(b.body, `class="fault"`)
				switch {
				case status == http.StatusInternalServerError:
					t.Errorf("%s: status %d: %s", where, status, b.text())
				case done && !did:
					t.Errorf("%s: it is said to be done", where)
				case !done && did && rt.Pattern != "login" && !strings.Contains(b.text(), "may have been"):
					t.Errorf("%s: it was done, and nothing says that it may have been: status %d: %s", where, status, b.text())
				}
				f.prepare(0, false)
				again := url.Values{}
				for name, values := range form {
					again[name] = values
				}
				b.post(to, again)
				if entries := len(must1(x.store.SearchChanges(t.Context(), xxljob.ChangeSearch{Actor: "root", Object: store.ObjectJob})).Changes); entries > 1 {
					t.Errorf("%s: %d entries about jobs after a second try", where, entries)
				}
			}
		}
	}
}
