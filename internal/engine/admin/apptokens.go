package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Tokens of apps that the store keeps, beside those of the config. Input: a token that is none of the
// config's. Output: the app that it is good for. The store is asked at most once in tokensAge, and only
// where somebody shows what could be one of its tokens: so one that is revoked, or expires, is accepted for
// no longer than that.

const (
	tokensAge      = 5 * time.Second // what was read may be so old, and an error so long ago
	tokensPatience = 2 * time.Second // a caller waits so long for the store
)

// appTokens are those of the store as they were read last.
type appTokens struct {
	*core.Core
	keeper store.AppTokenKeeper
	reads  singleflight.Group
	rarely loop.LogLimiter

	mu   sync.Mutex
	list []store.AppToken     // guarded by mu; never changed
	read bool                 // guarded by mu: the store has told the list, be it empty
	at   time.Time            // guarded by mu: when it was asked for last
	used map[string]time.Time // guarded by mu: when their use was noted last, by name
}

// WithAppTokens accepts what the config accepts, and the tokens of apps that the store keeps, if it keeps
// any.
func WithAppTokens(s *core.Core, config wire.Authorize) wire.Authorize {
	keeper, keeps := core.Given(s.Store).(store.AppTokenKeeper)
	if !keeps {
		return config
	}
	a := &appTokens{Core: s, keeper: keeper, used: map[string]time.Time{}}
	return func(ctx context.Context, app, token string) (scope string, ok bool) {
		if scope, ok = config(ctx, app, token); ok || !strings.HasPrefix(token, store.AppTokenPrefix) {
			return scope, ok
		}
		return a.authorize(ctx, app, token)
	}
}

// authorize finds the token among those of the store. A caller that names no app is known by its token,
// which then has to be of one app. The time it takes does not depend on how much of a token was right.
// Until the store has told its tokens once none is refused: the caller is to come again.
func (a *appTokens) authorize(ctx context.Context, app, token string) (scope string, ok bool) {
	hash := sha256.Sum256([]byte(token))
	var found *store.AppToken
	list, told := a.fresh(ctx)
	if !told {
		return wire.ScopeUnknown, false
	}
	for i := range list {
		if subtle.ConstantTimeCompare([]byte(list[i].Hash), hash[:]) == 1 {
			found = &list[i]
		}
	}
	switch {
	case found == nil, found.Expired, !found.Expires.After(a.Clock.Now()):
		return "", false
	case app == "" && len(found.Apps) == 1:
		app = found.Apps[0]
	case !slices.Contains(found.Apps, app):
		return "", false
	}
	a.noteUse(ctx, found)
	return app, true
}

// fresh are the tokens, read anew where they are too old, and whether the store has ever told them. While
// it does not answer those of before count, each until it expires.
func (a *appTokens) fresh(ctx context.Context) (list []store.AppToken, told bool) {
	list, told, young := a.known()
	if young {
		return list, told
	}
	_, _, _ = a.reads.Do("", func() (any, error) {
		if _, _, young := a.known(); young { // somebody else has just read them
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokensPatience)
		defer cancel()
		began := time.Now()
		list, err := a.keeper.AppTokens(ctx)
		a.mu.Lock()
		if a.at = began; err == nil { // else it is asked again no sooner than otherwise
			a.list, a.read = list, true
		}
		a.mu.Unlock()
		if err != nil && a.rarely.Allow("read") { // whoever shows what could be one of them may have it read
			a.Logger.Warn("xxljob: the tokens that the store keeps could not be read; those of before count", "error", err)
		}
		return nil, nil
	})
	list, told, _ = a.known()
	return list, told
}

// known are the tokens as they were read last, whether they ever were, and whether the store was asked for
// them not too long ago.
func (a *appTokens) known() (list []store.AppToken, told, young bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	age := time.Since(a.at)
	return a.list, a.read, !a.at.IsZero() && age >= 0 && age < tokensAge
}

// noteUse tells the store that a token was used, unless that was told less than a minute ago.
func (a *appTokens) noteUse(ctx context.Context, t *store.AppToken) {
	now := time.Now()
	a.mu.Lock()
	last, known := a.used[t.Name]
	due := !known || now.Sub(last) >= store.AppTokenNote || now.Before(last)
	if due {
		if len(a.used) > 2*store.MostAppTokens { // of names that there were
			clear(a.used)
		}
		a.used[t.Name] = now
	}
	a.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tokensPatience)
	defer cancel()
	if err := a.keeper.UseAppToken(ctx, t.Name, t.Hash); err != nil && a.rarely.Allow("use") {
		a.Logger.Warn("xxljob: that a token was used could not be noted", "token", t.Name, "error", err)
	}
}
