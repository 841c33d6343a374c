package mutant

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// zoneMutants break what is kept of zones that nodes have no data of.
func zoneMutants() []Mutant {
	bent := func(b bentZones) func(whole) any {
		return func(s whole) any {
			b := b
			b.st, b.noted = s, map[string][]string{}
			return &b
		}
	}
	return []Mutant{
		{"ZonesAreAddedUp", bent(bentZones{adds: true}), []string{"Node/UnknownZonesAreThoseThatWereNotedLast"}},
		{"ABeatForgetsZones", bent(bentZones{forgets: true}), []string{"Node/UnknownZonesAreThoseThatWereNotedLast", "Node/UnknownZonesComeBackWithTheNode"}},
		{"ANodeBringsItsZones", bent(bentZones{brings: true}), []string{"Node/ANodeThatJoinsKnowsOfNoUnknownZones"}},
	}
}

// bentZones is a store that keeps other zones than it was told. A case has one goroutine.
type bentZones struct {
	st                    whole
	adds, forgets, brings bool
	noted                 map[string][]string
}

func (b *bentZones) NoteUnknownZones(ctx context.Context, incarnation string, zones []string) error {
	if b.adds {
		zones = slices.Concat(b.noted[incarnation], zones)
	}
	b.noted[incarnation] = zones
	return b.st.NoteUnknownZones(ctx, incarnation, zones)
}

func (b *bentZones) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	if b.forgets {
		if err := b.st.NoteUnknownZones(ctx, incarnation, nil); err != nil {
			return store.View{}, err
		}
	}
	return b.st.Beat(ctx, incarnation, attached)
}

func (b *bentZones) Join(ctx context.Context, n store.Node) (store.View, error) {
	v, err := b.st.Join(ctx, n)
	if err == nil && b.brings {
		err = b.st.NoteUnknownZones(ctx, n.Incarnation, n.UnknownZones)
	}
	return v, err
}
