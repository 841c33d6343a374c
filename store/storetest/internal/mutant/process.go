package mutant

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// processMutants break what is kept of what nodes say of their processes.
func processMutants() []Mutant {
	bent := func(b bentProcess) func(whole) any {
		return func(s whole) any {
			b := b
			b.st = s
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
	st                     whole
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
	return b.st.NoteProcess(ctx, incarnation, p)
}

func (b *bentProcess) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	if b.forgets {
		if err := b.st.NoteProcess(ctx, incarnation, store.Process{}); err != nil {
			return store.View{}, err
		}
	}
	return b.st.Beat(ctx, incarnation, attached)
}

func (b *bentProcess) Join(ctx context.Context, n store.Node) (store.View, error) {
	v, err := b.st.Join(ctx, n)
	if err == nil && b.brings {
		err = b.st.NoteProcess(ctx, n.Incarnation, store.Process{Version: n.Version, ClockOffset: n.ClockOffset})
	}
	return v, err
}
