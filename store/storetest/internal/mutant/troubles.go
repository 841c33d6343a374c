package mutant

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// troubleMutants break what is noted of troubles.
func troubleMutants() []Mutant {
	bent := func(change func(n *store.TroubleNotes), answer func(mine []bool)) func(whole) any {
		return func(s whole) any {
			return &bentNotes{s, change, answer}
		}
	}
	notes := func(change func(n *store.TroubleNotes)) func(whole) any { return bent(change, nil) }
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
		}), []string{"Troubles/ANoteIsAnAlarm", "Troubles/TextsAreMadeValid"}},
		{"LaterRulesHearNothing", func(s whole) any {
			return &onceNoted{s, map[string]bool{}}
		}, []string{"Troubles/ARuleThatCameLaterIsTold"}},
	}
}

// onceNoted leaves out what a node notes again.
type onceNoted struct {
	st    whole
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
	return o.st.NoteTroubles(ctx, n)
}

// bentNotes changes notes on their way in, and the answers.
type bentNotes struct {
	st     whole
	change func(*store.TroubleNotes)
	answer func([]bool)
}

func (b *bentNotes) NoteTroubles(ctx context.Context, n store.TroubleNotes) ([]bool, error) {
	if b.change != nil {
		b.change(&n)
	}
	mine, err := b.st.NoteTroubles(ctx, n)
	if b.answer != nil {
		b.answer(mine)
	}
	return mine, err
}
