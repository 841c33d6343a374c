package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob/store"
)

// Inbox returns what waits for the incarnation: in one statement, for it is mostly
// nothing, and is asked for all the time.
func (s *Store) Inbox(ctx context.Context, incarnation string, after int64, limit int) (store.Inbox, error) {
	var box store.Inbox
	if incarnation == "" {
		return box, ended(ctx)
	}
	lo, hi := s.openRange()
	err := s.read(ctx, s.sql.inbox.by(named{
		{"incarnation", incarnation}, {"after", after}, {"limit", max(limit, 0)},
		{"address", store.LocalAddress(incarnation)}, {"lo", lo}, {"hi", hi},
	}).into(readInbox(&box, incarnation)))
	if err != nil {
		return store.Inbox{}, failed(err, "read the inbox")
	}
	return box, nil
}

// readInbox tells the three kinds of rows apart.
func readInbox(box *store.Inbox, incarnation string) result {
	var row runRow
	var ask pgtype.Int8
	var from pgtype.Int4
	return func(rows pgx.Rows) error {
		run, err := row.scan(rows, &ask, &from)
		switch {
		case err != nil:
			return err
		case ask.Valid:
			box.Asks = append(box.Asks, store.Ask{ID: ask.Int64, Incarnation: incarnation, Run: run, FromLine: int(from.Int32)})
		case run.Taken.IsZero():
			box.Runs = append(box.Runs, run)
		default:
			box.Kills = append(box.Kills, run)
		}
		return nil
	}
}

// Take marks runs as taken by their addressee. What others have locked stays for
// the next look into the inbox.
func (s *Store) Take(ctx context.Context, incarnation string, ids []int64) ([]store.Run, error) {
	if len(ids) == 0 {
		return nil, ended(ctx)
	}
	lo, hi := rangeOf(ids)
	args := named{{"runs", ids}, {"lo", lo}, {"hi", hi}, {"incarnation", incarnation}}
	var killed []store.Run
	var alarms alarming
	take := func(q query) (changed []store.Run, done arming, err error) {
		err = s.inTx(ctx, bounds{name: "take", lock: quickPatience}, func(t *tx) error {
			changed, done = nil, arming{}
			killed = nil
			if err := t.do(ctx, q.by(args).into(readRuns(&changed)), s.sql.takeKilled.by(args).into(readRuns(&killed))); err != nil {
				return err
			}
			changed = append(changed, killed...)
			t.count(killed...)
			alarms = s.alarms()
			alarms.ended(nil, killed...)
			if err := alarms.insert(ctx, t); err != nil {
				return err
			}
			var err error
			done, err = s.arm(ctx, t, endedOf(killed), nil)
			return err
		})
		return changed, done, err
	}
	once, careful := s.sql.take, s.careful()
	if careful {
		once = s.sql.takeFree
	}
	changed, done, err := take(once)
	if lockedOut(err) && !careful {
		s.beCareful()
		changed, done, err = take(s.sql.takeFree)
	}
	if err != nil {
		return nil, failed(err, "take %d runs", len(ids))
	}
	s.tell(done)
	alarms.tell()
	for i := range changed {
		done.mark(&changed[i])
	}
	s.serials.ended(killed)
	s.wakeEnded(len(killed))
	slices.SortFunc(changed, func(a, b store.Run) int { return cmp.Compare(a.ID, b.ID) })
	return changed, nil
}

// inboxQueries are the statements of this file.
type inboxQueries struct {
	inbox, take, takeFree, takeKilled query
}

func (q *inboxQueries) define(sql template) {
	q.inbox = sql(`(select null::bigint, null::int, {{run}} from {{schema}}.xxl_job_log l
	where l.inbox = {{arg.incarnation}} and l.state = {{state.started}} and l.id > {{arg.after}} and l.id between {{arg.lo}} and {{arg.hi}}
		order by l.id limit {{arg.limit}})
	union all
	(select null, null, {{run}} from {{schema}}.xxl_job_log l
	where l.kill_reason is not null and l.state in ({{state.started}}, {{state.dispatched}}) and l.executor_address = {{arg.address}} and l.taken_time is not null
	and l.id between {{arg.lo}} and {{arg.hi}} order by l.id)
	union all
	(select a.id, a.from_line, r.* from {{schema}}.xxl_job_ask a
	cross join lateral (select {{run}} from {{schema}}.xxl_job_log l where l.id = a.run_id limit 1) r
	where a.incarnation = {{arg.incarnation}} and a.answered is null and a.asked > {{kept}} order by a.id limit {{arg.limit}})`)
	take := func(ids string) string {
		return `update {{schema}}.xxl_job_log l set taken_time = {{now}}, inbox = null
	where l.id = any(` + ids + `) and l.id between {{arg.lo}} and {{arg.hi}} and l.inbox = {{arg.incarnation}} and l.state = {{state.started}}
		and l.kill_reason is null
	returning {{run}}`
	}
	free := `array(select p.id from {{schema}}.xxl_job_log p where p.id = any({{arg.runs}}::bigint[]) and p.id between {{arg.lo}} and {{arg.hi}}
		and p.inbox = {{arg.incarnation}} order by p.id for no key update skip locked)`
	q.take = sql(take("{{arg.runs}}::bigint[]"))
	q.takeFree = sql(take(free))
	q.takeKilled = sql(`update {{schema}}.xxl_job_log l set state = {{state.killed}}, handle_time = {{now}}, inbox = null
	where l.id = any(` + free + `) and l.id between {{arg.lo}} and {{arg.hi}} and l.inbox = {{arg.incarnation}} and l.state = {{state.started}}
		and l.kill_reason is not null
	returning {{run}}`)
}
