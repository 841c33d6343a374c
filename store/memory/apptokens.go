package memory

// Tokens of apps.

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

var _ store.AppTokenKeeper = (*Store)(nil)

// AddAppToken keeps a token.
func (s *Store) AddAppToken(ctx context.Context, t store.AppToken) (store.AppToken, error) {
	if err := s.look(ctx); err != nil {
		return store.AppToken{}, err
	}
	defer s.mu.Unlock()
	now := s.clock()
	if err := t.Validate(now); err != nil {
		return store.AppToken{}, err
	}
	if _, there := s.appTokens[t.Name]; there {
		return store.AppToken{}, failed(store.ErrConflict, "add token %q", t.Name)
	}
	if len(s.appTokens) >= store.MostAppTokens {
		return store.AppToken{}, failed(store.ErrTooManyTokens, "add token %q", t.Name)
	}
	t.Apps, t.Expires = slices.Clone(t.Apps), t.Expires.UTC().Truncate(time.Millisecond)
	t.Added, t.Used, t.By, t.Expired = now, time.Time{}, store.Actor(ctx), false
	var c store.Change
	c.OfAppToken(ctx, nil, &t)
	s.write(c, nil, now)
	s.appTokens[t.Name] = t
	return shownAppToken(t, now), nil
}

// shownAppToken is a token as it is returned, which shares nothing.
func shownAppToken(t store.AppToken, now time.Time) store.AppToken {
	t.Apps, t.Expired = slices.Clone(t.Apps), !t.Expires.After(now)
	return t
}

// RemoveAppToken deletes a token.
func (s *Store) RemoveAppToken(ctx context.Context, name string) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	was, there := s.appTokens[name]
	if !there {
		return failed(store.ErrNotFound, "token %q", name)
	}
	delete(s.appTokens, name)
	var c store.Change
	c.OfAppToken(ctx, &was, nil)
	s.write(c, nil, s.clock())
	return nil
}

// AppTokens returns all.
func (s *Store) AppTokens(ctx context.Context) (list []store.AppToken, err error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := s.clock()
	for _, name := range slices.Sorted(maps.Keys(s.appTokens)) {
		list = append(list, shownAppToken(s.appTokens[name], now))
	}
	return list, nil
}

// UseAppToken notes that a token was used.
func (s *Store) UseAppToken(ctx context.Context, name, hash string) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	t, there := s.appTokens[name]
	if now := s.clock(); there && t.Hash == hash && (t.Used.IsZero() || now.Sub(t.Used) >= store.AppTokenNote || t.Used.Sub(now) > store.ClockAhead) {
		t.Used = now
		s.appTokens[name] = t
	}
	return nil
}
