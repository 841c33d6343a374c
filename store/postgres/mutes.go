package postgres

// Mutes: what somebody knows of, so that its alarms are not sent.

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

var _ store.MuteKeeper = (*Store)(nil)

// PutMute keeps a mute.
func (s *Store) PutMute(ctx context.Context, m store.Mute) (store.Mute, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return store.Mute{}, err
	}
	if err := m.Validate(now); err != nil {
		return store.Mute{}, err
	}
	m.By, m.Until = store.Actor(ctx), m.Until.UTC().Truncate(time.Millisecond)
	err = s.inTx(ctx, bounds{name: "put_mute"}, func(t *tx) error {
		var had []store.Mute
		there := m.JobID == 0
		if err := t.do(ctx, s.sql.dropMutes.with(), s.sql.lockMute.with(m.Key).into(readMutes(&had)),
			s.sql.appOfMuted.with(m.JobID).into(func(rows pgx.Rows) error { there = true; return rows.Scan(&m.App) })); err != nil {
			return err
		}
		if !there {
			return store.ErrNotFound
		}
		if err := t.do(ctx, s.sql.putMute.by(named{{"key", m.Key}, {"app", m.App}, {"job", m.JobID}, {"by", m.By}, {"until", m.Until}, {"note", m.Note}}).into(scanInto(&m.At))); err != nil {
			return err
		}
		m.At = m.At.UTC()
		var before *store.Mute
		if len(had) > 0 {
			before = &had[0]
		}
		c := changed{}
		c.OfMute(ctx, before, &m)
		return t.do(ctx, s.note(c))
	})
	if err != nil {
		return store.Mute{}, failed(err, "mute %q", m.Key)
	}
	return m, nil
}

// DropMute ends a mute.
func (s *Store) DropMute(ctx context.Context, key string) error {
	if !store.CanBeStored(key) {
		return failed(store.ErrNotFound, "end the mute of %q", key)
	}
	err := s.inTx(ctx, bounds{name: "drop_mute"}, func(t *tx) error {
		var had []store.Mute
		if err := t.do(ctx, s.sql.dropMute.with(key).into(readMutes(&had))); err != nil {
			return err
		}
		if len(had) == 0 {
			return store.ErrNotFound
		}
		c := changed{}
		c.OfMute(ctx, &had[0], nil)
		return t.do(ctx, s.note(c))
	})
	return failed(err, "end the mute of %q", key)
}

// Mutes returns those that are not over.
func (s *Store) Mutes(ctx context.Context) (list []store.Mute, err error) {
	err = s.read(ctx, s.sql.mutes.with().into(readMutes(&list)))
	return list, failed(err, "read mutes")
}

func readMutes(list *[]store.Mute) result {
	return func(rows pgx.Rows) error {
		var m store.Mute
		err := rows.Scan(&m.Key, &m.App, &m.JobID, &m.At, &m.By, &m.Until, &m.Note)
		m.At, m.Until = m.At.UTC(), m.Until.UTC()
		*list = append(*list, m)
		return err
	}
}

// muteQueries are the statements of this file.
type muteQueries struct {
	dropMutes, lockMute, appOfMuted, putMute, dropMute, mutes query
}

func (q *muteQueries) define(sql template) {
	const columns = `m.mute_key, m.app_name, m.job_id, m.muted_time, m.muted_by, m.until_time, m.note`
	q.dropMutes = sql(`delete from {{schema}}.xxl_job_mute m where m.until_time <= {{now}}`)
	q.lockMute = sql(`select ` + columns + ` from {{schema}}.xxl_job_mute m where m.mute_key = $1 for update`)
	q.appOfMuted = sql(`select i.app_name from {{schema}}.xxl_job_info i where i.id = $1`)
	q.putMute = sql(`insert into {{schema}}.xxl_job_mute as m (mute_key, app_name, job_id, muted_time, muted_by, until_time, note)
	values ({{arg.key}}, {{arg.app}}, {{arg.job}}, {{now}}, {{arg.by}}, {{arg.until}}, {{arg.note}})
	on conflict (mute_key) do update set app_name = excluded.app_name, job_id = excluded.job_id, muted_time = excluded.muted_time, muted_by = excluded.muted_by,
		until_time = excluded.until_time, note = excluded.note
	returning m.muted_time`)
	q.dropMute = sql(`delete from {{schema}}.xxl_job_mute m where m.mute_key = $1 and m.until_time > {{now}} returning ` + columns)
	q.mutes = sql(`select ` + columns + ` from {{schema}}.xxl_job_mute m where m.until_time > {{now}} order by m.mute_key`)
}
