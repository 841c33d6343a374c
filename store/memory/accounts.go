package memory

// The users of a console. None of it needs shards.

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

var _ store.AccountStore = (*Store)(nil)

// accounts is what is kept of them.
type accounts struct {
	users       map[string]*store.User
	codes       []setupCode               // for the first user, oldest first
	sessions    map[string]*store.Session // by Hash
	lastSession int64
	tokens      map[int64]*store.Token
	lastToken   int64
	tries       map[int]tries // by bucket
}

type setupCode struct {
	hash  string
	until time.Time
}

func newAccounts() accounts {
	return accounts{users: map[string]*store.User{}, sessions: map[string]*store.Session{}, tokens: map[int64]*store.Token{}, tries: map[int]tries{}}
}

// AddUser inserts a user.
func (s *Store) AddUser(ctx context.Context, u store.User) (store.User, error) {
	if err := s.lookFor(ctx, func() error { return store.ValidateUser(&u) }); err != nil {
		return store.User{}, err
	}
	defer s.mu.Unlock()
	return s.addUser(ctx, u)
}

// lookFor is look for a call whose argument is valid.
func (s *Store) lookFor(ctx context.Context, validate func() error) error {
	if err := over(ctx); err != nil {
		return err
	}
	if err := validate(); err != nil {
		return err
	}
	return s.look(ctx)
}

func (s *Store) addUser(ctx context.Context, u store.User) (store.User, error) {
	if s.accounts.users[u.Name] != nil {
		return store.User{}, failed(store.ErrUserExists, "add user %q", u.Name)
	}
	now := s.clock()
	u.Grants, u.Version, u.Added, u.PasswordSet = u.Grants.Clone(), 1, now, now
	s.accounts.users[u.Name] = &u
	s.noteUser(ctx, nil, &u, now)
	return userCopy(&u), nil
}

// noteUser writes an entry about the user if it has changed.
func (s *Store) noteUser(ctx context.Context, before, after *store.User, now time.Time) {
	var c store.Change
	if c.OfUser(ctx, before, after) {
		s.write(c, nil, now)
	}
}

func userCopy(u *store.User) store.User {
	out := *u
	out.Grants = u.Grants.Clone()
	return out
}

// AddFirstUser inserts an admin where there is no user.
func (s *Store) AddFirstUser(ctx context.Context, u store.User, code string) (store.User, error) {
	u.Admin, u.Disabled = true, false
	if err := s.lookFor(ctx, func() error { return store.ValidateUser(&u) }); err != nil {
		return store.User{}, err
	}
	defer s.mu.Unlock()
	now := s.clock()
	counts := func(c setupCode) bool { return c.hash == code && now.Before(c.until) }
	switch {
	case len(s.accounts.users) > 0:
		return store.User{}, failed(store.ErrUserExists, "add the first user")
	case !slices.ContainsFunc(s.accounts.codes, counts):
		return store.User{}, failed(store.ErrNotFound, "the code for the first user")
	}
	s.accounts.codes = nil
	return s.addUser(ctx, u)
}

// AddSetupCode stores a code for the first user.
func (s *Store) AddSetupCode(ctx context.Context, hash string, valid time.Duration) error {
	if err := s.lookFor(ctx, func() error { return store.CheckCode(hash, valid) }); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if len(s.accounts.users) > 0 {
		return failed(store.ErrUserExists, "add a code for the first user")
	}
	codes := append(s.accounts.codes, setupCode{hash, s.clock().Add(valid)})
	s.accounts.codes = codes[max(0, len(codes)-store.MostCodes):]
	return nil
}

// UpdateUser replaces a user.
func (s *Store) UpdateUser(ctx context.Context, u store.User) (store.User, error) {
	if err := s.lookFor(ctx, func() error { return store.ValidateUser(&u) }); err != nil {
		return store.User{}, err
	}
	defer s.mu.Unlock()
	was, err := s.userAt(u.Name, u.Version)
	if err == nil && was.Admin && !was.Disabled && (!u.Admin || u.Disabled) {
		err = s.notLastAdmin(u.Name)
	}
	if err != nil {
		return store.User{}, failed(err, "update user %q", u.Name)
	}
	now := s.clock()
	u.Grants, u.Version = u.Grants.Clone(), was.Version+1
	u.Settings, u.Added, u.PasswordSet = was.Settings, was.Added, was.PasswordSet
	if u.Password != was.Password {
		u.PasswordSet = now
	}
	if u.Disabled || u.Password != was.Password {
		s.endSessions(u.Name)
	}
	s.noteUser(ctx, was, &u, now)
	s.accounts.users[u.Name] = &u
	return userCopy(&u), nil
}

// userAt returns the user if the version is the present one.
func (s *Store) userAt(name string, version int64) (*store.User, error) {
	u := s.accounts.users[name]
	switch {
	case u == nil:
		return nil, store.ErrNotFound
	case u.Version != version:
		return nil, store.ErrConflict
	}
	return u, nil
}

// notLastAdmin returns an error unless there is another admin.
func (s *Store) notLastAdmin(name string) error {
	for _, u := range s.accounts.users {
		if u.Admin && !u.Disabled && u.Name != name {
			return nil
		}
	}
	return store.ErrLastAdmin
}

// RemoveUser deletes a user.
func (s *Store) RemoveUser(ctx context.Context, name string, version int64) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	was, err := s.userAt(name, version)
	if err == nil && was.Admin && !was.Disabled {
		err = s.notLastAdmin(name)
	}
	if err != nil {
		return failed(err, "remove user %q", name)
	}
	s.endSessions(name)
	maps.DeleteFunc(s.accounts.tokens, func(_ int64, t *store.Token) bool { return t.User == name })
	delete(s.accounts.users, name)
	s.noteUser(ctx, was, nil, s.clock())
	return nil
}

// RehashPassword replaces the hash of a password by another one of the same.
func (s *Store) RehashPassword(ctx context.Context, name, old, hash string) error {
	if err := s.lookFor(ctx, func() error { return store.ValidateUser(&store.User{Name: "-", Password: hash}) }); err != nil {
		return err
	}
	defer s.mu.Unlock()
	u := s.accounts.users[name]
	switch {
	case u == nil:
		return failed(store.ErrNotFound, "password of user %q", name)
	case u.Password != old:
		return failed(store.ErrConflict, "password of user %q", name)
	}
	u.Password = hash
	return nil
}

// SaveSettings replaces the settings of a user.
func (s *Store) SaveSettings(ctx context.Context, name, settings string) error {
	if err := s.lookFor(ctx, func() error { return store.ValidateUser(&store.User{Name: "-", Settings: settings}) }); err != nil {
		return err
	}
	defer s.mu.Unlock()
	u := s.accounts.users[name]
	if u == nil {
		return failed(store.ErrNotFound, "settings of user %q", name)
	}
	u.Settings = settings
	return nil
}

// User returns a user.
func (s *Store) User(ctx context.Context, name string) (store.User, error) {
	if err := s.look(ctx); err != nil {
		return store.User{}, err
	}
	defer s.mu.Unlock()
	u := s.accounts.users[name]
	if u == nil {
		return store.User{}, failed(store.ErrNotFound, "user %q", name)
	}
	return userCopy(u), nil
}

// Users returns users in order of name.
func (s *Store) Users(ctx context.Context, after string, limit int) ([]store.User, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.User
	for _, name := range slices.Sorted(maps.Keys(s.accounts.users)) {
		if name > after && len(out) < limit {
			out = append(out, userCopy(s.accounts.users[name]))
		}
	}
	return out, nil
}
