package postgres

// Shards, and the leases of them.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// maxShards is what a smallint holds.
const maxShards = 1<<15 - 1

// SetShards fixes the number of shards, once.
func (s *Store) SetShards(ctx context.Context, n int) error {
	if err := ended(ctx); err != nil {
		return err
	}
	if n < 1 || n > maxShards {
		return fmt.Errorf("postgres: set shards to %d: want 1 to %d", n, maxShards)
	}
	if s.shardCount.Load() == int64(n) {
		return nil
	}
	var have int
	err := s.read(ctx, s.sql.shards.with().into(scanInto(&have)))
	if err == nil && have == 0 {
		err = s.inTx(ctx, bounds{name: "set_shards"}, func(t *tx) error {
			return t.do(ctx, s.sql.exclusive.with(),
				s.sql.ensureShards.with(n),
				s.sql.shards.with().into(scanInto(&have)))
		})
	}
	if err == nil && have != n {
		err = fmt.Errorf("%w: the store has %d, not %d; set Config.Cluster.Shards to %d", store.ErrShards, have, n, have)
	}
	if err != nil {
		return failed(err, "set the number of shards")
	}
	s.shardCount.Store(int64(n))
	return nil
}

// shards returns the number of shards.
func (s *Store) shards(ctx context.Context) (int, error) {
	if n := s.shardCount.Load(); n > 0 {
		return int(n), nil
	}
	var have int
	if err := s.read(ctx, s.sql.shards.with().into(scanInto(&have))); err != nil {
		return 0, err
	}
	if have == 0 {
		return 0, errors.New("the number of shards is not set; start a scheduler first, or call SetShards")
	}
	s.shardCount.Store(int64(have))
	return have, nil
}

// TakeShards makes the incarnation the owner of shards, raising their epochs. In
// lock mode it takes their locks before, from silent owners by ending the
// connections that hold them; where that does not help in time it goes by the
// epoch alone, and beats keep asking for the lock.
func (s *Store) TakeShards(ctx context.Context, incarnation string, shards []store.Shard) ([]store.Shard, error) {
	if len(shards) == 0 {
		return nil, ended(ctx)
	}
	want := shards
	if s.locks() {
		var err error
		if want, err = s.stillSo(ctx, shards); err != nil || len(want) == 0 {
			return nil, failed(err, "take %d shards", len(shards))
		}
		if want, err = s.lockShards(ctx, incarnation, want); err != nil {
			return nil, failed(err, "take %d shards", len(shards))
		}
	}
	taken, err := s.takeRows(ctx, incarnation, want)
	if err == nil && len(taken) > 0 {
		// Where these cannot be read, starts look more closely.
		_ = s.floors.raise(ctx, s)
		_ = s.serials.take(ctx, s, taken)
	}
	if s.locks() {
		// After an error too: a lock without its shard would keep others from it.
		// Where the shard was taken after all, the next beat asks for the lock.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
		defer cancel()
		s.unlockOthers(bounded, incarnation, want, taken)
	}
	if err != nil {
		return nil, failed(err, "take %d shards", len(shards))
	}
	return taken, nil
}

// stillSo returns those of the shards that are as the caller saw them: for others
// nobody's lock is worth ending.
func (s *Store) stillSo(ctx context.Context, shards []store.Shard) ([]store.Shard, error) {
	now := map[int]store.Shard{}
	ids, _ := fenceArgs(shards)
	err := s.read(ctx, s.sql.shardRows.with(ids).into(func(rows pgx.Rows) error {
		var sh store.Shard
		err := rows.Scan(&sh.ID, &sh.Owner, &sh.Epoch)
		now[sh.ID] = sh
		return err
	}))
	var same []store.Shard
	for _, sh := range shards {
		if n, ok := now[sh.ID]; ok && n.Owner == sh.Owner && n.Epoch == sh.Epoch {
			same = append(same, sh)
		}
	}
	return same, err
}

// takeRows raises the epochs. The rows are locked FOR UPDATE, which waits for
// every statement that has passed the fence under the epoch before. Who keeps a
// challenger waiting for longer than lockPatience is stuck: its backend is ended
// if it is in a statement of ours.
func (s *Store) takeRows(ctx context.Context, incarnation string, shards []store.Shard) ([]store.Shard, error) {
	if len(shards) == 0 {
		return nil, nil
	}
	taken, err := s.tryTakeRows(ctx, incarnation, shards, nil)
	if codeOf(err) != codeLockNotAvailable {
		return taken, err
	}
	return s.tryTakeRows(ctx, incarnation, shards, s.endBlockers)
}

func (s *Store) tryTakeRows(ctx context.Context, incarnation string, shards []store.Shard, unblock func(ctx context.Context, pid int64)) ([]store.Shard, error) {
	shards = slices.Clone(shards)
	slices.SortFunc(shards, func(a, b store.Shard) int { return a.ID - b.ID })
	ids, epochs := fenceArgs(shards)
	owners := make([]string, len(shards))
	for i := range shards {
		owners[i] = shards[i].Owner
	}
	var taken []store.Shard
	err := s.inTx(ctx, bounds{name: "take_shards", lock: lockPatience}, func(t *tx) error {
		taken = nil
		if unblock != nil {
			done := make(chan struct{})
			defer func() { <-done }()
			watch, cancel := context.WithCancel(ctx)
			defer cancel()
			var pid int64 // as the server has it, for a pooler tells another
			if err := t.do(ctx, s.sql.backend.with().into(scanInto(&pid))); err != nil {
				close(done)
				return err
			}
			go func() { defer close(done); unblock(watch, pid) }()
		}
		return t.do(ctx, s.sql.lockRows.with(ids),
			s.sql.takeRows.by(named{
				{"incarnation", incarnation}, {"shards", ids}, {"owners", owners}, {"epochs", epochs},
			}).into(func(rows pgx.Rows) error {
				var sh store.Shard
				err := rows.Scan(&sh.ID, &sh.Owner, &sh.Epoch)
				taken = append(taken, sh)
				return err
			}))
	})
	slices.SortFunc(taken, func(a, b store.Shard) int { return a.ID - b.ID })
	return taken, err
}

// endBlockers ends the backends that keep the given one waiting and are in a
// transaction of ours, until ctx ends: nobody knows when the wait begins.
func (s *Store) endBlockers(ctx context.Context, pid int64) {
	look := time.NewTicker(lockPatience / 8)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if err := s.read(ctx, s.sql.endBlockers.with(pid)); err != nil && ctx.Err() == nil {
			s.log.Warn("xxljob: a takeover waits for another backend that could not be terminated", "error", err)
			return
		}
	}
}

// ReleaseShards gives up shards, and then their locks; in lock mode over the lock
// connection, since a node that has none of the pool's gives up its shards as well.
func (s *Store) ReleaseShards(ctx context.Context, incarnation string, shards []store.Shard) error {
	if len(shards) == 0 {
		return ended(ctx)
	}
	ids, epochs := fenceArgs(shards)
	if err := s.besidePool(ctx, bounds{name: "release"}, incarnation, s.sql.releaseRows.by(named{
		{"incarnation", incarnation}, {"shards", ids}, {"epochs", epochs},
	})); err != nil {
		return failed(err, "release %d shards", len(shards))
	}
	if s.locks() {
		s.unlock(ctx, incarnation, shards)
	}
	s.wakeNodes()
	return nil
}

// shardQueries are the statements of this file.
type shardQueries struct {
	shards, ensureShards, exclusive, tryExclusive, shardRows, lockRows, takeRows,
	releaseRows, backend, endBlockers query
}

func (q *shardQueries) define(sql template) {
	q.shards = sql(`select count(*) from {{schema}}.xxl_job_lock`)
	q.ensureShards = sql(`insert into {{schema}}.xxl_job_lock (lock_name, shard, owner, epoch)
	select 'shard_' || n::text, n, '', 0 from generate_series(0, $1::int - 1) n
	where not exists (select from {{schema}}.xxl_job_lock)`)
	// A row, and no advisory lock: that anybody could take who may connect.
	exclusive := `select 1 from {{schema}}.xxl_job_setting where name = '` + versionSetting + `' for update`
	q.exclusive = sql(exclusive)
	q.tryExclusive = sql(exclusive + ` skip locked`)
	q.shardRows = sql(`select shard, owner, epoch from {{schema}}.xxl_job_lock where shard = any($1::smallint[])`)
	q.lockRows = sql(`select 1 from {{schema}}.xxl_job_lock where shard = any($1::smallint[]) order by shard for update`)
	q.takeRows = sql(`update {{schema}}.xxl_job_lock k set owner = {{arg.incarnation}}, epoch = k.epoch + 1
	from unnest({{arg.shards}}::smallint[], {{arg.owners}}::text[], {{arg.epochs}}::bigint[]) q(shard, owner, epoch)
	where k.shard = q.shard and k.owner = q.owner and k.epoch = q.epoch
	returning k.shard, k.owner, k.epoch`)
	q.releaseRows = sql(`update {{schema}}.xxl_job_lock k set owner = '' from unnest({{arg.shards}}::smallint[], {{arg.epochs}}::bigint[]) q(shard, epoch)
	where k.shard = q.shard and k.owner = {{arg.incarnation}} and k.epoch = q.epoch`)
	q.backend = sql(`select pg_catalog.pg_backend_pid()`)
	q.endBlockers = sql(`select pg_catalog.pg_terminate_backend(a.pid) from pg_catalog.pg_stat_activity a
	where a.pid = any(pg_catalog.pg_blocking_pids($1::int)) and a.usename = current_user and a.query like '` + mark + `%'`)
}
