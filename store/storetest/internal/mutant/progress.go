package mutant

import (
	"context"
	"errors"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// progressMutants break rules about how far runs are.
func progressMutants() []Mutant {
	bend := func(change func(s store.Store, list []store.Progress) []store.Progress) func(whole) any {
		return func(s whole) any { return bentProgress{s, change} }
	}
	each := func(change func(s store.Store, p *store.Progress)) func(whole) any {
		return bend(func(s store.Store, list []store.Progress) []store.Progress {
			list = slices.Clone(list)
			for i := range list {
				change(s, &list[i])
			}
			return list
		})
	}
	result := func(change func(*store.Result)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, result: func(_ context.Context, r store.Result) store.Result { change(&r); return r }}
		}
	}
	return []Mutant{
		{"ProgressOfAnyStart", each(func(s store.Store, p *store.Progress) {
			if run, err := s.Run(context.Background(), p.RunID); err == nil {
				p.Token = run.Token
			}
		}), []string{"Progress/AttachedIsFenced", "Progress/ElsewhereIsFencedByTheStart", "Progress/ARunThatIsPutBackHasNone"}},
		{"ProgressOfAnyIncarnation", each(func(_ store.Store, p *store.Progress) { p.Incarnation = "" }), []string{"Progress/AttachedIsFenced"}},
		{"ProgressOnlyGrows", each(func(s store.Store, p *store.Progress) {
			if run, err := s.Run(context.Background(), p.RunID); err == nil {
				p.Percent = max(p.Percent, run.Progress)
			}
		}), []string{"Progress/TheLastStays"}},
		{"TheFirstProgressStays", bend(func(_ store.Store, list []store.Progress) []store.Progress {
			list = slices.Clone(list)
			slices.Reverse(list)
			return list
		}), []string{"Progress/TheLastStays"}},
		{"AShortBatch", bend(func(_ store.Store, list []store.Progress) []store.Progress { return list[:min(len(list), 64)] }), []string{"Progress/OfManyRunsInOneBatch"}},
		{"ShortTexts", each(func(_ store.Store, p *store.Progress) { p.Text = p.Text[:min(len(p.Text), 500)] }), []string{"Progress/TextsAreKeptWhole"}},
		{"UnknownProgressIsAnError", func(s whole) any { return strictProgress{s} }, []string{"Progress/OfUnknownRunsIsIgnored"}},
		{"ResultsSayNothing", result(func(r *store.Result) { r.Progress, r.ProgressText = 0, "" }),
			[]string{"Progress/ResultsCarryTheLast", "Progress/ComesBeforeTheEndOrNotAtAll"}},
		{"ResultsSayAll", result(func(r *store.Result) { r.Progress = max(r.Progress, 1) }), []string{"Progress/OfEndedRunsChangesNothing"}},
		{"DeafStore", bend(func(store.Store, []store.Progress) []store.Progress { return nil }),
			[]string{"Progress/ShowsInTheRun", "Faults/SetProgress", "Faults/PartOfSetProgress"}},
	}
}

// bentProgress changes what is said.
type bentProgress struct {
	st     whole
	change func(store.Store, []store.Progress) []store.Progress
}

func (b bentProgress) SetProgress(ctx context.Context, list []store.Progress) error {
	if ctx == nil || ctx.Err() != nil {
		return b.st.SetProgress(ctx, list)
	}
	return b.st.SetProgress(ctx, b.change(b.st, list))
}

// strictProgress wants to know each run.
type strictProgress struct{ st whole }

func (s strictProgress) SetProgress(ctx context.Context, list []store.Progress) error {
	err := s.st.SetProgress(ctx, list)
	for _, p := range list {
		_, unknown := s.st.Run(ctx, p.RunID)
		err = errors.Join(err, unknown)
	}
	return err
}
