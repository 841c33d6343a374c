package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// Tokens of the users of a console.

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
	err = s.readByIndex(ctx, s.sql.token.by(named{{"id", id}, {"note", store.TokenNote.Milliseconds()}, {"hash", []byte(hash)}}).into(func(rows pgx.Rows) error {
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

// tokenQueries are the statements of this file.
type tokenQueries struct {
	lockOwner, countTokens, addToken, token, useToken, removeToken, removeTokens, tokens query
}

func (q *tokenQueries) define(sql template) {
	q.lockOwner = sql(`select 1 from {{schema}}.xxl_job_user u where u.username = $1 for no key update`)
	q.countTokens = sql(`select count(*)::int from {{schema}}.xxl_job_user_token k where k.username = $1`)
	q.addToken = sql(`insert into {{schema}}.xxl_job_user_token as k (username, name, role, permission, scripts, hash, added, expires)
	values ({{arg.user}}, {{arg.name}}, {{arg.role}}, {{arg.permission}}, {{arg.scripts}}, {{arg.hash}}, {{now}}, {{arg.expires}}) returning ` + tokenColumns)
	q.token = sql(`select ` + tokenColumns + `, k.used is null or k.used <= {{now}} - {{arg.note}}::bigint::double precision * interval '1 millisecond', ` + userColumns + `
	from {{schema}}.xxl_job_user_token k join {{schema}}.xxl_job_user u on u.username = k.username
	where k.id = {{arg.id}} and k.hash = {{arg.hash}} and k.expires > {{now}} and not u.disabled`)
	q.useToken = sql(`update {{schema}}.xxl_job_user_token set used = {{now}} where id = $1 returning used`)
	q.removeToken = sql(`delete from {{schema}}.xxl_job_user_token k where k.username = $1 and k.id = $2 returning ` + tokenColumns)
	q.removeTokens = sql(`delete from {{schema}}.xxl_job_user_token where username = $1`)
	q.tokens = sql(`select ` + tokenColumns + ` from {{schema}}.xxl_job_user_token k where k.username = $1 order by k.id`)
}
