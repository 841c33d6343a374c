package mutant

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// muteMutants break what is kept of mutes.
func muteMutants() []Mutant {
	bent := func(b bentMutes) func(whole) any {
		return func(s whole) any {
			b := b
			b.st = s
			return &b
		}
	}
	return []Mutant{
		{"MutesLastForEver", bent(bentMutes{forever: true}), []string{"Mutes/AMuteIsKeptUntilItIsOver"}},
		{"EachClockIsTrusted", bent(bentMutes{trusts: true}), []string{"Mutes/NoMuteIsOverByAClockThatIsNotTrusted"}},
		{"ADoubtedClockForgetsMutes", bent(bentMutes{forgets: true}), []string{"Mutes/NoMuteIsOverByAClockThatIsNotTrusted"}},
		{"WhoMutesIsForgotten", bent(bentMutes{nobody: true}), []string{"Mutes/AMuteIsKeptUntilItIsOver", "Mutes/EachChangeOfAMuteIsRecorded"}},
		{"LongMutesAreCut", bent(bentMutes{cuts: true}), []string{"Mutes/WhatIsAbsurdIsNotMuted", "Mutes/EachChangeOfAMuteIsRecorded"}},
	}
}

// bentMutes is a store that keeps other mutes than it was told. A case has one goroutine.
type bentMutes struct {
	st                    whole
	forever, nobody, cuts bool
	trusts, forgets       bool
	put                   []store.Mute
}

func (b *bentMutes) PutMute(ctx context.Context, m store.Mute) (store.Mute, error) {
	if b.nobody {
		ctx = store.WithActor(ctx, "")
	}
	if now := time.Now(); b.cuts && m.Validate(now) != nil {
		m.Until = now.Add(time.Hour)
	}
	if b.forgets {
		ctx = store.WithTrustedTime(ctx, time.Time{})
	}
	m, err := b.st.PutMute(ctx, m)
	if err == nil {
		b.put = append(b.put, m)
	}
	return m, err
}

func (b *bentMutes) DropMute(ctx context.Context, key string) error {
	b.put = slices.DeleteFunc(b.put, func(m store.Mute) bool { return m.Key == key })
	return b.st.DropMute(ctx, key)
}

func (b *bentMutes) Mutes(ctx context.Context) ([]store.Mute, error) {
	if b.forever {
		slices.SortFunc(b.put, func(x, y store.Mute) int { return cmp.Compare(x.Key, y.Key) })
		return b.put, nil
	}
	if b.trusts {
		ctx = store.WithTrustedTime(ctx, time.Time{})
	}
	return b.st.Mutes(ctx)
}
