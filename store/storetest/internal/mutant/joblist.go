package mutant

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// listMutants break rules about lists of jobs.
func listMutants() []Mutant {
	of := func(m listMutant) func(whole) any {
		return func(s whole) any {
			own := m // the mutant's cases run in parallel
			own.st = s
			return &own
		}
	}
	put := func(change func(*store.ListPut)) func(whole) any { return of(listMutant{put: change}) }
	view := func(change func(*store.ListView)) func(whole) any {
		return of(listMutant{view: change})
	}
	edit := func(change func(*store.Edit)) func(whole) any { return of(listMutant{edit: change}) }
	guarding := func(change func(store.ListView, *store.ListGuard)) func(whole) any {
		return of(listMutant{guard: change})
	}
	return []Mutant{
		{"ALesserGenerationApplies", put(func(p *store.ListPut) {
			if p.Apply == store.ApplyNewer {
				p.Apply = store.ApplyAlways
			}
		}), []string{"List/NewerAppliesUnlessTheHeadIsGreater"}},
		{"NothingAppliesAlways", put(func(p *store.ListPut) { p.Apply = min(p.Apply, store.ApplyNewer) }),
			[]string{"List/AlwaysAndNeverApply", "List/SurplusNeedsTheGeneration"}},
		{"NeverApplies", put(func(p *store.ListPut) { p.Apply = max(p.Apply, store.ApplyNewer) }), []string{"List/AlwaysAndNeverApply"}},
		{"InsteadLooksAtNothing", put(func(p *store.ListPut) {
			if p.Apply == store.ApplyInstead {
				p.Apply = store.ApplyAlways
			}
		}), []string{"List/InsteadComparesTheHeadAndTheListsOfOthers"}},
		{"ListsAreNobodys", put(func(p *store.ListPut) { p.Incarnation = "" }),
			[]string{"List/AListIsOfANodeThatIsThere", "List/AListTakesThePlaceOfTheFormer", "Faults/PutList"}},
		{"EveryListPrunes", put(func(p *store.ListPut) { p.Prune = true }), []string{"List/SurplusNeedsAPruningListOfANodeThatIsThere", "List/AListTakesThePlaceOfTheFormer"}},
		{"NoListPrunes", put(func(p *store.ListPut) { p.Prune = false }), []string{"List/SurplusIsWhatNoListNames", "List/GuardOfSurplus"}},
		{"ListsAreOfOneApp", put(func(p *store.ListPut) { p.App = "app" }), []string{"List/ListsAreThoseOfTheApp", "List/SurplusIsWhatNoListNames"}},
		{"ListsNameNothing", put(func(p *store.ListPut) { p.Keys = nil }), []string{"List/SurplusIsWhatNoListNames", "List/PrunedAreNamedAgain", "List/GuardOfSurplus"}},
		{"ListsAreInNoOrder", view(func(v *store.ListView) { slices.Reverse(v.Nodes) }), []string{"List/ListsAreThoseOfTheApp"}},
		{"NothingIsSurplus", view(func(v *store.ListView) { v.Surplus = nil }), []string{"List/SurplusIsWhatNoListNames", "List/SurplusIsEnabledAndWasNamed", "Faults/NameJobs"}},
		{"NothingIsPruned", view(func(v *store.ListView) { v.Pruned = nil }), []string{"List/PrunedAreNamedAgain"}},
		{"GuardsAreNotLookedAt", edit(func(e *store.Edit) { e.Guard = nil }), []string{"List/GuardOfAGeneration", "List/GuardOfSurplus"}},
		{"SurplusIsNotComparedAgain", edit(func(e *store.Edit) {
			if e.Guard != nil && e.Guard.SurplusOf != "" {
				e.Guard = nil
			}
		}), []string{"List/GuardOfSurplus", "List/AListOrAPruneComesFirst"}},
		{"GuardsCompareGenerationsOnly", guarding(func(v store.ListView, g *store.ListGuard) {
			if g.SurplusOf == "" && v.Head.Generation == g.Generation {
				g.Digest = v.Head.Digest
			}
		}), []string{"List/AnotherListOfTheGenerationIsAnotherList", "List/GuardOfAGeneration"}},
		{"AnyListOfTheNodePrunes", guarding(func(v store.ListView, g *store.ListGuard) {
			for _, n := range v.Nodes {
				if n.Incarnation == g.SurplusOf {
					g.ListID = n.ID()
				}
			}
		}), []string{"List/GuardOfSurplus"}},
		{"AnyListOfTheGenerationPrunes", guarding(func(v store.ListView, g *store.ListGuard) {
			if len(v.Surplus) > 0 && v.Head.Generation == g.Generation && v.Head.Digest != g.Digest {
				g.Digest, g.SurplusOf = v.Head.Digest, ""
			}
		}), []string{"List/GuardOfSurplus"}},
		{"NamesAreNotNoted", of(listMutant{name: func(ctx context.Context, s store.Store, app string, keys []string) ([]store.Job, error) {
			jobs, err := s.Jobs(ctx, store.JobFilter{App: app, Limit: 1000})
			return slices.DeleteFunc(jobs, func(j store.Job) bool { return !slices.Contains(keys, j.Key) || j.Key == "" }), err
		}}), []string{"List/NameJobsInAnotherGenerationChangesNothing", "List/SurplusIsWhatNoListNames", "Faults/NameJobs"}},
		{"JobsStayNamed", of(listMutant{unname: store.Store.JobByKey}), []string{"List/UnnameJobIsTheOppositeOfNameJobs", "List/UnnameJobOrAPruneComesFirst", "Faults/UnnameJob"}},
		{"UnnameJobSaysWhatWasBefore", of(listMutant{unname: func(s store.Store, ctx context.Context, app, key string) (store.Job, error) {
			before, err := s.JobByKey(ctx, app, key)
			if err == nil {
				time.Sleep(time.Millisecond) // it is pruned meanwhile
				_, err = s.UnnameJob(ctx, app, key)
			}
			return before, err
		}}), []string{"List/UnnameJobOrAPruneComesFirst"}},
		{"KeysChooseNothing", of(listMutant{jobs: func(f *store.JobFilter) { f.Keys = nil }}), []string{"Job/JobsFilters"}},
		{"EmptyIDsChooseNothing", of(listMutant{jobs: func(f *store.JobFilter) {
			if f.IDs != nil && len(f.IDs) == 0 {
				f.IDs = []int64{0}
			}
		}}), []string{"Job/JobsFilters"}},
		{"EmptyKeysChooseNothing", of(listMutant{jobs: func(f *store.JobFilter) {
			if f.Keys != nil && len(f.Keys) == 0 {
				f.Keys = []string{""}
			}
		}}), []string{"Job/JobsFilters"}},
		{"JobsAreAddedOneByOne", of(listMutant{oneByOne: true}), []string{"List/AddJobsAllOrNone"}},
		{"AddedJobsAreInNoOrder", of(listMutant{added: slices.Reverse[[]store.Job]}), []string{"List/AddJobsLeavesOutTakenKeys"}},
	}
}

// listMutant changes what goes in and comes out of the lists.
type listMutant struct {
	st       whole
	put      func(*store.ListPut)
	view     func(*store.ListView)
	edit     func(*store.Edit)
	guard    func(store.ListView, *store.ListGuard)
	name     func(ctx context.Context, s store.Store, app string, keys []string) ([]store.Job, error)
	added    func([]store.Job)
	unname   func(s store.Store, ctx context.Context, app, key string) (store.Job, error)
	jobs     func(*store.JobFilter)
	oneByOne bool
}

func (m *listMutant) Jobs(ctx context.Context, f store.JobFilter) ([]store.Job, error) {
	if m.jobs != nil {
		m.jobs(&f)
	}
	return m.st.Jobs(ctx, f)
}

func (m *listMutant) PutList(ctx context.Context, put store.ListPut) (store.ListHead, error) {
	if m.put != nil {
		m.put(&put)
	}
	return m.st.PutList(ctx, put)
}

func (m *listMutant) Lists(ctx context.Context, app, incarnation string) (store.ListView, error) {
	v, err := m.st.Lists(ctx, app, incarnation)
	if m.view != nil {
		m.view(&v)
	}
	return v, err
}

func (m *listMutant) EditJob(ctx context.Context, id int64, e store.Edit) (store.Job, error) {
	if m.edit != nil {
		m.edit(&e)
	}
	if e.Guard != nil {
		g := m.guarded(ctx, *e.Guard)
		e.Guard = &g
	}
	return m.st.EditJob(ctx, id, e)
}

// guarded is what becomes of a guard.
func (m *listMutant) guarded(ctx context.Context, g store.ListGuard) store.ListGuard {
	if v, err := m.st.Lists(ctx, g.App, g.SurplusOf); err == nil && m.guard != nil {
		m.guard(v, &g)
	}
	return g
}

func (m *listMutant) NameJobs(ctx context.Context, list store.ListID, keys []string) ([]store.Job, error) {
	if m.name != nil {
		return m.name(ctx, m.st, list.App, keys)
	}
	return m.st.NameJobs(ctx, m.guarded(ctx, store.ListGuard{ListID: list}).ListID, keys)
}

func (m *listMutant) UnnameJob(ctx context.Context, app, key string) (store.Job, error) {
	if m.unname != nil {
		return m.unname(m.st, ctx, app, key)
	}
	return m.st.UnnameJob(ctx, app, key)
}

func (m *listMutant) AddJobs(ctx context.Context, list store.ListID, jobs []store.Job, first store.FirstInstant) ([]store.Job, error) {
	list = m.guarded(ctx, store.ListGuard{ListID: list}).ListID
	if !m.oneByOne {
		added, err := m.st.AddJobs(ctx, list, jobs, first)
		if m.added != nil {
			m.added(added)
		}
		return added, err
	}
	var all []store.Job
	for _, job := range jobs {
		added, err := m.st.AddJobs(ctx, list, []store.Job{job}, first)
		if err != nil {
			return nil, err
		}
		all = append(all, added...)
	}
	return all, nil
}
