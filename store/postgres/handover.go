package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob"
)

// Readdress moves a started run, which nobody but its owner has had, to another
// address.
func (s *Store) Readdress(ctx context.Context, m xxljob.Readdress) (bool, error) {
	in, epochs := fenceArgs([]xxljob.Shard{{ID: m.Shard, Epoch: m.Epoch}})
	inbox := inboxColumn(m.Owner, m.Address)
	var there []string
	if inbox != "" {
		there = append(there, inbox)
	}
	var moved []int64
	err := s.one(ctx, bounds{name: "readdress"}, statement{s.sql.readdress, readdressArgs.values(named{
		"shards": in, "epochs": epochs, "nodes": there, "run": m.RunID, "token": m.Token, "address": m.Address,
		"owner_column": nonempty(ownerColumn(m.Owner, m.Address)), "inbox": nonempty(inbox), "taken": isAt(m.Owner, m.Address),
		"message": m.Msg, "owner": m.Owner, "boot": nonempty(m.BootID),
	}), readIDs(&moved)})
	if err != nil {
		return false, failed(err, "readdress run %d", m.RunID)
	}
	if len(moved) > 0 && inbox != "" {
		s.wakeInbox(inbox)
	}
	return len(moved) > 0, nil
}

// Dispatched marks started runs as accepted by remote executors, in one statement.
// Those whose rows others have locked are left out, after some tries, and make the
// error xxljob.ErrLocked, beside which the runs that it changed are returned.
func (s *Store) Dispatched(ctx context.Context, accepted []xxljob.Dispatch) ([]xxljob.Run, error) {
	if len(accepted) == 0 {
		return nil, ended(ctx)
	}
	d := dispatching{store: s, accepted: accepted, places: placesByRun(accepted), answers: make([]xxljob.Run, len(accepted))}
	locked, err := d.mark(ctx)
	if err != nil {
		return nil, failed(err, "mark %d runs dispatched", len(accepted))
	}
	changed := slices.DeleteFunc(d.answers, func(r xxljob.Run) bool { return r.ID == 0 })
	if locked > 0 {
		return changed, failed(fmt.Errorf("%w: %d runs", xxljob.ErrLocked, locked), "mark %d runs dispatched", len(accepted))
	}
	return changed, nil
}

// placesByRun are the places of the entries in order of their runs, which is the
// order in which runs are locked; of several that say the same, the first one's.
func placesByRun(accepted []xxljob.Dispatch) []int {
	type start struct {
		run, token int64
		owner      string
	}
	seen := make(map[start]bool, len(accepted))
	places := make([]int, 0, len(accepted))
	for i := range accepted {
		a := &accepted[i]
		if is := (start{a.RunID, a.Token, a.Owner}); !seen[is] {
			seen[is] = true
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(i, k int) int { return cmp.Compare(accepted[i].RunID, accepted[k].RunID) })
	return places
}

// dispatching is one call of Dispatched.
type dispatching struct {
	store    *Store
	accepted []xxljob.Dispatch
	places   []int // of what is to be marked yet
	answers  []xxljob.Run
}

// mark returns how many it left out because of locks.
func (d *dispatching) mark(ctx context.Context) (locked int, err error) {
	if !d.store.careful() {
		err := d.update(ctx, d.store.sql.dispatched)
		if !lockedOut(err) {
			return 0, err
		}
		d.store.beCareful()
	}
	for wait := lockedWait; ; wait *= 2 {
		if err := d.update(ctx, d.store.sql.dispatchedFree); err != nil {
			return 0, err
		}
		if err := d.findLocked(ctx); err != nil || len(d.places) == 0 || wait > lockedMost {
			return len(d.places), err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// update marks what is left.
func (d *dispatching) update(ctx context.Context, sql string) error {
	values, ids := d.args()
	args := dispatchedArgs
	if sql == d.store.sql.dispatchedFree {
		args = dispatchedFreeArgs
		values["lo"], values["hi"] = rangeOf(ids)
	}
	return d.store.byDay(sql, ids, func(sql string) error {
		for _, i := range d.places {
			d.answers[i] = xxljob.Run{}
		}
		var row runRow
		var ord int
		return d.store.one(ctx, bounds{name: "dispatched", lock: quickPatience}, statement{sql, args.values(values), func(rows pgx.Rows) error {
			run, err := row.scan(rows, &ord)
			if err == nil {
				d.answers[d.places[ord-1]] = run
			}
			return err
		}})
	})
}

func (d *dispatching) args() (args named, ids []int64) {
	n := len(d.places)
	tokens, owners, messages := make([]int64, n), make([]int16, n), make([]*string, n)
	ids = make([]int64, n)
	var words words
	for k, i := range d.places {
		a := &d.accepted[i]
		ids[k], tokens[k], owners[k], messages[k] = a.RunID, a.Token, words.place(a.Owner), nonempty(a.Msg)
	}
	return named{
		"ids": ids, "tokens": tokens, "owners": owners, "messages": sparse(messages), "words": words.list, "ords": upTo(n),
	}, ids
}

// findLocked leaves the places of runs that are as they have to be, and were not
// marked nevertheless.
func (d *dispatching) findLocked(ctx context.Context) error {
	rest := slices.DeleteFunc(d.places, func(i int) bool { return d.answers[i].ID != 0 })
	d.places = nil
	if len(rest) == 0 {
		return nil
	}
	ids := make([]int64, len(rest))
	for k, i := range rest {
		ids[k] = d.accepted[i].RunID
	}
	lo, hi := rangeOf(ids)
	var runs []xxljob.Run
	if err := d.store.read(ctx, statement{d.store.sql.runsByID, []any{ids, lo, hi}, readRuns(&runs)}); err != nil {
		return err
	}
	now := make(map[int64]*xxljob.Run, len(runs))
	for i := range runs {
		now[runs[i].ID] = &runs[i]
	}
	d.places = slices.DeleteFunc(rest, func(i int) bool {
		a := &d.accepted[i]
		r := now[a.RunID]
		return r == nil || r.State != xxljob.StateStarted || r.Owner != a.Owner || r.Token != a.Token
	})
	return nil
}

// StartedBy returns started runs of the incarnations.
func (s *Store) StartedBy(ctx context.Context, shards []xxljob.Shard, incarnations []string, after int64, limit int) ([]xxljob.Run, error) {
	in, _ := fenceArgs(shards)
	if len(in) == 0 || len(incarnations) == 0 || limit <= 0 {
		return nil, ended(ctx)
	}
	var addresses []string
	for _, inc := range incarnations {
		addresses = append(addresses, xxljob.LocalAddress(inc))
	}
	lo, hi := s.openRange()
	var runs []xxljob.Run
	err := s.read(ctx, statement{s.sql.startedBy, startedByArgs.values(named{
		"shards": in, "incarnations": incarnations, "addresses": addresses, "after": after, "limit": limit, "lo": lo, "hi": hi,
	}), readRuns(&runs)})
	return runs, failed(err, "read started runs")
}

// Inbox returns what waits for the incarnation: in one statement, for it is mostly
// nothing, and is asked for all the time.
func (s *Store) Inbox(ctx context.Context, incarnation string, after int64, limit int) (xxljob.Inbox, error) {
	var box xxljob.Inbox
	if incarnation == "" {
		return box, ended(ctx)
	}
	lo, hi := s.openRange()
	err := s.read(ctx, statement{s.sql.inbox, inboxArgs.values(named{
		"incarnation": incarnation, "after": after, "limit": max(limit, 0), "address": xxljob.LocalAddress(incarnation), "lo": lo, "hi": hi,
	}), readInbox(&box, incarnation)})
	if err != nil {
		return xxljob.Inbox{}, failed(err, "read the inbox")
	}
	return box, nil
}

// readInbox tells the three kinds of rows apart.
func readInbox(box *xxljob.Inbox, incarnation string) result {
	var row runRow
	var ask pgtype.Int8
	var from pgtype.Int4
	return func(rows pgx.Rows) error {
		run, err := row.scan(rows, &ask, &from)
		switch {
		case err != nil:
			return err
		case ask.Valid:
			box.Asks = append(box.Asks, xxljob.Ask{ID: ask.Int64, Incarnation: incarnation, Run: run, FromLine: int(from.Int32)})
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
func (s *Store) Take(ctx context.Context, incarnation string, ids []int64) ([]xxljob.Run, error) {
	if len(ids) == 0 {
		return nil, ended(ctx)
	}
	lo, hi := rangeOf(ids)
	args := []any{incarnation, ids, lo, hi}
	var killed []xxljob.Run
	take := func(sql string) (changed []xxljob.Run, done arming, err error) {
		err = s.inTx(ctx, bounds{name: "take", lock: quickPatience}, func(t *tx) error {
			changed, done = nil, arming{}
			killed = nil
			if err := t.do(ctx, statement{sql, args, readRuns(&changed)}, statement{s.sql.takeKilled, args, readRuns(&killed)}); err != nil {
				return err
			}
			changed = append(changed, killed...)
			var err error
			done, err = s.arm(ctx, t, endedOf(killed), nil)
			return err
		})
		return changed, done, err
	}
	sql := s.sql.take
	if s.careful() {
		sql = s.sql.takeFree
	}
	changed, done, err := take(sql)
	if lockedOut(err) && sql == s.sql.take {
		s.beCareful()
		changed, done, err = take(s.sql.takeFree)
	}
	if err != nil {
		return nil, failed(err, "take %d runs", len(ids))
	}
	s.tell(done)
	s.serials.ended(killed)
	s.wakeEnded(len(killed))
	slices.SortFunc(changed, func(a, b xxljob.Run) int { return cmp.Compare(a.ID, b.ID) })
	return changed, nil
}

// readdressArgs are those of a readdressing.
var readdressArgs = argumentsOf("shards epochs nodes run token address owner_column inbox taken message owner boot")

// dispatchedArgs are those of the marking of accepted runs, and dispatchedFreeArgs those
// where what others have locked is passed by.
var (
	dispatchedArgs     = argumentsOf("ids tokens owners messages words ords")
	dispatchedFreeArgs = argumentsOf("ids tokens owners messages words ords", "lo hi")
)

// startedByArgs are those of the reading of what nodes have under way.
var startedByArgs = argumentsOf("shards incarnations addresses after limit lo hi")

// inboxArgs are those of the reading of an inbox.
var inboxArgs = argumentsOf("incarnation after limit address lo hi")

// handoverQueries are the statements of this file.
type handoverQueries struct {
	readdress, dispatched, dispatchedFree, startedBy, inbox, take, takeFree, takeKilled string
}

func (q *handoverQueries) write() {
	q.readdress = readdressArgs.in(`with ` + fence("{{arg.shards}}", "{{arg.epochs}}", "") + `, ` + nodes("{{arg.nodes}}", "") + `
	update {{schema}}.xxl_job_log l set executor_address = {{arg.address}}, executor_boot_id = {{arg.boot}}, start_owner = {{arg.owner_column}}, inbox = {{arg.inbox}},
		taken_time = case when {{arg.taken}}::boolean then {{now}} end, trigger_msg = ` + say("{{arg.message}}::text") + `
	from fence
	where l.id = {{arg.run}} and l.shard + 0 = fence.shard and l.state + 0 = {{state.started}} and l.start_token = {{arg.token}}
	and coalesce(l.start_owner, substr(l.executor_address, 9)) = {{arg.owner}}
	and (l.taken_time is null or l.executor_address = 'local://' || {{arg.owner}}::text)
	and ({{arg.inbox}}::text is null or {{arg.inbox}}::text in (select incarnation from nodes))
	returning l.id`)
	dispatched := func(only string) string {
		return `update {{schema}}.xxl_job_log l set state = {{state.dispatched}}, trigger_msg = ` + say("r.say") + `
	from (select unnest({{arg.ids}}::bigint[]) id, unnest({{arg.messages}}::text[]) say, unnest({{arg.ords}}::int[]) ord) r
	where l.id = r.id and ` + few + only + ` and l.state + 0 = {{state.started}} and l.start_token = ({{arg.tokens}}::bigint[])[r.ord]
	and coalesce(l.start_owner, substr(l.executor_address, 9)) = ({{arg.words}}::text[])[({{arg.owners}}::smallint[])[r.ord]]
	returning r.ord, {{run}}`
	}
	q.dispatched = dispatchedArgs.in(dispatched(""))
	q.dispatchedFree = dispatchedFreeArgs.in(dispatched(`
	and l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any({{arg.ids}}::bigint[]) and p.id between {{arg.lo}} and {{arg.hi}}
		and p.state + 0 = {{state.started}} order by p.id for no key update skip locked))`))
	q.startedBy = startedByArgs.in(`select {{run}} from {{schema}}.xxl_job_log l
	where l.shard = any({{arg.shards}}::smallint[]) and l.state = {{state.started}} and l.id > {{arg.after}} and l.id between {{arg.lo}} and {{arg.hi}}
	and (l.start_owner = any({{arg.incarnations}}::text[]) or l.executor_address = any({{arg.addresses}}::text[])) order by l.id limit {{arg.limit}}`)
	q.inbox = inboxArgs.in(`(select null::bigint, null::int, {{run}} from {{schema}}.xxl_job_log l
	where l.inbox = {{arg.incarnation}} and l.state = {{state.started}} and l.id > {{arg.after}} and l.id between {{arg.lo}} and {{arg.hi}} order by l.id limit {{arg.limit}})
	union all
	(select null, null, {{run}} from {{schema}}.xxl_job_log l
	where l.kill_reason is not null and l.state in ({{state.started}}, {{state.dispatched}}) and l.executor_address = {{arg.address}} and l.taken_time is not null
	and l.id between {{arg.lo}} and {{arg.hi}} order by l.id)
	union all
	(select a.id, a.from_line, r.* from {{schema}}.xxl_job_ask a
	cross join lateral (select {{run}} from {{schema}}.xxl_job_log l where l.id = a.run_id limit 1) r
	where a.incarnation = {{arg.incarnation}} and a.answered is null and a.asked > {{kept}} order by a.id limit {{arg.limit}})`)
	take := `update {{schema}}.xxl_job_log l set taken_time = {{now}}, inbox = null
	where l.id = any(%ids) and l.id between $3 and $4 and l.inbox = $1 and l.state = {{state.started}} and l.kill_reason is null
	returning {{run}}`
	free := `array(select p.id from {{schema}}.xxl_job_log p where p.id = any($2::bigint[]) and p.id between $3 and $4
		and p.inbox = $1 order by p.id for no key update skip locked)`
	q.take = strings.ReplaceAll(take, "%ids", "$2::bigint[]")
	q.takeFree = strings.ReplaceAll(take, "%ids", free)
	q.takeKilled = `update {{schema}}.xxl_job_log l set state = {{state.killed}}, handle_time = {{now}}, inbox = null
	where l.id = any(` + free + `) and l.id between $3 and $4 and l.inbox = $1 and l.state = {{state.started}} and l.kill_reason is not null
	returning {{run}}`
}
