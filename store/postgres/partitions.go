package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/xxljob/xxljob/store"
)

// Partitions of xxl_job_log hold the ids of one day each, in UTC. They are made
// ahead of time, for there is no default partition: a row that fits nowhere would
// keep a later partition from being made.
const (
	// partitionsAhead is how many days ahead partitions are made.
	partitionsAhead = 14
	// partitionsAtOnce is how many of them one transaction makes. With its indexes a partition of runs
	// is a dozen files, and the server has to be done with a transaction within answerPatience.
	partitionsAtOnce = 4
	// definitionsEach is how many statements make one.
	definitionsEach = 2
	// runsFill is how full, in per cent, a page of runs gets that are new: what they leave is for
	// the versions that they have when they start and end. A version on the page of the former one
	// is logged as what differs; one on another page as a whole, and behind a lock of the former
	// one, which is 140 bytes of WAL a run more. A day of runs that start and end is as large with it
	// as without; one of records, which have one version, is larger.
	runsFill = 40
	// ddlPatience is how long a definition waits for a lock. While it waits,
	// everybody else waits behind it; so it tries often rather than long.
	ddlPatience = 50 * time.Millisecond
	ddlTries    = 100
	day         = 24 * time.Hour
)

// usuallyAhead is partitionsAhead, but in tests: almost none is about the days behind tomorrow.
var usuallyAhead = partitionsAhead

// partitionName is the partition of a day's runs.
func partitionName(day time.Time) string { return "xxl_job_log_" + day.Format("20060102") }

// ensurePartitions makes the partitions from yesterday to partitionsAhead days
// ahead that are not there, a few in each transaction, or one where the server is too slow for that.
// It looks again after each: where somebody who does not take the lock has made one of them
// meanwhile, none of ours was made.
func (s *Store) ensurePartitions(ctx context.Context) error {
	atOnce := partitionsAtOnce
	for left, tries := math.MaxInt, 3; tries > 0; {
		sql, err := s.missingPartitions(ctx, s.read)
		if err != nil || len(sql) == 0 {
			return failed(err, "list the partitions of xxl_job_log")
		}
		if len(sql) >= left {
			tries--
		}
		left = len(sql)
		err = s.define(ctx, func(ctx context.Context, do doer) ([]string, error) {
			sql, err := s.missingPartitions(ctx, do)
			return sql[:min(len(sql), atOnce*definitionsEach)], err
		})
		switch {
		case codeOf(err) == codeCancelled && tries > 1:
			atOnce = 1
		case err != nil:
			return failed(err, "make partitions; a role that may create tables in schema %s has to call postgres.Migrate", s.schema)
		}
	}
	return fmt.Errorf("postgres: partitions of %s.xxl_job_log are missing, though there is something of their name; look for tables that are not attached to it", s.schema)
}

// missingPartitions are the definitions of those that are not there.
func (s *Store) missingPartitions(ctx context.Context, do doer) (sql []string, err error) {
	var now time.Time
	have := map[string]bool{}
	err = do(ctx, s.sql.clock.with().into(scanInto(&now)),
		s.sql.partitions.with().into(readNames(have)))
	if err != nil {
		return nil, err
	}
	s.learn(now)
	s.days.know(slices.Collect(maps.Keys(have))...)
	today := now.UTC().Truncate(day)
	var days []time.Time
	for d := -1; d <= s.cfg.daysAhead; d++ {
		from := today.Add(time.Duration(d) * day)
		days = append(days, from)
		if !have[partitionName(from)] {
			sql = append(sql, s.newPartition(from)...)
		}
	}
	pages, err := s.missingPages(ctx, do, days, have)
	return append(sql, pages...), err
}

func readNames(have map[string]bool) result {
	return func(rows pgx.Rows) error {
		var name string
		err := rows.Scan(&name)
		have[name] = true
		return err
	}
}

// newPartition makes one partition: as a table of its own first, so that attaching
// it is all that needs a lock on its parent.
func (s *Store) newPartition(from time.Time) []string {
	name := s.schema + "." + pgx.Identifier{partitionName(from)}.Sanitize()
	lo, hi := idAt(from), idAt(from.Add(day))
	return []string{
		fmt.Sprintf(`create table if not exists %s (like %s.xxl_job_log including defaults including constraints including generated)
		with (fillfactor = %d, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)`, name, s.schema, runsFill),
		fmt.Sprintf(`alter table %s.xxl_job_log attach partition %s for values from (%d) to (%d)`, s.schema, name, lo, hi),
	}
}

// define runs definitions in one transaction, with a short patience for locks and
// many tries. What is to be defined is asked for under a lock that one node at a time
// has, so that of several that start at once one defines it and the others find it
// there. They ask for that lock again and again: a wait that is given up would be an
// error in the server's log.
func (s *Store) define(ctx context.Context, what func(context.Context, doer) ([]string, error)) error {
	var err error
	for range ddlTries {
		alone := false
		err = s.inTx(ctx, bounds{name: "define", lock: ddlPatience}, func(t *tx) error {
			alone = false
			got := func(pgx.Rows) error { alone = true; return nil }
			if err := t.do(ctx, s.sql.tryExclusive.with().into(got)); err != nil || !alone {
				return err
			}
			sql, err := what(ctx, t.do)
			if err != nil || len(sql) == 0 {
				return err
			}
			return s.execAll(ctx, t, sql)
		})
		switch {
		case err == nil && alone, alreadyThere(err):
			return nil
		case err == nil:
			err = errors.New("another node has been defining tables all the time")
		case !lockedOut(err):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(ddlPatience):
		}
	}
	return err
}

// execAll runs definitions, which are not to be kept prepared, in one round trip.
func (s *Store) execAll(ctx context.Context, t *tx, sql []string) error {
	return t.conn.PgConn().Exec(ctx, mark+strings.Join(sql, ";\n")).Close()
}

func alreadyThere(err error) bool {
	switch codeOf(err) {
	case "42P07", "42710", // a table, or an object, of that name
		"42809": // it is a partition already
		return true
	}
	return false
}

// withPartitions runs f, and once more where it found no partition for a row or
// made an id a second time.
func (s *Store) withPartitions(ctx context.Context, f func() error) error {
	err := f()
	switch {
	case err == nil:
		return nil
	case noPartition(err):
		if made := s.ensurePartitions(ctx); made != nil {
			return made
		}
		return f()
	case sameRunID(err):
		return f()
	}
	return err
}

// DropRuns forgets the runs of days that were over at the given time. Their
// partitions are dropped; where the role may not do that, their rows are deleted
// in batches. Runs that have not ended are cancelled before, if planned, and else
// lost. A day of which something is still owed, or whose triggers have later runs that have not
// ended, stays until the next time. Of the entries of xxl_job_ahead it forgets those that were cancelled before that time.
// What is kept of the logs of such runs goes last.
func (s *Store) DropRuns(ctx context.Context, before time.Time) error {
	if err := s.dropCancelled(ctx, before); err != nil {
		return failed(err, "drop cancelled entries of xxl_job_ahead")
	}
	if err := s.dropAlarms(ctx, before); err != nil {
		return failed(err, "drop old alarms")
	}
	var names []string
	err := s.read(ctx, s.sql.partitions.with().into(func(rows pgx.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	}))
	if err != nil {
		return failed(err, "list the partitions of xxl_job_log")
	}
	stays := map[time.Time]bool{}
	for _, name := range names {
		from, err := time.Parse("20060102", strings.TrimPrefix(name, "xxl_job_log_"))
		if err != nil || from.Add(day).After(before) {
			continue
		}
		if stays[from], err = s.dropDay(ctx, name, idAt(from), idAt(from.Add(day))-1); err != nil {
			return failed(err, "drop the runs of %s", from.Format(time.DateOnly))
		}
	}
	return failed(s.dropPages(ctx, before, stays), "drop old logs")
}

// endBatch is how many rows a step of dropDay ends or deletes.
const endBatch = 1000

// dropDay drops the runs of a day. It stays for as long as something is owed for one of its runs,
// or a later run of one of its triggers has not ended: both read rows of it.
func (s *Store) dropDay(ctx context.Context, name string, lo, hi int64) (stays bool, err error) {
	if err := s.endOld(ctx, lo, hi); err != nil {
		return false, err
	}
	openLo, openHi := s.openRange()
	if err := s.readByIndex(ctx, s.sql.dayNeeded.by(named{
		{"lo", lo}, {"hi", hi}, {"open_lo", openLo}, {"open_hi", openHi},
	}).into(scanInto(&stays))); err != nil || stays {
		return stays, err
	}
	if err := s.deleteKeys(ctx, lo, hi); err != nil {
		return false, err
	}
	if err := s.inBatches(ctx, "delete_parts", s.sql.deleteParts, lo, hi); err != nil {
		return false, err
	}
	dropped := changed{Change: store.Change{Actor: store.Scheduler, Verb: "drop", Object: store.ObjectRuns, ObjectID: idTime(lo).Format(time.DateOnly)}}
	err = s.dropPartition(ctx, "xxl_job_log", name, s.note(dropped))
	if errors.Is(err, errNotOwner) {
		err = s.deleteDay(ctx, lo, hi, dropped)
	}
	return false, err
}

var errNotOwner = errors.New("the role is not the owner of the table")

// dropPartition drops one, unless another node has, with what else is to be written in that
// transaction; errNotOwner where the role may not do that.
func (s *Store) dropPartition(ctx context.Context, of, name string, write ...statement) error {
	table := s.schema + "." + pgx.Identifier{name}.Sanitize()
	err := s.define(ctx, func(ctx context.Context, do doer) ([]string, error) {
		if len(write) > 0 {
			if err := do(ctx, write...); err != nil {
				return nil, err
			}
		}
		return []string{fmt.Sprintf("alter table %s.%s detach partition %s", s.schema, of, table), "drop table " + table}, nil
	})
	switch codeOf(err) {
	case codeNoTable:
		return nil
	case codeDenied:
		return errNotOwner
	}
	return err
}

// deleteDay deletes the rows of a day whose partition stays. It has an entry in the record the
// first time, when there are any.
func (s *Store) deleteDay(ctx context.Context, lo, hi int64, dropped changed) error {
	var some []int64
	err := s.inTx(ctx, bounds{name: "delete_day"}, func(t *tx) error {
		some = nil
		err := t.do(ctx, s.sql.deleteRuns.by(named{{"lo", lo}, {"hi", hi}, {"limit", endBatch}}).into(readIDs(&some)))
		if err != nil || len(some) == 0 {
			return err
		}
		return t.do(ctx, s.note(dropped))
	})
	if err != nil || len(some) < endBatch {
		return err
	}
	return s.inBatches(ctx, "delete_runs", s.sql.deleteRuns, lo, hi)
}

// endOld ends the runs in the range that are not ended, following the rules for
// their jobs.
func (s *Store) endOld(ctx context.Context, lo, hi int64) error {
	for {
		var done arming
		var ended []store.Run
		err := s.inTx(ctx, bounds{name: "end_old"}, func(t *tx) error {
			ended, done = nil, arming{}
			// The jobs are locked before their planned runs, as an edit does.
			var jobs []int64
			if err := t.do(ctx, s.sql.endOldJobs.by(named{
				{"lo", lo}, {"hi", hi}, {"limit", endBatch},
			}).into(readIDs(&jobs))); err != nil {
				return err
			}
			if err := t.do(ctx, s.sql.lockIdle.with(jobs)); err != nil {
				return err
			}
			if err := t.do(ctx, s.sql.endOld.by(named{
				{"lo", lo}, {"hi", hi}, {"limit", endBatch},
			}).into(readRuns(&ended))); err != nil || len(ended) == 0 {
				return err
			}
			t.count(ended...)
			var err error
			done, err = s.arm(ctx, t, endedOf(ended), nil)
			return err
		})
		if err != nil {
			return err
		}
		s.tell(done)
		s.wakeEnded(len(ended))
		if len(ended) < endBatch {
			return nil
		}
	}
}

func (s *Store) deleteKeys(ctx context.Context, lo, hi int64) error {
	return s.inBatches(ctx, "delete_keys", s.sql.deleteKeys, lo, hi)
}

// inBatches repeats a statement that deletes up to endBatch rows of the range,
// until none is left. All at once could take longer than a transaction may.
func (s *Store) inBatches(ctx context.Context, name string, q query, lo, hi int64) error {
	for n := endBatch; n == endBatch; {
		n = 0
		err := s.one(ctx, bounds{name: name}, q.by(named{
			{"lo", lo}, {"hi", hi}, {"limit", endBatch},
		}).into(func(pgx.Rows) error { n++; return nil }))
		if err != nil {
			return err
		}
	}
	return nil
}

// partitionQueries are the statements of this file.
type partitionQueries struct {
	partitions, endOldJobs, endOld, dayNeeded, deleteKeys, deleteParts, deleteRuns query
}

func (q *partitionQueries) define(sql template) {
	q.partitions = sql(`select c.relname from pg_catalog.pg_inherits h join pg_catalog.pg_class c on c.oid = h.inhrelid
	where h.inhparent = '{{literal}}.xxl_job_log'::pg_catalog.regclass::pg_catalog.oid order by c.relname`)
	q.endOldJobs = sql(`select distinct p.job_id from (select p.job_id from {{schema}}.xxl_job_log p where p.id between {{arg.lo}} and {{arg.hi}}
	and p.state = {{state.planned}}
	order by p.id + 0 limit {{arg.limit}}) p`)
	q.endOld = sql(`update {{schema}}.xxl_job_log l
	set state = case when l.state = {{state.planned}} then {{state.cancelled}} else {{state.lost}} end, handle_time = {{now}}, inbox = null,
		alarm_status = case when l.state = {{state.planned}} then {{alarm.none}} else l.alarm_status end, reason = 'retention'
	where l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id between {{arg.lo}} and {{arg.hi}} and p.state = {{state.planned}}
		order by p.id + 0 limit {{arg.limit}}
		for no key update) operator(pg_catalog.||) array(select p.id from {{schema}}.xxl_job_log p where p.id between {{arg.lo}} and {{arg.hi}}
			and p.state in ({{state.started}}, {{state.dispatched}}) order by p.id + 0 limit {{arg.limit}}
		for no key update)) and l.id between {{arg.lo}} and {{arg.hi}}
	returning {{run}}`)
	q.dayNeeded = sql(`select exists (select from {{schema}}.xxl_job_owed o where o.log_id between {{arg.lo}} and {{arg.hi}})
	or exists (select from {{schema}}.xxl_job_log o where o.trigger_id between {{arg.lo}} and {{arg.hi}} and o.id > {{arg.hi}}
		and o.id between {{arg.open_lo}} and {{arg.open_hi}} and o.state + 0 in ({{state.planned}}, {{state.started}}, {{state.dispatched}}))`)
	q.deleteKeys = sql(`delete from {{schema}}.xxl_job_trigger_key k
	where k.ctid = any(array(select p.ctid from {{schema}}.xxl_job_trigger_key p where p.run_id between {{arg.lo}} and {{arg.hi}}
		and not exists (select from {{schema}}.xxl_job_ahead a where a.id = p.run_id) limit {{arg.limit}})) returning 1`)
	q.deleteParts = sql(`delete from {{schema}}.xxl_job_part p
	where p.trigger_id = any(array(select p.trigger_id from {{schema}}.xxl_job_part p where p.trigger_id between {{arg.lo}} and {{arg.hi}} limit {{arg.limit}})) returning 1`)
	q.deleteRuns = sql(`delete from {{schema}}.xxl_job_log l where l.id between {{arg.lo}} and {{arg.hi}}
	and l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id between {{arg.lo}} and {{arg.hi}} limit {{arg.limit}})) returning 1`)
}
