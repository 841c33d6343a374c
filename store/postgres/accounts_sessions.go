package postgres

// Sessions and tokens of the users of a console, and tries to log in.

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// AddSession begins a session.
func (s *Store) AddSession(ctx context.Context, n store.Session, limits store.SessionLimits) (store.Session, error) {
	if err := valid(ctx, func() error { return errors.Join(store.CheckHash(n.Hash), limits.Check()) }); err != nil {
		return store.Session{}, err
	}
	n.Client, n.Agent = store.Shown(n.Client, store.MostClient), store.Shown(n.Agent, store.MostAgent)
	err := s.inTx(ctx, bounds{name: "add_session"}, func(t *tx) error {
		var may bool
		err := t.do(ctx, s.sql.lockLogin.with(sayable(n.User)).into(scanAny(&may)))
		if err == nil && !may {
			err = store.ErrNotFound
		}
		if err != nil {
			return err
		}
		if !limits.Doubted {
			err = t.do(ctx, s.sql.dropIdle.with(limits.Idle.Milliseconds()), s.sql.dropOld.with(limits.Most.Milliseconds()), s.sql.redateSessions.with(aheadMilli))
			if err != nil {
				return err
			}
		}
		var began []store.Session
		err = t.do(ctx,
			s.sql.addSession.by(named{{"hash", []byte(n.Hash)}, {"user", n.User}, {"client", n.Client}, {"agent", n.Agent}}).into(readSessions(&began)),
			s.sql.trimSessions.with(n.User, store.MostSessions))
		if err == nil && len(began) == 0 {
			err = store.ErrConflict
		}
		if err == nil {
			n = began[0]
		}
		return err
	})
	if err != nil {
		return store.Session{}, failed(err, "session of user %q", n.User)
	}
	return n, nil
}

// Session returns a session and its user.
func (s *Store) Session(ctx context.Context, hash string, limits store.SessionLimits) (o store.Session, u store.User, err error) {
	if err := valid(ctx, limits.Check); err != nil {
		return o, u, err
	}
	found, note := false, false
	err = s.readByIndex(ctx, s.sql.session.by(named{
		{"hash", []byte(hash)}, {"idle", limits.Idle.Milliseconds()}, {"most", limits.Most.Milliseconds()}, {"note", limits.Note.Milliseconds()},
		{"ahead", aheadMilli}, {"doubted", limits.Doubted},
	}).into(func(rows pgx.Rows) error {
		found = true
		var row userRow
		err := rows.Scan(append(append(sessionFields(&o), &note), row.fields()...)...)
		o, u = inUTC(o), row.user()
		return err
	}))
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err == nil && note {
		err = s.one(ctx, bounds{name: "see_session"}, s.sql.seeSession.with([]byte(hash)).into(func(rows pgx.Rows) error { return rows.Scan(&o.Began, &o.Seen, &o.Proved) }))
		o = inUTC(o)
	}
	if err != nil {
		return store.Session{}, store.User{}, failed(err, "session")
	}
	return o, u, nil
}

// ProveSession notes that the password was given.
func (s *Store) ProveSession(ctx context.Context, hash string) error {
	return failed(s.oneRow(ctx, "prove_session", s.sql.proveSession.with([]byte(hash))), "session")
}

// EndSession ends a session of the user.
func (s *Store) EndSession(ctx context.Context, user string, id int64) error {
	return failed(s.oneRow(ctx, "end_session", s.sql.endSession.with(sayable(user), id)), "session %d of user %q", id, user)
}

// Sessions returns the sessions of a user.
func (s *Store) Sessions(ctx context.Context, user string, limits store.SessionLimits) ([]store.Session, error) {
	if err := valid(ctx, limits.Check); err != nil {
		return nil, err
	}
	var list []store.Session
	err := s.readByIndex(ctx, s.sql.sessions.by(named{{"user", sayable(user)}, {"idle", limits.Idle.Milliseconds()}, {"most", limits.Most.Milliseconds()}}).into(readSessions(&list)))
	return list, failed(err, "sessions of user %q", user)
}

// aheadMilli is store.ClockAhead as statements take it.
const aheadMilli = int64(store.ClockAhead / time.Millisecond)

// sessionColumns are what sessionFields reads, of a table o.
const sessionColumns = `o.hash, o.id, o.username, o.client, o.agent, o.began, o.seen, o.proved`

func sessionFields(o *store.Session) []any {
	return []any{(*bytesText)(&o.Hash), &o.ID, &o.User, &o.Client, &o.Agent, &o.Began, &o.Seen, &o.Proved}
}

func inUTC(o store.Session) store.Session {
	o.Began, o.Seen, o.Proved = o.Began.UTC(), o.Seen.UTC(), o.Proved.UTC()
	return o
}

func readSessions(list *[]store.Session) result {
	return func(rows pgx.Rows) error {
		var o store.Session
		err := rows.Scan(sessionFields(&o)...)
		*list = append(*list, inUTC(o))
		return err
	}
}

// bytesText is a text that the database keeps as bytes.
type bytesText string

// ScanBytes implements pgtype.BytesScanner.
func (b *bytesText) ScanBytes(v []byte) error {
	*b = bytesText(v)
	return nil
}

// TryLogin counts a try, or says how long it has to wait.
func (s *Store) TryLogin(ctx context.Context, name string) (time.Duration, error) {
	counted := false
	var n int
	var since float64 // seconds
	bucket := store.LoginBucket(name)
	err := s.one(ctx, bounds{name: "try_login"}, s.sql.tryLogin.by(named{
		{"bucket", bucket}, {"free", store.FreeTries}, {"longest", store.LongestWait.Seconds()}, {"kept", store.TriesKept.Seconds()},
	}).into(func(pgx.Rows) error { counted = true; return nil }))
	if err == nil && !counted {
		err = s.readByIndex(ctx, s.sql.tries.with(bucket).into(scanInto(&n, &since)))
	}
	if err != nil {
		return 0, failed(err, "try to log in")
	}
	if counted {
		return 0, nil
	}
	wait := store.LoginWait(n) - time.Duration(since*float64(time.Second))
	return min(max(wait, time.Millisecond), store.LongestWait), nil
}

// PassLogin forgets the tries by a name.
func (s *Store) PassLogin(ctx context.Context, name string) error {
	return failed(s.one(ctx, bounds{name: "pass_login"}, s.sql.passLogin.with(store.LoginBucket(name))), "forget tries to log in")
}

// AddToken inserts a token.
func (s *Store) AddToken(ctx context.Context, n store.Token) (store.Token, error) {
	if err := valid(ctx, func() error { return store.ValidateToken(&n) }); err != nil {
		return store.Token{}, err
	}
	err := s.inTx(ctx, bounds{name: "add_token"}, func(t *tx) error {
		there, have := false, 0
		// Who adds another one at the same time waits.
		err := t.do(ctx, s.sql.lockOwner.with(n.User).into(func(pgx.Rows) error { there = true; return nil }))
		if err == nil && !there {
			err = store.ErrNotFound
		}
		if err == nil {
			err = t.do(ctx, s.sql.countTokens.with(n.User).into(scanInto(&have)))
		}
		if err == nil && have >= store.MostTokens {
			err = store.ErrTooManyTokens
		}
		if err != nil {
			return err
		}
		var added []store.Token
		err = t.do(ctx, s.sql.addToken.by(named{
			{"user", n.User}, {"name", n.Name}, {"role", roleOf(n.Grants)}, {"permission", permissionOf(n.Grants)}, {"scripts", n.Scripts},
			{"hash", []byte(n.Hash)}, {"expires", stored(n.Expires)},
		}).into(readTokens(&added)))
		if err != nil {
			return err
		}
		n = added[0]
		return s.noteToken(ctx, t, nil, &n)
	})
	if err != nil {
		return store.Token{}, failed(err, "add a token of user %q", n.User)
	}
	return n, nil
}

func (s *Store) noteToken(ctx context.Context, t *tx, before, after *store.Token) error {
	var c changed
	c.OfToken(ctx, before, after)
	return t.do(ctx, s.note(c))
}

// Token returns a token and its user.
func (s *Store) Token(ctx context.Context, id int64, hash string) (n store.Token, u store.User, err error) {
	found, note := false, false
	err = s.readByIndex(ctx, s.sql.token.by(named{{"id", id}, {"note", store.TokenNote.Milliseconds()}, {"ahead", aheadMilli}, {"hash", []byte(hash)}}).into(func(rows pgx.Rows) error {
		found = true
		var token tokenRow
		var user userRow
		err := rows.Scan(append(append(token.fields(), &note), user.fields()...)...)
		n, u = token.token(), user.user()
		return err
	}))
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err == nil && note {
		err = s.one(ctx, bounds{name: "use_token"}, s.sql.useToken.with(id).into(func(rows pgx.Rows) error { return rows.Scan(&n.Used) }))
		n.Used = n.Used.UTC()
	}
	if err != nil {
		return store.Token{}, store.User{}, failed(err, "token %d", id)
	}
	return n, u, nil
}

// RemoveToken deletes a token of the user.
func (s *Store) RemoveToken(ctx context.Context, user string, id int64) error {
	err := s.inTx(ctx, bounds{name: "remove_token"}, func(t *tx) error {
		var gone []store.Token
		err := t.do(ctx, s.sql.removeToken.with(sayable(user), id).into(readTokens(&gone)))
		if err == nil && len(gone) == 0 {
			err = store.ErrNotFound
		}
		if err != nil {
			return err
		}
		return s.noteToken(ctx, t, &gone[0], nil)
	})
	return failed(err, "token %d of user %q", id, user)
}

// Tokens returns the tokens of a user.
func (s *Store) Tokens(ctx context.Context, user string) ([]store.Token, error) {
	var list []store.Token
	err := s.readByIndex(ctx, s.sql.tokens.with(sayable(user)).into(readTokens(&list)))
	return list, failed(err, "tokens of user %q", user)
}

func readTokens(list *[]store.Token) result {
	return func(rows pgx.Rows) error {
		var row tokenRow
		err := rows.Scan(row.fields()...)
		*list = append(*list, row.token())
		return err
	}
}

// tokenRow is a token as it is read.
type tokenRow struct {
	store.Token
	role       int16
	permission string
	used       *time.Time
}

// tokenColumns are what tokenRow reads, of a table k.
const tokenColumns = `k.id, k.username, k.name, k.role, k.permission, k.scripts, k.hash, k.added, k.expires, k.used`

func (r *tokenRow) fields() []any {
	return []any{&r.ID, &r.User, &r.Name, &r.role, &r.permission, &r.Scripts, (*bytesText)(&r.Hash), &r.Added, &r.Expires, &r.used}
}

func (r *tokenRow) token() store.Token {
	r.Grants = grantsOf(r.role, r.permission, r.Scripts)
	r.Added, r.Expires = r.Added.UTC(), r.Expires.UTC()
	if r.used != nil {
		r.Used = r.used.UTC()
	}
	return r.Token
}

// loginQueries are the statements of this file.
type loginQueries struct {
	lockLogin, addSession, dropIdle, dropOld, redateSessions, trimSessions, session, seeSession, proveSession, endSession, endSessions, sessions query
	tryLogin, tries, passLogin                                                                                                                   query
	lockOwner, countTokens, addToken, token, useToken, removeToken, removeTokens, tokens                                                         query
}

func (q *loginQueries) define(sql template) {
	lasts := func(idle, most string) string {
		return `o.seen >= {{now}} - ` + idle + `::bigint::double precision * interval '1 millisecond' and o.began >= {{now}} - ` + most + `::bigint::double precision * interval '1 millisecond'`
	}
	// Who is being disabled or removed, or has another password, is locked until that is done. Two
	// logins of one user go one after the other: each counts the sessions that the other has begun.
	q.lockLogin = sql(`select not u.disabled from {{schema}}.xxl_job_user u where u.username = $1 for no key update`)
	q.addSession = sql(`insert into {{schema}}.xxl_job_user_session as o (hash, username, client, agent, began, seen, proved)
	values ({{arg.hash}}, {{arg.user}}, {{arg.client}}, {{arg.agent}}, {{now}}, {{now}}, {{now}}) on conflict (hash) do nothing returning ` + sessionColumns).saying()
	ended := func(field string) query {
		return sql(`delete from {{schema}}.xxl_job_user_session d where d.hash = any(array(select o.hash from {{schema}}.xxl_job_user_session o where o.` + field + ` < {{now}} - $1::bigint::double precision * interval '1 millisecond'
		order by o.` + field + ` limit 1000 for update skip locked))`)
	}
	q.dropIdle, q.dropOld = ended("seen"), ended("began")
	present := `seen = {{now}}, began = least(began, {{now}}), proved = least(proved, {{now}})`
	later := func(ahead string) string {
		return `o.seen > {{now}} + ` + ahead + `::bigint::double precision * interval '1 millisecond'`
	}
	q.redateSessions = sql(`update {{schema}}.xxl_job_user_session d set ` + present + ` where d.hash = any(array(select o.hash from {{schema}}.xxl_job_user_session o where ` + later("$1") + `
	order by o.seen limit 1000 for update skip locked))`)
	q.trimSessions = sql(`delete from {{schema}}.xxl_job_user_session d where d.hash = any(array(select o.hash from {{schema}}.xxl_job_user_session o
	where o.username = $1 order by o.seen desc, o.id desc offset $2))`)
	q.session = sql(`select ` + sessionColumns + `, o.seen <= {{now}} - {{arg.note}}::bigint::double precision * interval '1 millisecond' or not {{arg.doubted}}::boolean and ` + later("{{arg.ahead}}") + `, ` + userColumns + `
	from {{schema}}.xxl_job_user_session o join {{schema}}.xxl_job_user u on u.username = o.username
	where o.hash = {{arg.hash}} and not u.disabled and ` + lasts("{{arg.idle}}", "{{arg.most}}"))
	q.seeSession = sql(`update {{schema}}.xxl_job_user_session set ` + present + ` where hash = $1 returning began, seen, proved`)
	q.proveSession = sql(`update {{schema}}.xxl_job_user_session set proved = {{now}} where hash = $1 returning 1`)
	q.endSession = sql(`delete from {{schema}}.xxl_job_user_session where username = $1 and id = $2 returning 1`)
	q.endSessions = sql(`delete from {{schema}}.xxl_job_user_session where username = $1`)
	q.sessions = sql(`select ` + sessionColumns + ` from {{schema}}.xxl_job_user_session o where o.username = {{arg.user}} and ` + lasts("{{arg.idle}}", "{{arg.most}}") + ` order by o.seen desc, o.id desc`)

	// A clock that was set back by more than a minute makes nobody wait; calls at once see each
	// other's times from a little ahead, and those that need not wait do not.
	q.tryLogin = sql(`insert into {{schema}}.xxl_job_user_try as y (bucket, failed, last) values ({{arg.bucket}}, 1, {{now}})
	on conflict (bucket) do update set failed = case when y.last <= {{now}} - {{arg.kept}}::double precision * interval '1 second' then 1 else y.failed + 1 end,
		last = case when y.last > {{now}} + interval '1 minute' then {{now}} else greatest(y.last, {{now}}) end
	where y.failed < {{arg.free}}::int or y.last > {{now}} + interval '1 minute'
		or y.last <= {{now}} - interval '1 second' * least(power(2, least(y.failed - {{arg.free}}::int, 10)), {{arg.longest}}::double precision) returning 1`)
	q.tries = sql(`select y.failed, pg_catalog.date_part('epoch', {{now}} - y.last) from {{schema}}.xxl_job_user_try y where y.bucket = $1`)
	q.passLogin = sql(`delete from {{schema}}.xxl_job_user_try where bucket = $1`)

	q.lockOwner = sql(`select 1 from {{schema}}.xxl_job_user u where u.username = $1 for no key update`)
	q.countTokens = sql(`select count(*)::int from {{schema}}.xxl_job_user_token k where k.username = $1`)
	q.addToken = sql(`insert into {{schema}}.xxl_job_user_token as k (username, name, role, permission, scripts, hash, added, expires)
	values ({{arg.user}}, {{arg.name}}, {{arg.role}}, {{arg.permission}}, {{arg.scripts}}, {{arg.hash}}, {{now}}, {{arg.expires}}) returning ` + tokenColumns)
	q.token = sql(`select ` + tokenColumns + `, k.used is null or k.used <= {{now}} - {{arg.note}}::bigint::double precision * interval '1 millisecond'
		or k.used > {{now}} + {{arg.ahead}}::bigint::double precision * interval '1 millisecond', ` + userColumns + `
	from {{schema}}.xxl_job_user_token k join {{schema}}.xxl_job_user u on u.username = k.username
	where k.id = {{arg.id}} and k.hash = {{arg.hash}} and k.expires > {{now}} and not u.disabled`)
	q.useToken = sql(`update {{schema}}.xxl_job_user_token set used = {{now}} where id = $1 returning used`)
	q.removeToken = sql(`delete from {{schema}}.xxl_job_user_token k where k.username = $1 and k.id = $2 returning ` + tokenColumns)
	q.removeTokens = sql(`delete from {{schema}}.xxl_job_user_token where username = $1`)
	q.tokens = sql(`select ` + tokenColumns + ` from {{schema}}.xxl_job_user_token k where k.username = $1 order by k.id`)
}
