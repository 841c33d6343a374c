package mutant

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
)

// aheadMutants break rules about runs that are kept apart until they move.
func aheadMutants() []Mutant {
	move := func(change func(ctx context.Context, s store.Store, q *store.AheadQuery)) func(whole) any {
		return func(s whole) any { return &ahead{st: s, query: change} }
	}
	with := func(spoil func(*ahead)) func(whole) any {
		return func(s whole) any { a := &ahead{st: s}; spoil(a); return a }
	}
	return []Mutant{
		{"MoveIgnoresTheEpoch", move(func(ctx context.Context, s store.Store, q *store.AheadQuery) {
			for i := range q.Shards {
				q.Shards[i].Epoch = epoch(ctx, s, q.Shards[i].ID)
			}
		}), []string{"Ahead/MoveComparesTheEpoch"}},
		{"MoveTakesEveryShard", move(func(ctx context.Context, s store.Store, q *store.AheadQuery) {
			v, _ := s.Beat(ctx, "observer", nil)
			q.Shards = v.Shards
		}), []string{"Ahead/MoveOfOtherShardsChangesNothing"}},
		{"MoveIgnoresTheLimit", move(func(_ context.Context, _ store.Store, q *store.AheadQuery) { q.Limit = 100 }), []string{"Ahead/MovesTheEarliestFirst"}},
		{"MoveIsEarly", move(func(_ context.Context, _ store.Store, q *store.AheadQuery) {
			q.Before = q.Before.Add(time.Millisecond)
		}),
			[]string{"Ahead/MovesToTheLoops"}},
		{"MoveIsLate", move(func(_ context.Context, _ store.Store, q *store.AheadQuery) {
			q.Before = q.Before.Add(-time.Millisecond)
		}),
			[]string{"Ahead/MovesToTheLoops", "Ahead/MovesTheEarliestFirst"}},
		{"MoveHidesTheNext", with(func(a *ahead) { a.moved = func(m *store.Moved) { m.Next = time.Time{} } }), []string{"Ahead/MovesToTheLoops", "Ahead/MovesTheEarliestFirst"}},
		{"MoveCountsNothing", with(func(a *ahead) { a.moved = func(m *store.Moved) { m.Runs = 0 } }), []string{"Ahead/MovesToTheLoops", "Ahead/MovesOnceFromManyCallers"}},
		{"AheadIsPlannedAtOnce", with(func(a *ahead) { a.near = true }), []string{"Ahead/IsHiddenFromTheLoops", "Ahead/MovesToTheLoops"}},
		{"AheadForgetsTheKey", with(func(a *ahead) { a.trigger = func(t *store.Trigger) { t.Key = "" } }), []string{"Ahead/KeyIsIdempotentThroughout", "Ahead/KeyFrom50Callers"}},
		{"AheadForgetsTheType", with(func(a *ahead) { a.trigger = func(t *store.Trigger) { t.Type = "" } }), []string{"Ahead/KeepsTheTrigger"}},
		{"AheadIsUnlisted", with(func(a *ahead) { a.unlisted = true }), []string{"Ahead/IsListedByEachFilter", "Ahead/PagesCoverAllOnce"}},
		{"AheadIsUnnamed", with(func(a *ahead) { a.unnamed = true }), []string{"Ahead/HasTheNamesOfItsJob"}},
		{"AheadIsUnread", with(func(a *ahead) { a.unread = true }), []string{"Ahead/IsAPlannedRunToReaders"}},
		{"AheadOutlivesAKill", with(func(a *ahead) { a.unkilled = true }), []string{"Ahead/KillCancels", "Ahead/KillAgainstMove"}},
		{"AheadOutlivesItsJob", with(func(a *ahead) { a.unremoved = true }), []string{"Ahead/RemoveCancels"}},
		{"AheadDiesByAnEdit", with(func(a *ahead) { a.edited = true }), []string{"Ahead/EditsLeaveItAlone"}},
		{"AheadIsSilent", with(func(a *ahead) { a.silent = true }), []string{"Signals/NoPollNeedsEverySignal"}},
	}
}

// ahead is a store that does one thing wrong with runs that are kept apart.
type ahead struct {
	st                                          whole
	query                                       func(context.Context, store.Store, *store.AheadQuery)
	moved                                       func(*store.Moved)
	trigger                                     func(*store.Trigger)
	near, unlisted, unread, unkilled, unremoved bool
	unnamed, edited, silent                     bool

	mu  sync.Mutex
	ids []int64 // guarded by mu: of runs that were kept apart
}

func (a *ahead) AddAhead(ctx context.Context, job int64, t store.Trigger, move time.Time) (store.Run, error) {
	if a.trigger != nil {
		a.trigger(&t)
	}
	if a.near {
		return a.st.AddRun(ctx, job, t)
	}
	run, err := a.st.AddAhead(ctx, job, t, move)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids = append(a.ids, run.ID)
	return run, err
}

func (a *ahead) kept(id int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.ids, id)
}

func (a *ahead) MoveAhead(ctx context.Context, q store.AheadQuery) (store.Moved, error) {
	q.Shards = slices.Clone(q.Shards)
	if a.query != nil {
		a.query(ctx, a.st, &q)
	}
	m, err := a.st.MoveAhead(ctx, q)
	if a.moved != nil {
		a.moved(&m)
	}
	return m, err
}

func (a *ahead) Run(ctx context.Context, id int64) (store.Run, error) {
	if a.unread && a.kept(id) {
		return store.Run{}, store.ErrNotFound
	}
	run, err := a.st.Run(ctx, id)
	if a.unremoved && a.kept(id) {
		run.State, run.Reason = store.StatePlanned, ""
	}
	return run, err
}

func (a *ahead) Runs(ctx context.Context, f store.RunFilter) ([]store.Run, error) {
	runs, err := a.st.Runs(ctx, f)
	if a.unlisted {
		runs = slices.DeleteFunc(runs, func(r store.Run) bool { return a.kept(r.ID) })
	}
	for i := range runs {
		if a.unnamed && a.kept(runs[i].ID) {
			runs[i].JobName, runs[i].JobKey, runs[i].Secret = "", "", false
		}
	}
	return runs, err
}

func (a *ahead) Kill(ctx context.Context, id int64, reason string) (store.Run, error) {
	if a.unkilled && a.kept(id) {
		return a.st.Run(ctx, id)
	}
	return a.st.Kill(ctx, id, reason)
}

func (a *ahead) EditJob(ctx context.Context, id int64, e store.Edit) (store.Job, error) {
	if a.edited {
		for _, run := range a.ids {
			_, _ = a.st.Kill(ctx, run, e.Verb)
		}
	}
	return a.st.EditJob(ctx, id, e)
}

func (a *ahead) Watch(ctx context.Context, incarnation string) store.Signals {
	s := a.st.Watch(ctx, incarnation)
	if a.silent {
		s.Ahead = nil
	}
	return s
}
