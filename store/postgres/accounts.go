package postgres

// The users of a console. Whoever may leave no admin locks all admins first, in order of name;
// whoever makes the first user locks all codes, in order of hash.

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

var _ store.AccountStore = (*Store)(nil)

// AddUser inserts a user.
func (s *Store) AddUser(ctx context.Context, u store.User) (store.User, error) {
	if err := valid(ctx, func() error { return store.ValidateUser(&u) }); err != nil {
		return store.User{}, err
	}
	err := s.inTx(ctx, bounds{name: "add_user"}, func(t *tx) error { return s.addUser(ctx, t, &u) })
	if err != nil {
		return store.User{}, failed(err, "add user %q", u.Name)
	}
	return u, nil
}

// valid returns what is wrong with a call before the server is asked.
func valid(ctx context.Context, argument func() error) error {
	if err := ended(ctx); err != nil {
		return err
	}
	return argument()
}

// addUser inserts the user and fills in what is the store's.
func (s *Store) addUser(ctx context.Context, t *tx, u *store.User) error {
	var added []store.User
	if err := t.do(ctx, s.sql.addUser.by(userArgs(u, named{{"settings", u.Settings}})).into(readUsers(&added))); err != nil {
		return err
	}
	if len(added) == 0 {
		return store.ErrUserExists
	}
	*u = added[0]
	return s.noteUser(ctx, t, nil, u)
}

// noteUser writes an entry about the user if it has changed.
func (s *Store) noteUser(ctx context.Context, t *tx, before, after *store.User) error {
	if c := (changed{}); c.OfUser(ctx, before, after) {
		return t.do(ctx, s.note(c))
	}
	return nil
}

func userArgs(u *store.User, more named) named {
	return append(named{
		{"name", u.Name}, {"title", u.Title}, {"password", u.Password}, {"role", roleOf(u.Grants)},
		{"permission", permissionOf(u.Grants)}, {"scripts", u.Scripts}, {"disabled", u.Disabled},
	}, more...)
}

// roleOf is XXL-JOB's number: 1 for an admin.
func roleOf(g store.Grants) int {
	if g.Admin {
		return 1
	}
	return 0
}

func permissionOf(g store.Grants) string {
	if len(g.Apps) == 0 {
		return ""
	}
	text, _ := json.Marshal(g.Apps) // of texts, which all have a JSON
	return string(text)
}

// grantsOf are the rights as they are stored. What somebody else has written there and is no
// JSON gives none.
func grantsOf(role int16, permission string, scripts bool) store.Grants {
	g := store.Grants{Admin: role == 1, Scripts: scripts}
	if permission != "" {
		_ = json.Unmarshal([]byte(permission), &g.Apps)
	}
	return g
}

// AddFirstUser inserts an admin where there is no user.
func (s *Store) AddFirstUser(ctx context.Context, u store.User, code string) (store.User, error) {
	u.Admin, u.Disabled = true, false
	if err := valid(ctx, func() error { return store.ValidateUser(&u) }); err != nil {
		return store.User{}, err
	}
	err := s.inTx(ctx, bounds{name: "add_first_user"}, func(t *tx) error {
		counts, there := false, false
		if err := t.do(ctx, s.sql.lockCodes.with([]byte(code)).into(scanAny(&counts))); err != nil {
			return err
		}
		// Another statement, which sees whom the one before us has made.
		err := t.do(ctx, s.sql.anyUser.with().into(scanInto(&there)))
		switch {
		case err != nil:
			return err
		case there:
			return store.ErrUserExists
		case !counts:
			return store.ErrNotFound
		}
		if err := t.do(ctx, s.sql.dropCodes.with()); err != nil {
			return err
		}
		return s.addUser(ctx, t, &u)
	})
	if err != nil {
		return store.User{}, failed(err, "add the first user")
	}
	return u, nil
}

// scanAny reads rows of one truth each, and whether one of them is.
func scanAny(is *bool) result {
	return func(rows pgx.Rows) error {
		var one bool
		err := rows.Scan(&one)
		*is = *is || one
		return err
	}
}

// AddSetupCode stores a code for the first user.
func (s *Store) AddSetupCode(ctx context.Context, hash string, counts time.Duration) error {
	if err := valid(ctx, func() error { return store.CheckCode(hash, counts) }); err != nil {
		return err
	}
	err := s.inTx(ctx, bounds{name: "add_setup_code"}, func(t *tx) error {
		there := false
		err := t.do(ctx, s.sql.anyUser.with().into(scanInto(&there)))
		if err == nil && there {
			err = store.ErrUserExists
		}
		if err != nil {
			return err
		}
		return t.do(ctx, s.sql.addCode.by(named{{"hash", []byte(hash)}, {"ms", counts.Milliseconds()}}), s.sql.trimCodes.with(store.MostCodes))
	})
	return failed(err, "add a code for the first user")
}

// sayable is a name as the server can be asked for it, which takes no text with a NUL or what is
// no UTF-8 in it: nobody is called what is put there, which each encoding has.
func sayable(name string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(name, "\x01"), "\x00", "\x01")
}

// UpdateUser replaces a user.
func (s *Store) UpdateUser(ctx context.Context, u store.User) (store.User, error) {
	if err := valid(ctx, func() error { return store.ValidateUser(&u) }); err != nil {
		return store.User{}, err
	}
	err := s.inTx(ctx, bounds{name: "update_user"}, func(t *tx) error {
		was, err := s.lockUser(ctx, t, u.Name, u.Version, !u.Admin || u.Disabled)
		if err != nil {
			return err
		}
		var after []store.User
		statements := []statement{s.sql.updateUser.by(userArgs(&u, nil)).into(readUsers(&after))}
		if u.Disabled || u.Password != was.Password {
			statements = append(statements, s.sql.endSessions.with(u.Name))
		}
		if err := t.do(ctx, statements...); err != nil {
			return err
		}
		u = after[0]
		return s.noteUser(ctx, t, was, &u)
	})
	if err != nil {
		return store.User{}, failed(err, "change user %q", u.Name)
	}
	return u, nil
}

// lockUser locks a user, and all admins, so that it is known whether one is left if the user
// stops being one.
func (s *Store) lockUser(ctx context.Context, t *tx, name string, version int64, stops bool) (*store.User, error) {
	var have []store.User
	if err := t.do(ctx, s.sql.lockUsers.with(sayable(name)).into(readUsers(&have))); err != nil {
		return nil, err
	}
	var user *store.User
	others := 0
	for i := range have {
		switch u := &have[i]; {
		case u.Name == name:
			user = u
		case u.Admin && !u.Disabled: // as it is after the wait for its lock
			others++
		}
	}
	switch {
	case user == nil:
		return nil, store.ErrNotFound
	case user.Version != version:
		return nil, store.ErrConflict
	case stops && user.Admin && !user.Disabled && others == 0:
		return nil, store.ErrLastAdmin
	}
	return user, nil
}

// RemoveUser deletes a user.
func (s *Store) RemoveUser(ctx context.Context, name string, version int64) error {
	err := s.inTx(ctx, bounds{name: "remove_user"}, func(t *tx) error {
		was, err := s.lockUser(ctx, t, name, version, true)
		if err != nil {
			return err
		}
		if err := t.do(ctx, s.sql.endSessions.with(name), s.sql.removeTokens.with(name), s.sql.removeUser.with(name)); err != nil {
			return err
		}
		return s.noteUser(ctx, t, was, nil)
	})
	return failed(err, "remove user %q", name)
}

// RehashPassword replaces the hash of a password by another one of the same.
func (s *Store) RehashPassword(ctx context.Context, name, old, hash string) error {
	if err := valid(ctx, func() error { return store.ValidateUser(&store.User{Name: "-", Password: hash}) }); err != nil {
		return err
	}
	there, done := false, false
	err := s.one(ctx, bounds{name: "rehash_password"}, s.sql.rehash.by(named{{"name", sayable(name)}, {"old", sayable(old)}, {"hash", hash}}).into(func(rows pgx.Rows) error {
		there = true
		return rows.Scan(&done)
	}))
	switch {
	case err != nil:
	case !there:
		err = store.ErrNotFound
	case !done:
		err = store.ErrConflict
	}
	return failed(err, "password of user %q", name)
}

// SaveSettings replaces the settings of a user.
func (s *Store) SaveSettings(ctx context.Context, name, settings string) error {
	if err := valid(ctx, func() error { return store.ValidateUser(&store.User{Name: "-", Settings: settings}) }); err != nil {
		return err
	}
	return failed(s.oneRow(ctx, "save_settings", s.sql.saveSettings.with(sayable(name), settings)), "settings of user %q", name)
}

// oneRow runs a statement that returns a row where what it is about is there.
func (s *Store) oneRow(ctx context.Context, name string, st statement) error {
	n := 0
	err := s.one(ctx, bounds{name: name}, st.into(func(pgx.Rows) error { n++; return nil }))
	if err == nil && n == 0 {
		err = store.ErrNotFound
	}
	return err
}

// User returns a user.
func (s *Store) User(ctx context.Context, name string) (store.User, error) {
	var have []store.User
	err := s.readByIndex(ctx, s.sql.user.with(sayable(name)).into(readUsers(&have)))
	if err == nil && len(have) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.User{}, failed(err, "user %q", name)
	}
	return have[0], nil
}

// Users returns users in order of name.
func (s *Store) Users(ctx context.Context, after string, limit int) ([]store.User, error) {
	var have []store.User
	err := s.readByIndex(ctx, s.sql.users.with(sayable(after), max(limit, 0)).into(readUsers(&have)))
	return have, failed(err, "list users")
}

func readUsers(list *[]store.User) result {
	return func(rows pgx.Rows) error {
		var u userRow
		err := rows.Scan(u.fields()...)
		*list = append(*list, u.user())
		return err
	}
}

// userRow is a user as it is read.
type userRow struct {
	store.User
	role       int16
	permission string
}

// userColumns are what userRow reads, of a table u.
const userColumns = `u.username, u.title, u.password, u.role, u.permission, u.scripts, u.disabled, u.settings, u.version, u.added, u.password_set`

func (u *userRow) fields() []any {
	return []any{&u.Name, &u.Title, &u.Password, &u.role, &u.permission, &u.Scripts, &u.Disabled, &u.Settings, &u.Version, &u.Added, &u.PasswordSet}
}

func (u *userRow) user() store.User {
	u.Grants = grantsOf(u.role, u.permission, u.Scripts)
	u.Added, u.PasswordSet = u.Added.UTC(), u.PasswordSet.UTC()
	return u.User
}

// accountQueries are the statements of this file.
type accountQueries struct {
	addUser, anyUser, updateUser, lockUsers, removeUser, rehash, saveSettings, user, users query
	addCode, trimCodes, lockCodes, dropCodes                                               query
}

func (q *accountQueries) define(sql template) {
	q.addUser = sql(`insert into {{schema}}.xxl_job_user as u (username, title, password, role, permission, scripts, disabled, settings, version, added, password_set)
	values ({{arg.name}}, {{arg.title}}, {{arg.password}}, {{arg.role}}, {{arg.permission}}, {{arg.scripts}}, {{arg.disabled}}, {{arg.settings}}, 1, {{now}}, {{now}})
	on conflict (username) do nothing returning ` + userColumns)
	q.anyUser = sql(`select exists (select from {{schema}}.xxl_job_user)`)
	q.updateUser = sql(`update {{schema}}.xxl_job_user as u set title = {{arg.title}}, role = {{arg.role}}, permission = {{arg.permission}}, scripts = {{arg.scripts}},
		disabled = {{arg.disabled}}, version = u.version + 1, password = {{arg.password}},
		password_set = case when u.password = {{arg.password}}::text then u.password_set else {{now}} end
	where u.username = {{arg.name}} returning ` + userColumns)
	q.lockUsers = sql(`select ` + userColumns + ` from {{schema}}.xxl_job_user u
	where u.username = any(array(select $1::text collate "C" union all select a.username from {{schema}}.xxl_job_user a where a.role = 1)) order by u.username for no key update`)
	q.removeUser = sql(`delete from {{schema}}.xxl_job_user where username = $1`)
	// A row where there is the user, which says whether its hash was the one that is replaced.
	q.rehash = sql(`with done as (update {{schema}}.xxl_job_user set password = {{arg.hash}} where username = {{arg.name}} and password = {{arg.old}} returning 1)
	select exists (select from done) from {{schema}}.xxl_job_user where username = {{arg.name}}`)
	q.saveSettings = sql(`update {{schema}}.xxl_job_user set settings = $2 where username = $1 returning 1`)
	q.user = sql(`select ` + userColumns + ` from {{schema}}.xxl_job_user u where u.username = $1`)
	q.users = sql(`select ` + userColumns + ` from {{schema}}.xxl_job_user u where u.username > $1 order by u.username limit $2`)

	q.addCode = sql(`insert into {{schema}}.xxl_job_user_code (hash, until) values ({{arg.hash}}, {{now}} + {{arg.ms}}::bigint::double precision * interval '1 millisecond')
	on conflict (hash) do update set until = excluded.until`)
	q.trimCodes = sql(`delete from {{schema}}.xxl_job_user_code c where c.id <= (select o.id from {{schema}}.xxl_job_user_code o order by o.id desc offset $1 limit 1)`)
	q.lockCodes = sql(`select c.hash = $1 and c.until > {{now}} from {{schema}}.xxl_job_user_code c order by c.hash for update`)
	q.dropCodes = sql(`delete from {{schema}}.xxl_job_user_code`)
}
