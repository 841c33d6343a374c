package mutant

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// unreportedMutants break rules about the runs that remote executors have accepted.
func unreportedMutants() []Mutant {
	list := func(change func(ctx context.Context, s store.Store, q *dispatchedQuery) func([]store.Run) []store.Run) func(whole) any {
		return func(s whole) any { return otherDispatched{s, change} }
	}
	out := func(change func(q dispatchedQuery, runs []store.Run) []store.Run) func(whole) any {
		return list(func(_ context.Context, _ store.Store, q *dispatchedQuery) func([]store.Run) []store.Run {
			asked := *q
			return func(runs []store.Run) []store.Run { return change(asked, runs) }
		})
	}
	const (
		those, owners = "Unreported/DispatchedRunsAreThoseAndNoOthers", "Unreported/DispatchedRunsAreOfWhoeverOwnsThem"
		order, pages  = "Unreported/DispatchedRunsAreInOrderOfID", "Unreported/DispatchedRunsPagesCoverAllOnce"
	)
	return []Mutant{
		{"DispatchedRunsOfAllShards", list(func(_ context.Context, _ store.Store, q *dispatchedQuery) func([]store.Run) []store.Run {
			q.shards = []store.Shard{{ID: 0}, {ID: 1}, {ID: 2}, {ID: 3}}
			return nil
		}), []string{those}},
		{"DispatchedRunsAndStartedOnes", list(func(ctx context.Context, s store.Store, q *dispatchedQuery) func([]store.Run) []store.Run {
			asked := *q
			return func(runs []store.Run) []store.Run {
				started, _ := s.StartedBy(ctx, asked.shards, []string{"a"}, asked.after, asked.limit)
				return append(runs, started...)
			}
		}), []string{those}},
		{"DispatchedRunsOfTheOwnersEpoch", list(func(_ context.Context, _ store.Store, q *dispatchedQuery) func([]store.Run) []store.Run {
			q.shards = slices.DeleteFunc(slices.Clone(q.shards), func(sh store.Shard) bool { return sh.Epoch > 1 })
			return nil
		}), []string{owners}},
		{"DispatchedRunsOfTheOwnerOfTheShard", out(func(q dispatchedQuery, runs []store.Run) []store.Run {
			return slices.DeleteFunc(runs, func(r store.Run) bool {
				return !slices.ContainsFunc(q.shards, func(sh store.Shard) bool { return sh.ID == r.Shard && sh.Owner == r.Owner })
			})
		}), []string{owners}},
		{"DispatchedRunsByShard", out(func(_ dispatchedQuery, runs []store.Run) []store.Run {
			slices.SortStableFunc(runs, func(a, b store.Run) int { return a.Shard - b.Shard })
			return runs
		}), []string{order}},
		{"DispatchedRunsFromAfterOn", list(func(_ context.Context, _ store.Store, q *dispatchedQuery) func([]store.Run) []store.Run {
			q.after--
			return nil
		}), []string{order, pages}},
		{"DispatchedRunsWithoutLimit", list(func(_ context.Context, _ store.Store, q *dispatchedQuery) func([]store.Run) []store.Run {
			q.limit = 1000
			return nil
		}), []string{order, pages}},
		{"DispatchedRunsThatAreToBeKilledAreOver", out(func(_ dispatchedQuery, runs []store.Run) []store.Run {
			return slices.DeleteFunc(runs, func(r store.Run) bool { return r.KillReason != "" })
		}), []string{"Unreported/DispatchedRunsAreGoneOnceTheyHaveEnded"}},
		{"DispatchedRunsForgetTheBootID", out(func(_ dispatchedQuery, runs []store.Run) []store.Run {
			for i := range runs {
				runs[i].BootID = ""
			}
			return runs
		}), []string{"Start/EveryReaderHasTheBootID"}},
	}
}

// dispatchedQuery is what DispatchedRuns is asked for.
type dispatchedQuery struct {
	shards []store.Shard
	after  int64
	limit  int
}

// otherDispatched changes what goes into DispatchedRuns, and what comes out.
type otherDispatched struct {
	st     whole
	change func(ctx context.Context, s store.Store, q *dispatchedQuery) (out func([]store.Run) []store.Run)
}

func (o otherDispatched) DispatchedRuns(ctx context.Context, shards []store.Shard, after int64, limit int) ([]store.Run, error) {
	q := dispatchedQuery{shards, after, limit}
	out := o.change(ctx, o.st, &q)
	runs, err := o.st.DispatchedRuns(ctx, q.shards, q.after, q.limit)
	if out != nil {
		runs = out(runs)
	}
	return runs, err
}
