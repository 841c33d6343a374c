package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// finishBatch is how many results one transaction stores at most.
const finishBatch = 1000

// Finish stores results. Those whose rows others have locked are left out and
// make the error store.ErrLocked.
func (s *Store) Finish(ctx context.Context, results []xxljob.Result) ([]xxljob.Run, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	answers := make([]xxljob.Run, len(results))
	locked := 0
	for _, places := range groupResults(results) {
		n, err := s.finishGroup(ctx, results, places, answers)
		if err != nil {
			return nil, failed(err, "finish %d runs", len(results))
		}
		locked += n
	}
	accepted := slices.DeleteFunc(answers, func(r xxljob.Run) bool { return r.ID == 0 })
	s.wakeEnded(len(accepted))
	if locked > 0 {
		return accepted, failed(fmt.Errorf("%w: %d runs", store.ErrLocked, locked), "finish %d runs", len(results))
	}
	return accepted, nil
}

// groupResults keeps the order among results of one run: the later one goes into
// a later statement.
func groupResults(results []xxljob.Result) [][]int {
	var groups [][]int
	in := map[int64]int{} // the group of the run's last result
	for i := range results {
		if !results[i].State.Ended() || results[i].State == xxljob.StateSkipped {
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
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
		in[results[i].RunID] = g
	}
	return groups
}

// finishGroup stores results of different runs. It returns how many it left out
// because of locks.
func (s *Store) finishGroup(ctx context.Context, results []xxljob.Result, places []int, answers []xxljob.Run) (locked int, err error) {
	f := finishing{store: s, results: results, places: places, answers: answers}
	if !s.careful() {
		err = f.storeResults(ctx, false)
		if !lockedOut(err) {
			return 0, err
		}
		s.beCareful()
	}
	for wait := lockedWait; ; wait *= 2 {
		if err := f.storeResults(ctx, true); err != nil {
			return 0, err
		}
		if f.places, err = f.locked(ctx); err != nil || len(f.places) == 0 || wait > lockedMost {
			return len(f.places), err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(wait):
		}
	}
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
	results []xxljob.Result
	places  []int
	answers []xxljob.Run
	free    map[int64]bool // in careful mode: the runs that could be locked
}

// storeResults is one attempt. In careful mode it passes by what others have locked.
func (f *finishing) storeResults(ctx context.Context, careful bool) error {
	ids := make([]int64, len(f.places))
	for k, i := range f.places {
		ids[k] = f.results[i].RunID
	}
	return f.store.byDay(f.store.sql.finish, ids, func(finish query) error { return f.storeInTx(ctx, finish, careful) })
}

// storeInTx is the transaction of an attempt.
func (f *finishing) storeInTx(ctx context.Context, finish query, careful bool) error {
	s := f.store
	var done arming
	err := s.inTx(ctx, bounds{name: "finish", lock: quickPatience}, func(t *tx) error {
		places := f.places
		if careful {
			var err error
			if places, err = f.lockable(ctx, t); err != nil {
				return err
			}
		}
		for _, i := range f.places {
			f.answers[i] = xxljob.Run{}
		}
		if len(places) > 0 {
			if err := f.update(ctx, t, finish, places); err != nil {
				return err
			}
		}
		if err := f.note(ctx, t); err != nil {
			return err
		}
		var err error
		done, err = s.arm(ctx, t, f.accepted(), nil)
		return err
	})
	if err == nil {
		s.tell(done)
		for _, i := range f.places {
			done.mark(&f.answers[i])
		}
		for _, end := range f.accepted() {
			s.serials.end(end.id)
		}
	}
	return err
}

func (f *finishing) accepted() []runEnd {
	ends := make([]runEnd, 0, len(f.places))
	for _, i := range f.places {
		if f.answers[i].ID != 0 {
			ends = append(ends, endOf(&f.answers[i]))
		}
	}
	return ends
}

// update ends the runs.
func (f *finishing) update(ctx context.Context, t *tx, finish query, places []int) error {
	var row runRow
	var ord int
	return t.do(ctx, finish.by(resultArgs(f.results, places)).into(func(rows pgx.Rows) error {
		run, err := row.scan(rows, &ord)
		if err == nil {
			f.answers[places[ord-1]] = run
		}
		return err
	}))
}

// resultArgs are the arguments of a statement that ends runs.
func resultArgs(results []xxljob.Result, places []int) named {
	n := len(places)
	ids, tokens, states := make([]int64, n), make([]int64, n), make([]int16, n)
	addresses, owners, messages, lines, noRetry := make([]int16, n), make([]int16, n), make([]*string, n), make([]*string, n), make([]bool, n)
	percents, texts := make([]*int16, n), make([]*string, n)
	var words words
	for k, i := range places {
		r := &results[i]
		ids[k], tokens[k], states[k] = r.RunID, r.Token, int16(r.State)
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
		{"addresses", addresses}, {"tokens", tokens}, {"words", words.list}, {"owners", sparse(owners)},
	}
}

// note notes results that came after their runs were lost. A run whose row others
// have locked goes without. What an owner concludes is no news of the run: nothing
// has ended it.
func (f *finishing) note(ctx context.Context, t *tx) error {
	var late []int64
	var notes []string
	for _, i := range f.places {
		if f.answers[i].ID == 0 && f.results[i].Owner == "" {
			late = append(late, f.results[i].RunID)
			notes = append(notes, "a result came after the run was lost: "+f.results[i].State.String())
		}
	}
	if len(late) == 0 {
		return nil
	}
	lo, hi := rangeOf(late)
	return t.do(ctx, f.store.sql.finishLate.by(named{{"runs", late}, {"lines", notes}, {"lo", lo}, {"hi", hi}}))
}

// lockable locks what can be locked at once: the runs, and the jobs that their
// ends concern. It returns the places of their results.
func (f *finishing) lockable(ctx context.Context, t *tx) ([]int, error) {
	s := f.store
	var ids []int64
	for _, i := range f.places {
		ids = append(ids, f.results[i].RunID)
	}
	lo, hi := rangeOf(ids)
	jobOf := map[int64]int64{}
	var jobs, idle, free []int64
	if err := t.do(ctx, s.sql.lockRuns.by(named{{"runs", ids}, {"lo", lo}, {"hi", hi}}).into(func(rows pgx.Rows) error {
		var id, job int64
		err := rows.Scan(&id, &job)
		jobOf[id] = job
		jobs = append(jobs, job)
		return err
	})); err != nil {
		return nil, err
	}
	if len(jobs) > 0 {
		if err := t.do(ctx, s.sql.idleJobs.with(jobs).into(readIDs(&idle))); err != nil {
			return nil, err
		}
	}
	if len(idle) > 0 {
		if err := t.do(ctx, s.sql.lockIdleFree.with(idle).into(readIDs(&free))); err != nil {
			return nil, err
		}
	}
	f.free = map[int64]bool{}
	var places []int
	for _, i := range f.places {
		job, ok := jobOf[f.results[i].RunID]
		if ok && (!slices.Contains(idle, job) || slices.Contains(free, job)) {
			f.free[f.results[i].RunID] = true
			places = append(places, i)
		}
	}
	return places, nil
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

// finishQueries are the statements of this file.
type finishQueries struct {
	finish, finishLate, unended, lockRuns query
}

func (q *finishQueries) define(sql template) {
	q.finish = sql(`update {{schema}}.xxl_job_log l set state = ({{arg.states}}::smallint[])[r.ord], handle_time = {{now}}, handle_msg = r.msg,
		no_retry = case when ({{arg.no_retry}}::boolean[])[r.ord] then true end, inbox = null, trigger_msg = ` + say("r.say") + `,
		progress = coalesce(({{arg.percents}}::smallint[])[r.ord], l.progress),
		progress_text = case when ({{arg.percents}}::smallint[])[r.ord] is null then l.progress_text else ({{arg.texts}}::text[])[r.ord] end
	from (select unnest({{arg.runs}}::bigint[]) id, unnest({{arg.messages}}::text[]) msg, unnest({{arg.lines}}::text[]) say, unnest({{arg.places}}::int[]) ord) r
	where l.id = r.id and ` + few + ` and l.state + 0 in ({{state.started}}, {{state.dispatched}})
		and (l.state = {{state.started}} or ({{arg.states}}::smallint[])[r.ord] <> {{state.cancelled}})
	and (({{arg.addresses}}::smallint[])[r.ord] = 0 or l.state = {{state.started}} and l.start_token = ({{arg.tokens}}::bigint[])[r.ord]
		and l.executor_address = ({{arg.words}}::text[])[({{arg.addresses}}::smallint[])[r.ord]])
	and (coalesce(({{arg.owners}}::smallint[])[r.ord], 0) = 0 or l.start_token = ({{arg.tokens}}::bigint[])[r.ord]
		and coalesce(l.start_owner, substr(l.executor_address, 9)) = ({{arg.words}}::text[])[({{arg.owners}}::smallint[])[r.ord]])
	returning r.ord, {{run}}`)
	q.finishLate = sql(`update {{schema}}.xxl_job_log l set late_noted = true, trigger_msg = ` + say("r.say") + `
	from unnest({{arg.runs}}::bigint[], {{arg.lines}}::text[]) with ordinality r(id, say, ord)
	where l.id = r.id and ` + few + ` and l.id = any(array(select p.id from {{schema}}.xxl_job_log p
		where p.id = any({{arg.runs}}::bigint[]) and p.id between {{arg.lo}} and {{arg.hi}} and p.state + 0 = {{state.lost}} and p.late_noted is null
		order by p.id for no key update skip locked))`)
	q.unended = sql(`select l.id from {{schema}}.xxl_job_log l where l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}} and {{arg.hi}}
	and l.state + 0 in ({{state.started}}, {{state.dispatched}})`)
	q.lockRuns = sql(`select l.id, l.job_id from {{schema}}.xxl_job_log l
	where l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}} and {{arg.hi}} and l.state + 0 in ({{state.started}}, {{state.dispatched}})
		order by l.id for no key update skip locked`)
}
