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
// wait, who is there for them, and since when nobody is, as the store keeps it. Output: a line, once an
// hour, by the owner of the first shard: also of apps of which nothing is due yet, and of those whose
// jobs have no schedule, where a run waits.
//
// The line is due ten minutes after the first of these apps was left alone, and each hour after that.
// All nodes go by that and look at the same moments, so that it is said once whoever has the first
// shard by then. Where its owner dies at that very moment the line comes an hour later.

const (
	unservedEvery = 2 * time.Minute // how often it is looked
	unservedFor   = 10 * time.Minute
	unservedAgain = time.Hour
	// unservedNamed is how many apps a line names.
	unservedNamed = 100
)

// unserved belongs to its duty. Its times are monotonic: after the store's clock was ahead no line waits
// for as long as that.
type unserved struct {
	*Serving
	reader store.JobReader
	seen   time.Time // up to when lines that were due are this node's no more: it or another has seen to them
	said   time.Time
}

// UnservedDuty names apps with enabled jobs that have had no executor for a while. Where the store
// does not count jobs there is none.
func (s *Serving) UnservedDuty() []loop.Duty {
	reader, ok := core.Given(s.Store).(store.JobReader)
	if !ok {
		return nil
	}
	u := &unserved{Serving: s, reader: reader}
	return []loop.Duty{{What: "looking for apps that have jobs and no executor", Aside: true, Once: u.once}}
}

func (u *unserved) once(ctx context.Context) (time.Duration, error) {
	now := u.Clock.Now()
	at := now.Truncate(unservedEvery)
	next := at.Add(unservedEvery).Sub(now)
	began := time.Now().Add(at.Sub(now)) // when it was that time
	if u.seen.IsZero() {
		u.seen = began
	}
	if _, mine := u.Leases.Epoch(0); !mine || u.Life.Draining.Load() {
		if u.isOthers() {
			u.seen = began
		}
		return next, nil
	}
	jobs, since, err := u.look(ctx)
	if err != nil {
		return 0, err
	}
	if _, mine := u.Leases.Epoch(0); mine { // the store may have taken long to answer
		u.name(at, began, jobs, since)
		u.seen = began
	}
	return next, nil
}

// isOthers reports whether another live node has the first shard. While nobody has it, what is due is
// left to who comes to have it.
func (u *unserved) isOthers() bool {
	for _, shard := range u.Leases.Shards() {
		if shard.ID == 0 {
			return shard.Owner != "" && shard.Owner != u.Leases.Incarnation && u.Leases.IsLive(shard.Owner)
		}
	}
	return false
}

// look returns the apps that nobody serves, with how many jobs each has, and since when that is so. One of
// which it is not known is left out.
func (u *unserved) look(ctx context.Context) (jobs map[string]int, since map[string]time.Time, err error) {
	timed := core.Metered(u.Store, "CountJobs")
	counts, err := loop.Call(ctx, u.reader.CountJobs)
	if timed.End(&err); err != nil {
		return nil, nil, err
	}
	jobs, since = map[string]int{}, map[string]time.Time{}
	for _, c := range counts {
		if u.isAttached(c.App) {
			continue
		}
		if c.Enabled == 0 {
			if due, err := u.hasDue(ctx, c.App); err != nil {
				return nil, nil, err
			} else if !due {
				continue
			}
		}
		a, err := loop.Call(ctx, func(ctx context.Context) (Answer, error) { return u.book.Ask(ctx, c.App) })
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err != nil || a.Stale != nil: // it is not known
			continue
		}
		if all := u.book.AllOf(c.App, a); len(all) > 0 {
			u.Found(c.App, all)
			continue
		}
		if err := u.Gone(ctx, c.App); err != nil { // the store keeps it, whoever looks next
			return nil, nil, err
		}
		if x := u.of(c.App); x != nil { // else somebody has just come
			jobs[c.App], since[c.App] = c.Enabled, u.since(x)
		}
	}
	for page := range slices.Chunk(slices.Sorted(maps.Keys(since)), loop.StoreBatch) {
		rows, err := loop.Call(ctx, func(ctx context.Context) ([]store.Served, error) { return u.Store.Served(ctx, page) })
		if err != nil {
			return nil, nil, err
		}
		for _, row := range rows {
			if gone := since[row.App]; !row.Gone.IsZero() && row.Gone.Before(gone) { // else a clock was ahead
				since[row.App] = row.Gone
			}
		}
	}
	return jobs, since, nil
}

// hasDue reports whether a run of the app is due and not started.
func (u *unserved) hasDue(ctx context.Context, app string) (bool, error) {
	due, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
		return u.Store.Runs(ctx, store.RunFilter{App: app, States: []store.State{store.StatePlanned}, To: u.Clock.Now(), Limit: 1})
	})
	return len(due) > 0, err
}

// name names the apps that have had nobody for long enough, if a line about them has come to be due.
// at is a moment at which all nodes look, and began when that was by this process's clock.
func (u *unserved) name(at, began time.Time, jobs map[string]int, since map[string]time.Time) {
	var first time.Time
	var apps []string
	all := 0
	for app, gone := range since {
		first = core.Earlier(first, gone)
		if at.Sub(gone) >= unservedFor {
			apps, all = append(apps, app), all+jobs[app]
		}
	}
	ago := func(t time.Time) time.Duration { return began.Sub(t).Round(unservedEvery) }
	if len(apps) == 0 || !u.said.IsZero() && ago(u.said) < unservedAgain {
		return
	}
	due := first.Add(unservedFor)
	if due = due.Add(at.Sub(due).Truncate(unservedAgain)); !due.After(at.Add(-ago(u.seen))) {
		return
	}
	u.said = began
	slices.Sort(apps)
	u.Logger.Warn("xxljob: apps with enabled jobs or due runs have had no executor for ten minutes or more; start one, or stop their jobs",
		"apps", strings.Join(apps[:min(len(apps), unservedNamed)], ", "), "unnamed", max(0, len(apps)-unservedNamed), "jobs", all)
}
