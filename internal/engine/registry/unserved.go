package registry

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Apps that have jobs and no executor, named in the log. Input: how many jobs apps have, which runs
// wait, and who is there for them. Output: a line, at most once an hour, by the owner of the first
// shard: also of apps of which nothing is due yet, and of those whose jobs have no schedule, where a
// run waits.

const (
	unservedEvery = 2 * time.Minute // how often it is looked
	unservedFor   = 10 * time.Minute
	unservedAgain = time.Hour
	// unservedNamed is how many apps a line names.
	unservedNamed = 100
)

// unserved belongs to its duty.
type unserved struct {
	*Serving
	reader store.JobReader
	since  map[string]time.Time // by app: when it was first seen to have nobody
	said   time.Time
}

// UnservedDuty names apps with enabled jobs that have had no executor for a while. Where the store
// does not count jobs there is none.
func (s *Serving) UnservedDuty() []loop.Duty {
	reader, ok := core.Given(s.Store).(store.JobReader)
	if !ok {
		return nil
	}
	u := &unserved{Serving: s, reader: reader, since: map[string]time.Time{}}
	return []loop.Duty{{What: "looking for apps that have jobs and no executor", Aside: true, Once: u.once}}
}

func (u *unserved) once(ctx context.Context) (time.Duration, error) {
	if _, mine := u.Leases.Epoch(0); !mine || u.Life.Draining.Load() {
		clear(u.since)
		return unservedEvery, nil
	}
	timed := core.Metered(u.Store, "CountJobs")
	counts, err := loop.Call(ctx, u.reader.CountJobs)
	if timed.End(&err); err != nil {
		return 0, err
	}
	now, jobs := time.Now(), map[string]int{}
	for _, c := range counts {
		if !u.isAttached(c.App) {
			jobs[c.App] = c.Enabled
		}
	}
	for app, enabled := range jobs {
		if enabled == 0 {
			if due, err := u.hasDue(ctx, app); err != nil {
				return 0, err
			} else if !due {
				delete(jobs, app)
				continue
			}
		}
		a, err := loop.Call(ctx, func(ctx context.Context) (Answer, error) { return u.book.Ask(ctx, app) })
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case err != nil || a.Stale != nil || len(u.book.AllOf(app, a)) > 0: // or it is not known
			delete(jobs, app)
		case u.since[app].IsZero():
			u.since[app] = now
		}
	}
	maps.DeleteFunc(u.since, func(app string, _ time.Time) bool { _, there := jobs[app]; return !there })
	u.name(now, jobs)
	return unservedEvery, nil
}

// hasDue reports whether a run of the app is due and not started.
func (u *unserved) hasDue(ctx context.Context, app string) (bool, error) {
	due, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
		return u.Store.Runs(ctx, store.RunFilter{App: app, States: []store.State{store.StatePlanned}, To: u.Clock.Now(), Limit: 1})
	})
	return len(due) > 0, err
}

// name names the apps that have had nobody for long enough, if none were named lately.
func (u *unserved) name(now time.Time, jobs map[string]int) {
	var apps []string
	all := 0
	for app, since := range u.since {
		if now.Sub(since) >= unservedFor {
			apps, all = append(apps, app), all+jobs[app]
		}
	}
	if len(apps) == 0 || !u.said.IsZero() && now.Sub(u.said) < unservedAgain {
		return
	}
	u.said = now
	slices.Sort(apps)
	u.Logger.Warn("xxljob: apps with enabled jobs or due runs have had no executor for ten minutes or more; start one, or stop their jobs",
		"apps", strings.Join(apps[:min(len(apps), unservedNamed)], ", "), "unnamed", max(0, len(apps)-unservedNamed), "jobs", all)
}
