package mutant

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// troubleMutants break what is noted of troubles.
func troubleMutants() []Mutant {
	bent := func(change func(n *store.TroubleNotes), answer func(mine []bool)) func(store.Store) store.Store {
		return func(s store.Store) store.Store {
			return &bentNotes{s, s.(store.TroubleNoter), change, answer}
		}
	}
	notes := func(change func(n *store.TroubleNotes)) func(store.Store) store.Store { return bent(change, nil) }
	return []Mutant{
		{"EveryNoteStands", bent(nil, func(mine []bool) {
			for i := range mine {
				mine[i] = true
			}
		}), []string{"Troubles/TheFirstAndTheLastNoteIt", "Troubles/ANoteIsForRulesOfOthers"}},
		{"AllNodesAreOne", notes(func(n *store.TroubleNotes) { n.Incarnation = "a" }), []string{"Troubles/TheFirstAndTheLastNoteIt", "Troubles/WhoIsDeadHasNotedNothing"}},
		{"OwnRulesAreTold", notes(func(n *store.TroubleNotes) { n.Told = nil }), []string{"Troubles/ANoteIsForRulesOfOthers", "Troubles/ANoteIsAnAlarm", "Troubles/ANoteIsDoneWithAsAnAlarm"}},
		{"NothingIsOver", notes(func(n *store.TroubleNotes) {
			n.List = slices.Clone(n.List)
			for i := range n.List {
				n.List[i].Over = false
			}
		}), []string{"Troubles/TheFirstAndTheLastNoteIt", "Troubles/ANoteIsAnAlarm"}},
		{"AddressesAreForgotten", notes(func(n *store.TroubleNotes) {
			n.List = slices.Clone(n.List)
			for i := range n.List {
				n.List[i].Address = ""
			}
		}), []string{"Troubles/ANoteIsAnAlarm"}},
		{"LaterRulesHearNothing", func(s store.Store) store.Store {
			return &onceNoted{s, s.(store.TroubleNoter), map[string]bool{}}
		}, []string{"Troubles/ARuleThatCameLaterIsTold"}},
	}
}

// onceNoted leaves out what a node notes again.
type onceNoted struct {
	store.Store
	noter store.TroubleNoter
	lasts map[string]bool
}

func (o *onceNoted) NoteTroubles(ctx context.Context, n store.TroubleNotes) ([]bool, error) {
	if len(n.List) == 1 {
		key := n.Incarnation + n.List[0].Key()
		was := o.lasts[key]
		if o.lasts[key] = !n.List[0].Over; was && !n.List[0].Over {
			return []bool{true}, nil
		}
	}
	return o.noter.NoteTroubles(ctx, n)
}

// bentNotes changes notes on their way in, and the answers.
type bentNotes struct {
	store.Store
	noter  store.TroubleNoter
	change func(*store.TroubleNotes)
	answer func([]bool)
}

func (b *bentNotes) NoteTroubles(ctx context.Context, n store.TroubleNotes) ([]bool, error) {
	if b.change != nil {
		b.change(&n)
	}
	mine, err := b.noter.NoteTroubles(ctx, n)
	if b.answer != nil {
		b.answer(mine)
	}
	return mine, err
}
