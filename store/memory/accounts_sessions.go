package memory

// Sessions, tokens and tries of the users of a console.

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// AddSession begins a session.
func (s *Store) AddSession(ctx context.Context, n store.Session, limits store.SessionLimits) (store.Session, error) {
	if err := s.lookFor(ctx, func() error { return errors.Join(store.CheckHash(n.Hash), limits.Check()) }); err != nil {
		return store.Session{}, err
	}
	defer s.mu.Unlock()
	if u := s.accounts.users[n.User]; u == nil || u.Disabled {
		return store.Session{}, failed(store.ErrNotFound, "user %q, who may log in", n.User)
	}
	if s.accounts.sessions[n.Hash] != nil {
		return store.Session{}, failed(store.ErrConflict, "begin a session of user %q", n.User)
	}
	now := s.clock()
	if !limits.Doubted {
		maps.DeleteFunc(s.accounts.sessions, func(_ string, o *store.Session) bool { return limits.Over(o, now) })
		for _, o := range s.accounts.sessions {
			if isAhead(o, now) {
				see(o, now)
			}
		}
	}
	s.accounts.lastSession++
	n.ID, n.Began, n.Seen, n.Proved = s.accounts.lastSession, now, now, now
	n.Client, n.Agent = store.Shown(n.Client, store.MostClient), store.Shown(n.Agent, store.MostAgent)
	s.accounts.sessions[n.Hash] = &n
	for mine := s.sessionsOf(n.User); len(mine) > store.MostSessions; mine = mine[:len(mine)-1] {
		delete(s.accounts.sessions, mine[len(mine)-1].Hash)
	}
	return n, nil
}

// sessionsOf are the sessions of a user, the one seen last first.
func (s *Store) sessionsOf(user string) (mine []*store.Session) {
	for _, o := range s.accounts.sessions {
		if o.User == user {
			mine = append(mine, o)
		}
	}
	slices.SortFunc(mine, func(a, b *store.Session) int { return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(b.ID, a.ID)) })
	return mine
}

// endSessions ends all of a user.
func (s *Store) endSessions(user string) {
	maps.DeleteFunc(s.accounts.sessions, func(_ string, o *store.Session) bool { return o.User == user })
}

// Session returns a session and its user.
func (s *Store) Session(ctx context.Context, hash string, limits store.SessionLimits) (store.Session, store.User, error) {
	if err := s.lookFor(ctx, limits.Check); err != nil {
		return store.Session{}, store.User{}, err
	}
	defer s.mu.Unlock()
	o, now := s.accounts.sessions[hash], s.clock()
	if o == nil || limits.Over(o, now) {
		return store.Session{}, store.User{}, failed(store.ErrNotFound, "session")
	}
	if now.Sub(o.Seen) >= limits.Note || isAhead(o, now) && !limits.Doubted {
		see(o, now)
	}
	return *o, userCopy(s.accounts.users[o.User]), nil
}

// isAhead reports whether a session was seen by a clock that was ahead.
func isAhead(o *store.Session, now time.Time) bool { return o.Seen.Sub(now) > store.ClockAhead }

// see notes that a session is used: none of its times is later.
func see(o *store.Session, now time.Time) {
	o.Seen = now
	for _, at := range []*time.Time{&o.Began, &o.Proved} {
		if at.After(now) {
			*at = now
		}
	}
}

// ProveSession notes that the password was given.
func (s *Store) ProveSession(ctx context.Context, hash string) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	o := s.accounts.sessions[hash]
	if o == nil {
		return failed(store.ErrNotFound, "session")
	}
	o.Proved = s.clock()
	return nil
}

// EndSession ends a session of the user.
func (s *Store) EndSession(ctx context.Context, user string, id int64) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for hash, o := range s.accounts.sessions {
		if o.ID == id && o.User == user {
			delete(s.accounts.sessions, hash)
			return nil
		}
	}
	return failed(store.ErrNotFound, "session %d of user %q", id, user)
}

// Sessions returns the sessions of a user.
func (s *Store) Sessions(ctx context.Context, user string, limits store.SessionLimits) ([]store.Session, error) {
	if err := s.lookFor(ctx, limits.Check); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.Session
	for _, o := range s.sessionsOf(user) {
		if !limits.Over(o, s.clock()) {
			out = append(out, *o)
		}
	}
	return out, nil
}

// AddToken inserts a token.
func (s *Store) AddToken(ctx context.Context, t store.Token) (store.Token, error) {
	if err := s.lookFor(ctx, func() error { return store.ValidateToken(&t) }); err != nil {
		return store.Token{}, err
	}
	defer s.mu.Unlock()
	switch {
	case s.accounts.users[t.User] == nil:
		return store.Token{}, failed(store.ErrNotFound, "user %q", t.User)
	case len(s.tokensOf(t.User)) >= store.MostTokens:
		return store.Token{}, failed(store.ErrTooManyTokens, "add a token of user %q", t.User)
	}
	now := s.clock()
	s.accounts.lastToken++
	t.ID, t.Grants, t.Added, t.Used, t.Expires = s.accounts.lastToken, t.Grants.Clone(), now, time.Time{}, stored(t.Expires)
	s.accounts.tokens[t.ID] = &t
	s.noteToken(ctx, nil, &t, now)
	return tokenCopy(&t), nil
}

func (s *Store) noteToken(ctx context.Context, before, after *store.Token, now time.Time) {
	var c store.Change
	c.OfToken(ctx, before, after)
	s.write(c, nil, now)
}

func tokenCopy(t *store.Token) store.Token {
	out := *t
	out.Grants = t.Grants.Clone()
	return out
}

// tokensOf are the tokens of a user, in order of id.
func (s *Store) tokensOf(user string) (mine []*store.Token) {
	for _, id := range slices.Sorted(maps.Keys(s.accounts.tokens)) {
		if t := s.accounts.tokens[id]; t.User == user {
			mine = append(mine, t)
		}
	}
	return mine
}

// Token returns a token and its user.
func (s *Store) Token(ctx context.Context, id int64, hash string) (store.Token, store.User, error) {
	if err := s.look(ctx); err != nil {
		return store.Token{}, store.User{}, err
	}
	defer s.mu.Unlock()
	t, now := s.accounts.tokens[id], s.clock()
	if t == nil || t.Hash != hash || !now.Before(t.Expires) || s.accounts.users[t.User].Disabled {
		return store.Token{}, store.User{}, failed(store.ErrNotFound, "token %d", id)
	}
	if now.Sub(t.Used) >= store.TokenNote || t.Used.Sub(now) > store.ClockAhead {
		t.Used = now
	}
	return tokenCopy(t), userCopy(s.accounts.users[t.User]), nil
}

// RemoveToken deletes a token of the user.
func (s *Store) RemoveToken(ctx context.Context, user string, id int64) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	t := s.accounts.tokens[id]
	if t == nil || t.User != user {
		return failed(store.ErrNotFound, "token %d of user %q", id, user)
	}
	delete(s.accounts.tokens, id)
	s.noteToken(ctx, t, nil, s.clock())
	return nil
}

// Tokens returns the tokens of a user.
func (s *Store) Tokens(ctx context.Context, user string) ([]store.Token, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.Token
	for _, t := range s.tokensOf(user) {
		out = append(out, tokenCopy(t))
	}
	return out, nil
}

// tries are logins that have failed, or are being tried.
type tries struct {
	n    int
	last time.Time
}

// TryLogin counts a try, or says how long it has to wait.
func (s *Store) TryLogin(ctx context.Context, name string) (time.Duration, error) {
	if err := s.look(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	at, now := store.LoginBucket(name), s.clock()
	was := s.accounts.tries[at]
	since := now.Sub(was.last)
	if since >= store.TriesKept {
		was.n = 0
	}
	if wait := store.LoginWait(was.n) - since; wait > 0 && since >= -time.Minute { // a clock that was set back makes nobody wait for long
		return min(wait, store.LongestWait), nil
	}
	s.accounts.tries[at] = tries{was.n + 1, now}
	return 0, nil
}

// PassLogin forgets the tries by a name.
func (s *Store) PassLogin(ctx context.Context, name string) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	delete(s.accounts.tries, store.LoginBucket(name))
	return nil
}
