package mutant

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// processMutants break what is kept of what nodes say of their processes.
func processMutants() []Mutant {
	bent := func(b bentProcess) func(store.Store) store.Store {
		return func(s store.Store) store.Store {
			b := b
			b.Store, b.ProcessNoter = s, s.(store.ProcessNoter)
			return &b
		}
	}
	return []Mutant{
		{"TheFirstNoteOfAProcessStays", bent(bentProcess{first: true}), []string{"Node/AProcessIsAsItWasNotedLast"}},
		{"ABeatForgetsTheProcess", bent(bentProcess{forgets: true}), []string{"Node/AProcessIsAsItWasNotedLast", "Node/AProcessComesBackWithTheNode"}},
		{"ANodeBringsItsProcess", bent(bentProcess{brings: true}), []string{"Node/ANodeThatJoinsHasSaidNothingOfItsProcess"}},
	}
}

// bentProcess is a store that keeps another process than it was told. A case has one goroutine.
type bentProcess struct {
	store.Store
	store.ProcessNoter
	first, forgets, brings bool
	noted                  map[string]bool
}

func (b *bentProcess) NoteProcess(ctx context.Context, incarnation string, p store.Process) error {
	if b.first && b.noted[incarnation] {
		return nil
	}
	if b.noted == nil {
		b.noted = map[string]bool{}
	}
	b.noted[incarnation] = true
	return b.ProcessNoter.NoteProcess(ctx, incarnation, p)
}

func (b *bentProcess) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	if b.forgets {
		if err := b.ProcessNoter.NoteProcess(ctx, incarnation, store.Process{}); err != nil {
			return store.View{}, err
		}
	}
	return b.Store.Beat(ctx, incarnation, attached)
}

func (b *bentProcess) Join(ctx context.Context, n store.Node) (store.View, error) {
	v, err := b.Store.Join(ctx, n)
	if err == nil && b.brings {
		err = b.ProcessNoter.NoteProcess(ctx, n.Incarnation, store.Process{Version: n.Version, ClockOffset: n.ClockOffset})
	}
	return v, err
}
