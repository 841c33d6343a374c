package postgres

// Tokens of apps.

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

var _ store.AppTokenKeeper = (*Store)(nil)

// AddAppToken keeps a token.
func (s *Store) AddAppToken(ctx context.Context, t store.AppToken) (store.AppToken, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return store.AppToken{}, err
	}
	if err := t.Validate(now); err != nil {
		return store.AppToken{}, err
	}
	t.By, t.Expires = store.Actor(ctx), t.Expires.UTC().Truncate(time.Millisecond)
	var added []store.AppToken
	err = s.inTx(ctx, bounds{name: "add_app_token"}, func(x *tx) error {
		n := 0
		if err := x.do(ctx, s.sql.countAppTokens.with().into(scanInto(&n))); err != nil {
			return err
		}
		if n >= store.MostAppTokens {
			return store.ErrTooManyTokens
		}
		err := x.do(ctx, s.sql.addAppToken.by(named{{"name", t.Name}, {"apps", t.Apps}, {"hash", []byte(t.Hash)}, {"by", t.By}, {"expires", t.Expires}}).into(readAppTokens(&added)))
		if err == nil && len(added) == 0 {
			err = store.ErrConflict
		}
		if err != nil {
			return err
		}
		c := changed{}
		c.OfAppToken(ctx, nil, &added[0])
		return x.do(ctx, s.note(c))
	})
	if err != nil {
		return store.AppToken{}, failed(err, "add token %q", t.Name)
	}
	return added[0], nil
}

// RemoveAppToken deletes a token.
func (s *Store) RemoveAppToken(ctx context.Context, name string) error {
	err := s.inTx(ctx, bounds{name: "remove_app_token"}, func(x *tx) error {
		var gone []store.AppToken
		err := x.do(ctx, s.sql.removeAppToken.with(sayable(name)).into(readAppTokens(&gone)))
		if err == nil && len(gone) == 0 {
			err = store.ErrNotFound
		}
		if err != nil {
			return err
		}
		c := changed{}
		c.OfAppToken(ctx, &gone[0], nil)
		return x.do(ctx, s.note(c))
	})
	return failed(err, "token %q", name)
}

// AppTokens returns all.
func (s *Store) AppTokens(ctx context.Context) (list []store.AppToken, err error) {
	err = s.read(ctx, s.sql.appTokens.with().into(readAppTokens(&list)))
	return list, failed(err, "read tokens")
}

// UseAppToken notes that a token was used.
func (s *Store) UseAppToken(ctx context.Context, name, hash string) error {
	written := 0
	err := s.one(ctx, bounds{name: "use_app_token"}, s.sql.useAppToken.by(named{{"name", sayable(name)}, {"hash", []byte(hash)}, {"note", store.AppTokenNote.Milliseconds()}, {"ahead", store.ClockAhead.Milliseconds()}}).into(scanInto(&written)))
	return failed(err, "token %q", name)
}

func readAppTokens(list *[]store.AppToken) result {
	return func(rows pgx.Rows) error {
		var t store.AppToken
		var used *time.Time
		err := rows.Scan(&t.Name, &t.Apps, (*bytesText)(&t.Hash), &t.Added, &t.By, &t.Expires, &used, &t.Expired)
		if t.Added, t.Expires = t.Added.UTC(), t.Expires.UTC(); used != nil {
			t.Used = used.UTC()
		}
		*list = append(*list, t)
		return err
	}
}

// appTokenQueries are the statements of this file.
type appTokenQueries struct {
	countAppTokens, addAppToken, removeAppToken, appTokens, useAppToken query
}

func (q *appTokenQueries) define(sql template) {
	const columns = `m.name, m.apps, m.hash, m.added_time, m.added_by, m.expires_time, m.used_time, m.expires_time <= {{now}}`
	q.countAppTokens = sql(`select count(*)::int from {{schema}}.xxl_job_app_token m`)
	q.addAppToken = sql(`insert into {{schema}}.xxl_job_app_token as m (name, apps, hash, added_time, added_by, expires_time)
	values ({{arg.name}}, {{arg.apps}}, {{arg.hash}}, {{now}}, {{arg.by}}, {{arg.expires}}) on conflict (name) do nothing returning ` + columns)
	q.removeAppToken = sql(`delete from {{schema}}.xxl_job_app_token m where m.name = $1 returning ` + columns)
	q.appTokens = sql(`select ` + columns + ` from {{schema}}.xxl_job_app_token m order by m.name`)
	q.useAppToken = sql(`update {{schema}}.xxl_job_app_token m set used_time = {{now}} where m.name = {{arg.name}} and m.hash = {{arg.hash}}
		and (m.used_time is null or m.used_time <= {{now}} - {{arg.note}}::bigint::double precision * interval '1 millisecond'
			or m.used_time > {{now}} + {{arg.ahead}}::bigint::double precision * interval '1 millisecond') returning 1`)
}
