package postgres

// Started runs on their way to whoever executes them, and how far they are.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob/store"
)

// Readdress moves a started run, which nobody but its owner has had, to another
// address.
func (s *Store) Readdress(ctx context.Context, m store.Readdress) (bool, error) {
	in, epochs := fenceArgs([]store.Shard{{ID: m.Shard, Epoch: m.Epoch}})
	inbox := inboxColumn(m.Owner, m.Address)
	var there []string
	if inbox != "" {
		there = append(there, inbox)
	}
	var moved []int64
	err := s.one(ctx, bounds{name: "readdress"}, s.sql.readdress.by(named{
		{"shards", in}, {"epochs", epochs}, {"nodes", there}, {"run", m.RunID}, {"token", m.Token},
		{"address", m.Address}, {"start_owner", nonempty(ownerColumn(m.Owner, m.Address))}, {"inbox", nonempty(inbox)},
		{"taken", isAt(m.Owner, m.Address)}, {"message", m.Msg}, {"owner", m.Owner}, {"boot", nonempty(m.BootID)},
	}).into(readIDs(&moved)))
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
// error store.ErrLocked, beside which the runs that it changed are returned.
func (s *Store) Dispatched(ctx context.Context, accepted []store.Dispatch) ([]store.Run, error) {
	if len(accepted) == 0 {
		return nil, ended(ctx)
	}
	d := dispatching{store: s, accepted: accepted, places: placesByRun(accepted), answers: make([]store.Run, len(accepted))}
	locked, err := d.mark(ctx)
	if err != nil {
		return nil, failed(err, "mark %d runs dispatched", len(accepted))
	}
	changed := slices.DeleteFunc(d.answers, func(r store.Run) bool { return r.ID == 0 })
	if locked > 0 {
		return changed, failed(fmt.Errorf("%w: %d runs", store.ErrLocked, locked), "mark %d runs dispatched", len(accepted))
	}
	return changed, nil
}

// placesByRun are the places of the entries in order of their runs, which is the
// order in which runs are locked; of several that say the same, the first one's.
func placesByRun(accepted []store.Dispatch) []int {
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
	accepted []store.Dispatch
	places   []int // of what is to be marked yet
	answers  []store.Run
}

// mark returns how many it left out because of locks.
func (d *dispatching) mark(ctx context.Context) (locked int, err error) {
	if !d.store.careful() {
		err := d.update(ctx, false)
		if !lockedOut(err) {
			return 0, err
		}
		d.store.beCareful()
	}
	for wait := lockedWait; ; wait *= 2 {
		if err := d.update(ctx, true); err != nil {
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

// update marks what is left. In careful mode it passes by what others have locked.
func (d *dispatching) update(ctx context.Context, careful bool) error {
	dispatched := d.store.sql.dispatched
	if careful {
		dispatched = d.store.sql.dispatchedFree
	}
	args, ids := d.args(careful)
	return d.store.byDay(dispatched, ids, func(dispatched query) error {
		for _, i := range d.places {
			d.answers[i] = store.Run{}
		}
		var row runRow
		var ord int
		return d.store.one(ctx, bounds{name: "dispatched", lock: quickPatience}, dispatched.by(args).into(func(rows pgx.Rows) error {
			run, err := row.scan(rows, &ord)
			if err == nil {
				d.answers[d.places[ord-1]] = run
			}
			return err
		}))
	})
}

// args are the arguments; in careful mode with the range of the ids.
func (d *dispatching) args(careful bool) (args named, ids []int64) {
	n := len(d.places)
	tokens, owners, messages, boots := make([]int64, n), make([]int16, n), make([]*string, n), make([]*string, n)
	ids = make([]int64, n)
	var words words
	for k, i := range d.places {
		a := &d.accepted[i]
		ids[k], tokens[k], owners[k], messages[k], boots[k] = a.RunID, a.Token, words.place(a.Owner), nonempty(a.Msg), nonempty(a.BootID)
	}
	args = named{
		{"runs", ids}, {"messages", sparse(messages)}, {"places", upTo(n)}, {"tokens", tokens}, {"words", words.list},
		{"owners", owners}, {"boots", sparse(boots)},
	}
	if careful {
		lo, hi := rangeOf(ids)
		args = append(args, named{{"lo", lo}, {"hi", hi}}...)
	}
	return args, ids
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
	var runs []store.Run
	if err := d.store.read(ctx, d.store.sql.runsByID.by(named{
		{"runs", ids}, {"lo", lo}, {"hi", hi}, {"texts", allTexts},
	}).into(readNamedRuns(&runs))); err != nil {
		return err
	}
	now := make(map[int64]*store.Run, len(runs))
	for i := range runs {
		now[runs[i].ID] = &runs[i]
	}
	d.places = slices.DeleteFunc(rest, func(i int) bool {
		a := &d.accepted[i]
		r := now[a.RunID]
		return r == nil || r.State != store.StateStarted || r.Owner != a.Owner || r.Token != a.Token
	})
	return nil
}

// StartedBy returns started runs of the incarnations.
func (s *Store) StartedBy(ctx context.Context, shards []store.Shard, incarnations []string, after int64, limit int) ([]store.Run, error) {
	in, _ := fenceArgs(shards)
	if len(in) == 0 || len(incarnations) == 0 || limit <= 0 {
		return nil, ended(ctx)
	}
	var addresses []string
	for _, inc := range incarnations {
		addresses = append(addresses, store.LocalAddress(inc))
	}
	lo, hi := s.openRange()
	var runs []store.Run
	err := s.read(ctx, s.sql.startedBy.by(named{
		{"shards", in}, {"incarnations", incarnations}, {"addresses", addresses}, {"after", after}, {"limit", limit},
		{"lo", lo}, {"hi", hi},
	}).into(readRuns(&runs)))
	return runs, failed(err, "read started runs")
}

// DispatchedRuns returns a page of the dispatched runs of shards.
func (s *Store) DispatchedRuns(ctx context.Context, shards []store.Shard, after int64, limit int) ([]store.Run, error) {
	in, _ := fenceArgs(shards)
	if len(in) == 0 || limit <= 0 {
		return nil, ended(ctx)
	}
	lo, hi := s.openRange()
	var runs []store.Run
	err := s.read(ctx, s.sql.dispatchedRuns.by(named{
		{"shards", in}, {"after", after}, {"lo", lo}, {"hi", hi}, {"limit", limit},
	}).into(readRuns(&runs)))
	return runs, failed(err, "read dispatched runs")
}

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
	var route, addresses pgtype.Text
	return func(rows pgx.Rows) error {
		run, err := row.scan(rows, &ask, &from, &route, &addresses)
		switch {
		case err != nil:
			return err
		case ask.Valid:
			list, err := listOf(addresses.String)
			if err != nil {
				return err
			}
			box.Asks = append(box.Asks, store.Ask{ID: ask.Int64, Incarnation: incarnation, Run: run, FromLine: int(from.Int32), Route: route.String, Addresses: list})
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

// How far runs are. It is best effort: what somebody else has locked at this moment goes
// without, and is said again with the next news or with the end.

// SetProgress stores how far runs are.
func (s *Store) SetProgress(ctx context.Context, list []store.Progress) error {
	if err := ended(ctx); err != nil {
		return err
	}
	for len(list) > 0 {
		var part []store.Progress
		part, list = distinct(list)
		args, ids := progressArgs(part)
		err := s.byDay(s.sql.setProgress, ids, func(q query) error {
			return s.one(ctx, bounds{name: "progress", lock: quickPatience}, q.by(args))
		})
		if err != nil {
			return failed(err, "store the progress of %d runs", len(part))
		}
	}
	return nil
}

// distinct parts what one statement stores from what comes after it: a statement changes each
// row once.
func distinct(list []store.Progress) (part, rest []store.Progress) {
	seen := make(map[int64]bool, len(list))
	for i, p := range list {
		if len(part) == finishBatch {
			return part, append(rest, list[i:]...)
		}
		if seen[p.RunID] {
			rest = append(rest, p)
			continue
		}
		seen[p.RunID] = true
		part = append(part, p)
	}
	return part, rest
}

func progressArgs(list []store.Progress) (args named, ids []int64) {
	n := len(list)
	tokens, percents, texts, addresses := make([]int64, n), make([]int16, n), make([]*string, n), make([]int16, n)
	ids = make([]int64, n)
	var words words
	for i := range list {
		p := &list[i]
		ids[i], tokens[i], percents[i], texts[i] = p.RunID, p.Token, int16(min(max(p.Percent, 0), 100)), nonempty(p.Text)
		if p.Incarnation != "" {
			addresses[i] = words.place(store.LocalAddress(p.Incarnation))
		}
	}
	return named{
		{"runs", ids}, {"places", upTo(n)}, {"tokens", tokens}, {"addresses", addresses}, {"words", words.list},
		{"percents", percents}, {"texts", texts},
	}, ids
}

// handoverQueries are the statements of this file.
type handoverQueries struct {
	readdress, dispatched, dispatchedFree, startedBy query
	dispatchedRuns                                   query
	inbox, take, takeFree, takeKilled                query
	setProgress                                      query
}

func (q *handoverQueries) define(sql template) {
	q.readdress = sql(`with ` + fence("") + `, ` + nodes("") + `
	update {{schema}}.xxl_job_log l set executor_address = {{arg.address}}, executor_boot_id = {{arg.boot}},
		start_owner = {{arg.start_owner}}, inbox = {{arg.inbox}},
		taken_time = case when {{arg.taken}}::boolean then {{now}} end, trigger_msg = ` + sayBehind("("+spelledOut()+")", "{{arg.message}}::text") + `, routed = null
	from fence
	where l.id = {{arg.run}} and l.shard + 0 = fence.shard and l.state + 0 = {{state.started}} and l.start_token = {{arg.token}}
	and coalesce(l.start_owner, substr(l.executor_address, 9)) = {{arg.owner}}
	and (l.taken_time is null or l.executor_address = 'local://' || {{arg.owner}}::text)
	and ({{arg.inbox}}::text is null or {{arg.inbox}}::text in (select incarnation from nodes))
	returning l.id`).saying()
	dispatched := func(only string) string {
		return `update {{schema}}.xxl_job_log l set state = {{state.dispatched}}, trigger_msg = ` + say("r.say") + `,
		executor_boot_id = coalesce(({{arg.boots}}::text[])[r.ord], l.executor_boot_id)
	from (select unnest({{arg.runs}}::bigint[]) id, unnest({{arg.messages}}::text[]) say, unnest({{arg.places}}::int[]) ord) r
	where ` + runIs("r.id") + ` and ` + few + only + ` and l.state + 0 = {{state.started}} and l.start_token = ({{arg.tokens}}::bigint[])[r.ord]
	and coalesce(l.start_owner, substr(l.executor_address, 9)) = ({{arg.words}}::text[])[({{arg.owners}}::smallint[])[r.ord]]
	returning r.ord, {{run}}`
	}
	q.dispatched = sql(dispatched("")).saying()
	q.dispatchedFree = sql(dispatched(`
	and l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any({{arg.runs}}::bigint[]) and p.id between {{arg.lo}} and {{arg.hi}}
		and p.state + 0 = {{state.started}} order by p.id for no key update skip locked))`)).saying()
	q.startedBy = sql(`select {{run}} from {{schema}}.xxl_job_log l
	where l.shard = any({{arg.shards}}::smallint[]) and l.state = {{state.started}} and l.id > {{arg.after}} and l.id between {{arg.lo}} and {{arg.hi}}
	and (l.start_owner = any({{arg.incarnations}}::text[]) or l.executor_address = any({{arg.addresses}}::text[])) order by l.id limit {{arg.limit}}`)

	q.dispatchedRuns = sql(`select {{run}} from {{schema}}.xxl_job_log l
	where l.shard = any({{arg.shards}}::smallint[]) and l.state = {{state.dispatched}} and l.id > {{arg.after}} and l.id between {{arg.lo}} and {{arg.hi}}
	order by l.id limit {{arg.limit}}`)

	q.inbox = sql(`(select null::bigint, null::int, null::text, null::text, {{run}} from {{schema}}.xxl_job_log l
	where l.inbox = {{arg.incarnation}} and l.state = {{state.started}} and l.id > {{arg.after}} and l.id between {{arg.lo}} and {{arg.hi}}
		order by l.id limit {{arg.limit}})
	union all
	(select null, null, null, null, {{run}} from {{schema}}.xxl_job_log l
	where l.kill_reason is not null and l.state in ({{state.started}}, {{state.dispatched}}) and l.executor_address = {{arg.address}} and l.taken_time is not null
	and l.id between {{arg.lo}} and {{arg.hi}} order by l.id)
	union all
	(select a.id, a.from_line, a.route, a.addresses, r.* from {{schema}}.xxl_job_ask a
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
	q.take = sql(take("{{arg.runs}}::bigint[]")).saying()
	q.takeFree = sql(take(free)).saying()
	q.takeKilled = sql(`update {{schema}}.xxl_job_log l set state = {{state.killed}}, handle_time = {{now}}, inbox = null
	where l.id = any(` + free + `) and l.id between {{arg.lo}} and {{arg.hi}} and l.inbox = {{arg.incarnation}} and l.state = {{state.started}}
		and l.kill_reason is not null
	returning {{run}}`)

	q.setProgress = sql(`with mine as materialized (
	select p.id, r.ord from (select unnest({{arg.runs}}::bigint[]) id, unnest({{arg.places}}::int[]) ord) r
	join {{schema}}.xxl_job_log p on p.id = r.id and ` + few + `
	where p.state + 0 in ({{state.started}}, {{state.dispatched}}) and p.start_token = ({{arg.tokens}}::bigint[])[r.ord]
		and (({{arg.addresses}}::smallint[])[r.ord] = 0 or p.state = {{state.started}}
			and p.executor_address = ({{arg.words}}::text[])[({{arg.addresses}}::smallint[])[r.ord]])
	order by p.id for no key update of p skip locked)
	update {{schema}}.xxl_job_log l set progress = ({{arg.percents}}::smallint[])[r.ord], progress_text = ({{arg.texts}}::text[])[r.ord]
	from mine r where l.id = r.id and ` + few).saying()
}
