package memory

// Reports: how runs have ended. Each end is counted where it happens. Quarters of an hour of long
// ago are added up to days. Where there are too many, so are those furthest from now, be they to
// come: runs that are due in years can be cancelled. Of too many days the furthest go.

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// mostQuarters and mostDays bound the reports, of which each takes half a kilobyte.
const (
	mostQuarters = 20_000
	mostDays     = 20_000
)

// reports are in order of their beginning and app. They are guarded by Store.mu.
type reports struct {
	quarters, days []*store.Report
	clock          func() time.Time
	steady         steadiness
	recent         *store.Report // the one of quarters that was counted in last; nil once that is folded
}

// count returns the report that an end counts in.
func (x *reports) count(app string, instant time.Time) *store.Report {
	if r := x.recent; r != nil && r.App == app && !instant.Before(r.From) && instant.Sub(r.From) < store.Quarter {
		return r // most ends are of the same quarter as the one before
	}
	x.fold(x.clock())
	x.recent = reportOf(&x.quarters, app, store.QuarterOf(instant), store.Quarter)
	return x.recent
}

// reportOf finds a report in a list, to which it is added where it is not there.
func reportOf(list *[]*store.Report, app string, from time.Time, length time.Duration) *store.Report {
	at, there := slices.BinarySearchFunc(*list, from, func(r *store.Report, from time.Time) int {
		return cmp.Or(r.From.Compare(from), cmp.Compare(r.App, app))
	})
	if !there {
		*list = slices.Insert(*list, at, &store.Report{App: app, From: from, Length: length})
	}
	return (*list)[at]
}

// fold adds quarters of an hour up to days: of long ago, unless the clock is doubted, and where there
// are too many.
func (x *reports) fold(now time.Time) {
	before := store.DayOf(now.Add(-store.QuartersKept))
	if x.steady.doubts(now) {
		before = time.Time{}
	}
	for len(x.quarters) > 0 && (x.quarters[0].From.Before(before) || len(x.quarters) >= mostQuarters) {
		r := x.quarters[0]
		x.recent = nil
		if r.From.Before(before) {
			x.quarters = x.quarters[1:]
		} else {
			r = takeFurthest(&x.quarters, now)
		}
		reportOf(&x.days, r.App, store.DayOf(r.From), store.ReportDay).Add(r)
		if len(x.days) > mostDays {
			takeFurthest(&x.days, now)
		}
	}
}

// steadiness watches a clock: nothing is done by the age of things within an hour of a step of it by
// more than a minute against the monotonic one.
type steadiness struct {
	clock, local, stepped time.Time // what it said, and when, and when it was last seen to step
}

func (x *steadiness) doubts(clock time.Time) bool {
	local := time.Now()
	if !x.local.IsZero() && (clock.Sub(x.clock)-local.Sub(x.local)).Abs() > time.Minute {
		x.stepped = local
	}
	x.clock, x.local = clock, local
	return !x.stepped.IsZero() && local.Sub(x.stepped) < time.Hour
}

// takeFurthest takes the first or the last report of a list, whichever is further from now.
func takeFurthest(list *[]*store.Report, now time.Time) *store.Report {
	first, last := (*list)[0], (*list)[len(*list)-1]
	if last.From.Sub(now) > now.Sub(first.From) {
		*list = slices.Delete(*list, len(*list)-1, len(*list))
		return last
	}
	*list = (*list)[1:]
	return first
}

// Reports returns reports that the query chooses.
func (s *Store) Reports(ctx context.Context, q store.ReportQuery) (store.ReportsFound, error) {
	if err := over(ctx); err != nil {
		return store.ReportsFound{}, err
	}
	if err := q.Validate(); err != nil {
		return store.ReportsFound{}, err
	}
	q.Complete()
	apps := map[string]bool{}
	for _, app := range q.Apps {
		apps[app] = true
	}
	if err := s.look(ctx); err != nil {
		return store.ReportsFound{}, err
	}
	defer s.mu.Unlock()
	s.reports.fold(s.clock())
	rows := slices.Concat(chosenReports(s.reports.days, &q, apps), chosenReports(s.reports.quarters, &q, apps))
	slices.SortStableFunc(rows, func(a, b *store.Report) int { return a.From.Compare(b.From) })
	found := store.ReportsFound{Until: q.To.UTC()}
	if len(rows) > q.Examine {
		var err error
		if found.Until, err = q.Cut(rows[q.Examine].From); err != nil {
			return store.ReportsFound{}, err
		}
	}
	for _, r := range rows {
		if !r.From.Before(found.Until) {
			break
		}
		app := r.App
		if q.Together {
			app = ""
		}
		sum := reportOfSpan(&found.Reports, app, q.From.UTC().Add(r.From.Sub(q.From)/q.Length*q.Length), q.Length)
		sum.Length = max(sum.Length, r.Length)
		sum.Add(r)
	}
	return found, nil
}

// chosenReports are those of the rows that a query chooses, by a search for the first of them.
func chosenReports(rows []*store.Report, q *store.ReportQuery, apps map[string]bool) (list []*store.Report) {
	at, _ := slices.BinarySearchFunc(rows, q.From, func(r *store.Report, from time.Time) int { return r.From.Compare(from) })
	for _, r := range rows[at:] {
		if !r.From.Before(q.To) || len(list) > q.Examine {
			break
		}
		if len(apps) == 0 || apps[r.App] {
			list = append(list, r)
		}
	}
	return list
}

// reportOfSpan is reportOf for a list of values.
func reportOfSpan(list *[]store.Report, app string, from time.Time, length time.Duration) *store.Report {
	at, there := slices.BinarySearchFunc(*list, from, func(r store.Report, from time.Time) int {
		return cmp.Or(r.From.Compare(from), cmp.Compare(r.App, app))
	})
	if !there {
		*list = slices.Insert(*list, at, store.Report{App: app, From: from, Length: length})
	}
	return &(*list)[at]
}
