package mutant

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// appTokenMutants break what is kept of tokens of apps.
func appTokenMutants() []Mutant {
	bent := func(b bentAppTokens) func(whole) any {
		return func(s whole) any {
			b := b
			b.st = s
			return &b
		}
	}
	return []Mutant{
		{"TokensOfAppsLastForEver", bent(bentAppTokens{forever: true}), []string{"AppTokens/ATokenOfAppsExpires"}},
		{"WhoMakesATokenIsForgotten", bent(bentAppTokens{nobody: true}), []string{"AppTokens/ATokenOfAppsIsKept", "AppTokens/EachTokenOfAppsIsRecorded"}},
		{"AnyHashIsUsed", bent(bentAppTokens{anyHash: true}), []string{"AppTokens/TheUseOfATokenIsNoted"}},
		{"ATokenTakesThePlaceOfOne", bent(bentAppTokens{replaces: true}), []string{"AppTokens/ATokenOfAppsIsKept", "AppTokens/EachTokenOfAppsIsRecorded"}},
	}
}

// bentAppTokens is a store that keeps other tokens than it was told.
type bentAppTokens struct {
	st                                 whole
	forever, nobody, anyHash, replaces bool
}

func (b *bentAppTokens) AddAppToken(ctx context.Context, t store.AppToken) (store.AppToken, error) {
	if b.nobody {
		ctx = store.WithActor(ctx, "")
	}
	if b.replaces {
		_ = b.st.RemoveAppToken(ctx, t.Name)
	}
	return b.st.AddAppToken(ctx, t)
}

func (b *bentAppTokens) AppTokens(ctx context.Context) ([]store.AppToken, error) {
	list, err := b.st.AppTokens(ctx)
	for i := range list {
		list[i].Expired = list[i].Expired && !b.forever
	}
	return list, err
}

func (b *bentAppTokens) UseAppToken(ctx context.Context, name, hash string) error {
	list, err := b.st.AppTokens(ctx)
	for _, t := range list {
		if b.anyHash && t.Name == name {
			hash = t.Hash
		}
	}
	if err != nil {
		return err
	}
	return b.st.UseAppToken(ctx, name, hash)
}
