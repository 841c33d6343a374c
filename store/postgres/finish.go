package postgres

// Results of runs.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/xxljob/xxljob/store"
)

// finishBatch is how many results one transaction stores at most.
const finishBatch = 1000

// Finish stores results. Those whose rows others have locked are left out and
// make the error store.ErrLocked.
func (s *Store) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	before := len(dst)
	dst, answers := extended(dst, len(results))
	locked := 0
	for _, places := range s.groupResults(results) {
		n, err := s.finishPlaces(ctx, results, places, answers)
		if err != nil {
			return nil, failed(err, "finish %d runs", len(results))
		}
		locked += n
	}
	accepted := len(slices.DeleteFunc(answers, func(r store.Run) bool { return r.ID == 0 }))
	dst = dst[:before+accepted]
	s.wakeEnded(accepted)
	if locked > 0 {
		return dst, failed(fmt.Errorf("%w: %d runs", store.ErrLocked, locked), "finish %d runs", len(results))
	}
	return dst, nil
}

// groupResults keeps the order among results of one run: the later one goes into
// a later statement.
func (s *Store) groupResults(results []store.Result) [][]int {
	var groups [][]int
	seen := s.grouping.take()
	defer s.grouping.giveBack(seen)
	in := seen.ids // the group of the run's last result
	for i := range results {
		if !results[i].State.Ended() || results[i].State == store.StateSkipped {
			continue // no run becomes that
		}
		g := 0
		if last, twice := in[results[i].RunID]; twice {
			g = last + 1
		}
		for g < len(groups) && len(groups[g]) == finishBatch {
			g++
		}
		if g == len(groups) {
			groups = append(groups, make([]int, 0, min(len(results)-i, finishBatch)))
		}
		groups[g] = append(groups[g], i)
		in[results[i].RunID] = g
	}
	return groups
}

// finishGroup stores results of different runs. It returns how many it left out
// because of locks.
func (s *Store) finishGroup(ctx context.Context, results []store.Result, places []int, answers []store.Run) (locked int, err error) {
	f := finishing{store: s, results: results, places: places, answers: answers}
	if !s.careful() {
		err = f.storeResults(ctx, false)
		if !lockedOut(err) {
			return 0, err
		}
		s.beCareful()
	}
	for wait := lockedWait; ; wait *= 2 {
		locked, err = f.passBy(ctx)
		again := lockedOut(err) || err == nil && locked > 0
		if !again || wait > lockedMost {
			return locked, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// passBy stores what nobody has locked, and returns how many results it left out. A row that
// another is about to insert, of the parts of a broadcast for instance, cannot be passed by:
// nothing but its lock is seen.
func (f *finishing) passBy(ctx context.Context) (left int, err error) {
	if err := f.storeResults(ctx, true); err != nil {
		return 0, err
	}
	f.places, err = f.locked(ctx)
	return len(f.places), err
}

// Rows that others have locked are tried again for about as long as a healthy
// transaction lasts, before Finish leaves them out.
const (
	lockedWait = 5 * time.Millisecond
	lockedMost = 80 * time.Millisecond
)

// finishing is one transaction's worth of results.
type finishing struct {
	store   *Store
	results []store.Result
	places  []int
	answers []store.Run
	free    map[int64]bool // in careful mode: the runs that could be locked
	linked  bool           // some jobs lead to others: see owed.go
	idle    []int64        // those of the jobs of plain results that have no next instant
}

// storeResults is one attempt. In careful mode it passes by what others have locked.
func (f *finishing) storeResults(ctx context.Context, careful bool) error {
	ids := make([]int64, len(f.places))
	for k, i := range f.places {
		ids[k] = f.results[i].RunID
	}
	finish := f.store.sql.finish
	switch {
	case f.plain():
		finish = f.store.sql.finishPlain
	case f.brief():
		finish = f.store.sql.finishBrief
	}
	return f.store.byDay(finish, ids, func(finish query) error { return f.storeInTx(ctx, finish, careful) })
}

// storeInTx is the transaction of an attempt.
func (f *finishing) storeInTx(ctx context.Context, finish query, careful bool) error {
	s := f.store
	var done arming
	var after following
	var owed owing
	var alarms alarming
	var ends []runEnd
	err := s.withPartitions(ctx, func() error {
		return s.inTx(ctx, bounds{name: "finish", lock: quickPatience}, func(t *tx) error {
			places := f.places
			if careful {
				var err error
				if places, err = f.lockable(ctx, t); err != nil {
					return err
				}
			}
			for _, i := range f.places {
				f.answers[i] = store.Run{}
			}
			if len(places) > 0 {
				if err := f.update(ctx, t, finish, places); err != nil {
					return err
				}
			}
			if err := f.note(ctx, t); err != nil {
				return err
			}
			for _, i := range f.places {
				t.countEnd(&f.answers[i])
			}
			var err error
			if after, err = f.follow(ctx, t); err != nil {
				return err
			}
			if alarms, err = f.alarm(ctx, t, &after); err != nil {
				return err
			}
			if owed, err = s.owe(ctx, t, f.succeeded()); err != nil {
				return err
			}
			ends = f.accepted(&after)
			done, err = f.arm(ctx, t, ends)
			return err
		})
	})
	if err == nil {
		s.tell(done)
		s.tellFollowing(&after)
		s.tellOwed(&owed)
		alarms.tell()
		for _, i := range f.places {
			done.mark(&f.answers[i])
		}
		for _, end := range ends {
			s.serials.end(end.id)
		}
	}
	return err
}

// accepted are the ends of runs that have accepted their results, with what follows them.
func (f *finishing) accepted(after *following) []runEnd {
	ends := make([]runEnd, 0, len(f.places))
	for _, i := range f.places {
		if f.answers[i].ID != 0 {
			ends = append(ends, after.end(&f.answers[i]))
		}
	}
	return ends
}

// follow inserts what follows the runs that have accepted their results.
func (f *finishing) follow(ctx context.Context, t *tx) (following, error) {
	var runs []*store.Run
	after := map[int64]time.Duration{}
	for _, i := range f.places {
		if r := &f.answers[i]; r.ID != 0 && follows(r.State) {
			runs = append(runs, r)
			after[r.ID] = f.results[i].After
		}
	}
	return f.store.follow(ctx, t, runs, after)
}

// alarm inserts the alarms of the runs that have accepted their results.
func (f *finishing) alarm(ctx context.Context, t *tx, after *following) (alarming, error) {
	alarms := f.store.alarms()
	for _, i := range f.places {
		if f.answers[i].ID != 0 && f.answers[i].State != store.StateSucceeded {
			alarms.ended(after, f.answers[i])
		}
	}
	return alarms, alarms.insert(ctx, t)
}

// succeeded are the runs that have, where any job leads to others.
func (f *finishing) succeeded() (runs []*store.Run) {
	if !f.linked {
		return nil
	}
	for _, i := range f.places {
		if r := &f.answers[i]; r.ID != 0 && r.State == store.StateSucceeded {
			runs = append(runs, r)
		}
	}
	return runs
}

// arm follows the rules for the jobs of the runs that have ended.
func (f *finishing) arm(ctx context.Context, t *tx, ended []runEnd) (arming, error) {
	if f.plain() && len(ended) == len(f.places) {
		return f.store.armIdle(ctx, t, ended, f.idle)
	}
	return f.store.arm(ctx, t, ended, nil)
}

// update ends the runs.
func (f *finishing) update(ctx context.Context, t *tx, finish query, places []int) error {
	f.linked, f.idle = false, nil
	if f.plain() {
		return t.do(ctx, finish.by(plainArgs(f.results, places)).into(f.readPlain(places)), f.askIdle(places))
	}
	read := f.readEnded(places)
	if f.brief() {
		read = f.readBriefly(places)
	}
	update := finish.by(resultArgs(f.results, places)).into(read)
	if len(f.mayBeFollowed(places)) == 0 {
		return t.do(ctx, update)
	}
	ids := make([]int64, len(places)) // all of them, since another batch may have those in another order
	for i, p := range places {
		ids[i] = f.results[p].RunID
	}
	return t.do(ctx, f.store.lockTriggers(ids), update)
}

// askIdle asks which jobs of runs that are known are to be armed, in the round trip that ends the
// runs. Where some runs do not accept their results, arm asks again about the others.
func (f *finishing) askIdle(places []int) statement {
	jobs := make([]int64, len(places))
	for k, i := range places {
		jobs[k] = f.results[i].Known.JobID
	}
	slices.Sort(jobs)
	return f.store.sql.idleJobs.with(slices.Compact(jobs)).into(readIDs(&f.idle))
}

// brief reports whether all the runs are known.
func (f *finishing) brief() bool {
	return !slices.ContainsFunc(f.places, func(i int) bool { return f.results[i].Known == nil })
}

// readEnded takes in the runs that have ended.
func (f *finishing) readEnded(places []int) result {
	var row runRow
	var ord int
	return func(rows pgx.Rows) error {
		run, err := row.scan(rows, &ord, &f.linked)
		if err == nil {
			f.answers[places[ord-1]] = run
		}
		return err
	}
}

// readBriefly takes in what is not known of them.
func (f *finishing) readBriefly(places []int) result {
	var ord int
	var state int16
	var ended pgtype.Timestamptz
	var noRetry, snoozed pgtype.Bool
	var routed, message, handle, kill, text repeated
	var said spelling
	var progress pgtype.Int2
	dest := []any{&ord, &f.linked, &state, &ended, &noRetry, &snoozed, &routed, &message, &handle, &kill, &progress, &text}
	return func(rows pgx.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		i := places[ord-1]
		f.answers[i] = f.results[i].Ended(&store.Run{
			State: stateOf(state, snoozed), Ended: stamp(ended), NoRetry: noRetry.Bool, HandleMsg: handle.text,
			TriggerMsg: said.ofKnown(f.results[i].Known, &routed, &message),
			KillReason: kill.text, Progress: int(progress.Int16), ProgressText: text.text,
		})
		return nil
	}
}

// mayBeFollowed are the runs of the results after which others may come.
func (f *finishing) mayBeFollowed(places []int) (ids []int64) {
	for _, i := range places {
		if follows(f.results[i].State) {
			ids = append(ids, f.results[i].RunID)
		}
	}
	return ids
}

// resultArgs are the arguments of a statement that ends runs.
func resultArgs(results []store.Result, places []int) named {
	n := len(places)
	ids, tokens, states := make([]int64, n), make([]int64, n), make([]int16, n)
	addresses, owners, messages, lines, noRetry := make([]int16, n), make([]int16, n), make([]*string, n), make([]*string, n), make([]bool, n)
	percents, texts, snoozed := make([]*int16, n), make([]*string, n), make([]bool, n)
	var words words
	for k, i := range places {
		r := &results[i]
		ids[k], tokens[k], states[k] = r.RunID, r.Token, int16(r.State)
		if snoozed[k] = r.State == store.StateSnoozed; snoozed[k] {
			states[k] = int16(store.StateSucceeded)
		}
		switch {
		case r.Owner != "":
			owners[k] = words.place(r.Owner)
		case r.Incarnation != "" || r.Token != 0:
			addresses[k] = words.place(store.LocalAddress(r.Incarnation))
		}
		messages[k], lines[k], noRetry[k] = nonempty(r.HandleMsg), nonempty(r.TriggerMsg), r.NoRetry
		if r.Progress != 0 || r.ProgressText != "" {
			percents[k], texts[k] = new(int16(min(max(r.Progress, 0), 100))), nonempty(r.ProgressText)
		}
	}
	return named{
		{"states", states}, {"no_retry", sparse(noRetry)}, {"percents", sparse(percents)}, {"texts", sparse(texts)},
		{"runs", ids}, {"messages", sparse(messages)}, {"lines", sparse(lines)}, {"places", upTo(n)},
		{"addresses", addresses}, {"tokens", tokens}, {"words", words.list}, {"owners", sparse(owners)}, {"snoozed", sparse(snoozed)},
	}
}

// note notes results that came after their runs were lost, or refused elsewhere. A run whose row others
// have locked goes without. What an owner concludes is no news of the run: nothing
// has ended it. Neither is it that the run is lost.
func (f *finishing) note(ctx context.Context, t *tx) error {
	var late []int64
	var notes []string
	for _, i := range f.places {
		if f.answers[i].ID == 0 && f.results[i].Owner == "" && f.results[i].State != store.StateLost {
			late = append(late, f.results[i].RunID)
			notes = append(notes, f.results[i].State.String())
		}
	}
	if len(late) == 0 {
		return nil
	}
	lo, hi := rangeOf(late)
	return t.do(ctx, f.store.sql.finishLate.by(named{{"runs", late}, {"lines", notes}, {"lo", lo}, {"hi", hi}}))
}

// Results of runs that the caller knows, that have succeeded at one attached executor and say
// nothing more, as most do. What decides about them is what decides about others.

// plain reports whether all the results are such.
func (f *finishing) plain() bool {
	first := &f.results[f.places[0]]
	for _, i := range f.places {
		r := &f.results[i]
		if r.Known == nil || r.State != store.StateSucceeded || r.Owner != "" || r.Incarnation == "" || r.Incarnation != first.Incarnation ||
			r.HandleMsg != "" || r.TriggerMsg != "" || r.NoRetry || r.Progress != 0 || r.ProgressText != "" {
			return false
		}
	}
	return true
}

// plainArgs are the arguments of the statement that ends them.
func plainArgs(results []store.Result, places []int) named {
	ids, tokens := make([]int64, len(places)), make([]int64, len(places))
	for k, i := range places {
		ids[k], tokens[k] = results[i].RunID, results[i].Token
	}
	address := store.LocalAddress(results[places[0]].Incarnation)
	return named{{"runs", ids}, {"tokens", tokens}, {"places", upTo(len(places))}, {"address", address}}
}

// readPlain takes in what is not known of them.
func (f *finishing) readPlain(places []int) result {
	var ord int
	var ended pgtype.Timestamptz
	var routed, message, kill, text repeated
	var said spelling
	var progress pgtype.Int2
	dest := []any{&ord, &f.linked, &ended, &routed, &message, &kill, &progress, &text}
	return func(rows pgx.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		i := places[ord-1]
		f.answers[i] = f.results[i].Ended(&store.Run{
			State: store.StateSucceeded, Ended: stamp(ended), TriggerMsg: said.ofKnown(f.results[i].Known, &routed, &message),
			KillReason: kill.text, Progress: int(progress.Int16), ProgressText: text.text,
		})
		return nil
	}
}

// finishQueries are the statements of this file.
type finishQueries struct {
	finish, finishBrief, finishLate query
	finishPlain                     query
}

func (q *finishQueries) define(sql template) {
	// A run that is snoozed once too often has failed: see store.Run.SnoozedTooOften.
	tooOften := `({{arg.snoozed}}::boolean[])[r.ord] is true and coalesce(l.snoozes, 0) >= (select
		case when i.max_snoozes > 0 then i.max_snoozes else {{snoozes.default}} end from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard)`
	finish := `update {{schema}}.xxl_job_log l set
		state = case when ` + tooOften + ` then {{state.failed}} else ({{arg.states}}::smallint[])[r.ord] end, handle_time = {{now}},
		handle_msg = case when ` + tooOften + ` then '` + store.TooManySnoozes + `' else r.msg end,
		no_retry = case when ({{arg.no_retry}}::boolean[])[r.ord] or ` + tooOften + ` then true end,
		snoozed = case when ({{arg.snoozed}}::boolean[])[r.ord] and (` + tooOften + `) is not true then true end, inbox = null, trigger_msg = ` + say("r.say") + `,
		progress = coalesce(({{arg.percents}}::smallint[])[r.ord], l.progress),
		progress_text = case when ({{arg.percents}}::smallint[])[r.ord] is null then l.progress_text else ({{arg.texts}}::text[])[r.ord] end
	from (select unnest({{arg.runs}}::bigint[]) id, unnest({{arg.messages}}::text[]) msg, unnest({{arg.lines}}::text[]) say, unnest({{arg.places}}::int[]) ord) r
	where ` + runIs("r.id") + ` and ` + few + ` and l.state + 0 in ({{state.started}}, {{state.dispatched}})
		and (l.state = {{state.started}} or ({{arg.states}}::smallint[])[r.ord] <> {{state.cancelled}})
	and (({{arg.addresses}}::smallint[])[r.ord] = 0 or l.state = {{state.started}} and l.start_token = ({{arg.tokens}}::bigint[])[r.ord]
		and l.executor_address = ({{arg.words}}::text[])[({{arg.addresses}}::smallint[])[r.ord]])
	and (coalesce(({{arg.owners}}::smallint[])[r.ord], 0) = 0 or l.start_token = ({{arg.tokens}}::bigint[])[r.ord]
		and coalesce(l.start_owner, substr(l.executor_address, 9)) = ({{arg.words}}::text[])[({{arg.owners}}::smallint[])[r.ord]])
	returning r.ord, ` + anyLink + `, `
	q.finish = sql(finish + `{{run}}`).saying()
	q.finishBrief = sql(finish + `l.state, l.handle_time, l.no_retry, l.snoozed, l.routed, l.trigger_msg, l.handle_msg, l.kill_reason, l.progress, l.progress_text`).saying()
	q.finishLate = sql(`update {{schema}}.xxl_job_log l set late_noted = true, trigger_msg = ` +
		say("'a result came after the run was ' || case when l.state + 0 = {{state.lost}} then 'lost' else 'refused' end || ': ' || r.say") + `
	from unnest({{arg.runs}}::bigint[], {{arg.lines}}::text[]) with ordinality r(id, say, ord)
	where ` + runIs("r.id") + ` and ` + few + ` and l.id = any(array(select p.id from {{schema}}.xxl_job_log p
		where p.id = any({{arg.runs}}::bigint[]) and p.id between {{arg.lo}} and {{arg.hi}} and p.late_noted is null
			and (p.state + 0 = {{state.lost}} or p.state + 0 = {{state.refused}} and p.executor_address not like 'local://%')
		order by p.id for no key update skip locked))`).saying()

	q.finishPlain = sql(`update {{schema}}.xxl_job_log l set state = {{state.succeeded}}, handle_time = (select {{now}}),
		handle_msg = null, no_retry = null, snoozed = null, inbox = null
	from (select unnest({{arg.runs}}::bigint[]) id, unnest({{arg.tokens}}::bigint[]) token, unnest({{arg.places}}::int[]) ord) r
	where ` + runIs("r.id") + ` and ` + few + ` and l.state + 0 = {{state.started}} and l.start_token = r.token and l.executor_address = {{arg.address}}::text
	returning r.ord, ` + anyLink + `, l.handle_time, l.routed, l.trigger_msg, l.kill_reason, l.progress, l.progress_text`)
}

// Results whose rows others may have locked: what can be locked at once is, and the rest is left
// out for the moment.

// lockable locks what can be locked at once: the runs, and the jobs that their
// ends concern. It returns the places of their results.
func (f *finishing) lockable(ctx context.Context, t *tx) ([]int, error) {
	s := f.store
	var ids []int64
	for _, i := range f.places {
		ids = append(ids, f.results[i].RunID)
	}
	lo, hi := rangeOf(ids)
	jobOf, firsts, triggerOf := map[int64]int64{}, map[int64]int64{}, map[int64]int64{}
	var jobs, idle, free, triggers, parts []int64
	if err := t.do(ctx, s.sql.lockRuns.by(named{{"runs", ids}, {"lo", lo}, {"hi", hi}}).into(func(rows pgx.Rows) error {
		var id, job, first int64
		err := rows.Scan(&id, &job, &first)
		if first != id {
			firsts[id] = first
		}
		jobOf[id], triggerOf[id] = job, first
		jobs, triggers = append(jobs, job), append(triggers, first)
		return err
	})); err != nil {
		return nil, err
	}
	if len(jobs) > 0 {
		if err := t.do(ctx, s.sql.idleJobs.with(jobs).into(readIDs(&idle)), s.sql.heldParts.with(triggers).into(readIDs(&parts))); err != nil {
			return nil, err
		}
	}
	if len(idle) > 0 {
		if err := t.do(ctx, s.sql.lockIdleFree.with(idle).into(readIDs(&free))); err != nil {
			return nil, err
		}
	}
	held, err := f.held(ctx, t, firsts, jobOf)
	if err != nil {
		return nil, err
	}
	f.free = map[int64]bool{}
	var places []int
	for _, i := range f.places {
		job, ok := jobOf[f.results[i].RunID]
		if ok && !held[f.results[i].RunID] && !slices.Contains(parts, triggerOf[f.results[i].RunID]) && (!slices.Contains(idle, job) || slices.Contains(free, job)) {
			f.free[f.results[i].RunID] = true
			places = append(places, i)
		}
	}
	return places, nil
}

// held are those of the runs, after which others may come, whose triggers' first runs or whose
// jobs others have locked. The others it locks; what is gone holds nobody up.
func (f *finishing) held(ctx context.Context, t *tx, firsts, jobOf map[int64]int64) (runs map[int64]bool, err error) {
	var jobs, ids, heldJobs, heldRuns []int64
	followed := f.mayBeFollowed(f.places)
	for _, id := range followed {
		if job := jobOf[id]; job != 0 {
			jobs = append(jobs, job)
		}
		if first := firsts[id]; first != 0 {
			ids = append(ids, first)
		}
	}
	if len(jobs) == 0 {
		return nil, nil
	}
	lock := []statement{f.store.sql.heldJobs.with(jobs).into(readIDs(&heldJobs))}
	if len(ids) > 0 {
		lo, hi := rangeOf(ids)
		lock = append([]statement{f.store.sql.heldRuns.by(named{{"runs", ids}, {"lo", lo}, {"hi", hi}}).into(readIDs(&heldRuns))}, lock...)
	}
	if err := t.do(ctx, lock...); err != nil {
		return nil, err
	}
	runs = map[int64]bool{}
	for _, id := range followed {
		runs[id] = slices.Contains(heldRuns, firsts[id]) || slices.Contains(heldJobs, jobOf[id])
	}
	return runs, nil
}

// locked are the places of results that were left out though their runs have not
// ended.
func (f *finishing) locked(ctx context.Context) ([]int, error) {
	var rest []int64
	for _, i := range f.places {
		if id := f.results[i].RunID; !f.free[id] {
			rest = append(rest, id)
		}
	}
	if len(rest) == 0 {
		return nil, nil
	}
	lo, hi := rangeOf(rest)
	var unended []int64
	err := f.store.read(ctx, f.store.sql.unended.by(named{{"runs", rest}, {"lo", lo}, {"hi", hi}}).into(readIDs(&unended)))
	return slices.DeleteFunc(f.places, func(i int) bool { return !slices.Contains(unended, f.results[i].RunID) }), err
}

// finishFreeQueries are the statements of this file.
type finishFreeQueries struct {
	unended, lockRuns, heldRuns, heldJobs query
}

func (q *finishFreeQueries) define(sql template) {
	q.unended = sql(`select l.id from {{schema}}.xxl_job_log l where l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}} and {{arg.hi}}
	and l.state + 0 in ({{state.started}}, {{state.dispatched}})`)
	q.lockRuns = sql(`select l.id, l.job_id, coalesce(l.trigger_id, l.id) from {{schema}}.xxl_job_log l
	where l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}} and {{arg.hi}} and l.state + 0 in ({{state.started}}, {{state.dispatched}})
		order by l.id for no key update skip locked`)
	of := `l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}} and {{arg.hi}} and ` + mayBeLocked
	q.heldRuns = sql(`with free as materialized (select l.id from {{schema}}.xxl_job_log l where ` + of + ` order by l.id for no key update skip locked)
	select l.id from {{schema}}.xxl_job_log l where ` + of + ` and l.id not in (select id from free)`)
	q.heldJobs = sql(`with free as materialized (
		select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) order by n.job_id for key share skip locked)
	select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) and n.job_id not in (select job_id from free)`)
}
