package postgres

// Ends of runs without a result: verdicts about started runs, and kills.

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// Settle decides about started runs, in one transaction.
func (s *Store) Settle(ctx context.Context, verdicts []store.Verdict) ([]store.Run, error) {
	if len(verdicts) == 0 {
		return nil, ended(ctx)
	}
	var changed []store.Run
	var done arming
	var after following
	var alarms alarming
	err := s.withPartitions(ctx, func() error {
		return s.inTx(ctx, bounds{name: "settle"}, func(t *tx) error {
			changed, done = nil, arming{}
			if ids := lockedFirst(verdicts); len(ids) > 0 {
				if err := t.do(ctx, s.lockTriggers(ids)); err != nil {
					return err
				}
			}
			for _, part := range partVerdicts(verdicts) {
				if err := s.settle(ctx, t, part, &changed); err != nil {
					return err
				}
			}
			t.count(changed...)
			if err := s.uncount(ctx, t, changed, true); err != nil {
				return err
			}
			var err error
			if after, err = s.follow(ctx, t, pointers(changed), nil); err != nil {
				return err
			}
			alarms = s.alarms()
			alarms.ended(&after, changed...)
			if err := alarms.insert(ctx, t); err != nil {
				return err
			}
			done, err = s.arm(ctx, t, after.ends(changed), nil)
			return err
		})
	})
	if err != nil {
		return nil, failed(err, "settle %d runs", len(verdicts))
	}
	s.tell(done)
	s.tellFollowing(&after)
	alarms.tell()
	for i := range changed {
		done.mark(&changed[i])
	}
	s.serials.ended(changed)
	s.tellSettled(changed)
	return changed, nil
}

// lockedFirst are the runs of all verdicts, where one of these is a loss, which another run may
// follow.
func lockedFirst(verdicts []store.Verdict) (ids []int64) {
	if !slices.ContainsFunc(verdicts, func(v store.Verdict) bool { return v.To == store.StateLost }) {
		return nil
	}
	for i := range verdicts {
		ids = append(ids, verdicts[i].RunID)
	}
	return ids
}

// verdictPart are verdicts of one kind.
type verdictPart struct {
	to       store.State
	verdicts []store.Verdict
}

// takes reports whether the verdict has the epoch that the part has for its shard: a
// fence has one for each.
func (p *verdictPart) takes(v store.Verdict) bool {
	return !slices.ContainsFunc(p.verdicts, func(o store.Verdict) bool { return o.Shard == v.Shard && o.Epoch != v.Epoch })
}

// partVerdicts orders them by kind; others than these three change nothing.
func partVerdicts(verdicts []store.Verdict) []verdictPart {
	parts := []verdictPart{{to: store.StateLost}, {to: store.StateStarted}, {to: store.StatePlanned}}
	kinds := len(parts)
	for _, v := range verdicts {
		for i := 0; i < len(parts); i++ {
			switch {
			case parts[i%kinds].to != v.To:
			case parts[i].takes(v):
				parts[i].verdicts = append(parts[i].verdicts, v)
				i = len(parts)
			case i+kinds >= len(parts):
				for k := range kinds {
					parts = append(parts, verdictPart{to: parts[k].to})
				}
			}
		}
	}
	return parts
}

// settle carries out verdicts of one kind. What is given back is first ended
// where it must not be planned again; a run that one statement has changed is
// not started any more for the next.
func (s *Store) settle(ctx context.Context, t *tx, part verdictPart, changed *[]store.Run) error {
	if len(part.verdicts) == 0 {
		return nil
	}
	args := settleArgs(part.verdicts)
	switch part.to {
	case store.StateLost:
		return t.do(ctx, s.sql.settleLost.by(args).into(readRuns(changed)))
	case store.StateStarted:
		return t.do(ctx, s.sql.settleAdopt.by(args).into(readRuns(changed)))
	}
	return t.do(ctx,
		s.sql.settleKill.by(args).into(readRuns(changed)),
		s.sql.settleCancel.by(args).into(readRuns(changed)),
		s.sql.settleBack.by(args).into(readRuns(changed)))
}

func settleArgs(verdicts []store.Verdict) named {
	var shards []store.Shard
	seen := map[store.Shard]bool{}
	n := len(verdicts)
	ids, in, owners, tokens, taken := make([]int64, n), make([]int16, n), make([]string, n), make([]int64, n), make([]bool, n)
	messages, newOwners, newTokens := make([]string, n), make([]string, n), make([]int64, n)
	for i := range verdicts {
		v := &verdicts[i]
		if sh := (store.Shard{ID: v.Shard, Epoch: v.Epoch}); !seen[sh] {
			seen[sh] = true
			shards = append(shards, sh)
		}
		ids[i], in[i], owners[i], tokens[i], taken[i] = v.RunID, int16(v.Shard), v.Owner, v.Token, v.Taken
		messages[i], newOwners[i], newTokens[i] = v.Msg, v.NewOwner, v.NewToken
	}
	ids16, epochs := fenceArgs(shards)
	return named{
		{"shards", ids16}, {"epochs", epochs},
		{"runs", ids}, {"run_shards", in}, {"owners", owners}, {"tokens", tokens}, {"taken", taken},
		{"messages", messages}, {"new_owners", newOwners}, {"new_tokens", newTokens},
	}
}

// tellSettled passes on what became of the runs.
func (s *Store) tellSettled(changed []store.Run) {
	ended := 0
	for i := range changed {
		r := &changed[i]
		switch {
		case r.State.Ended():
			ended++
		case r.State == store.StatePlanned:
			s.floors.givenBack(r.ID)
			s.wakeRun(r.Shard)
		case r.Taken.IsZero():
			if inc, attached := store.LocalIncarnation(r.Address); attached {
				s.wakeInbox(inc)
			}
		}
	}
	s.wakeEnded(ended)
}

// settled is the compare of a verdict's compare-and-set.
const settled = `from unnest({{arg.runs}}::bigint[], {{arg.run_shards}}::smallint[], {{arg.owners}}::text[],
	{{arg.tokens}}::bigint[], {{arg.taken}}::boolean[], {{arg.messages}}::text[], {{arg.new_owners}}::text[], {{arg.new_tokens}}::bigint[])
		v(id, shard, owner, token, taken, msg, new_owner, new_token)
	join fence on fence.shard = v.shard
	where l.id = v.id and l.shard + 0 = v.shard and l.state + 0 = {{state.started}} and l.start_token = v.token
	and coalesce(l.start_owner, substr(l.executor_address, 9)) = v.owner
	and (l.taken_time is not null) = v.taken`

// Kill asks for the end of a run.
func (s *Store) Kill(ctx context.Context, runID int64, reason string) (store.Run, error) {
	if reason == "" {
		reason = "killed" // an empty KillReason would be: nobody asked
	}
	var run store.Run
	var done arming
	err := s.inTx(ctx, bounds{name: "kill"}, func(t *tx) error {
		run, done = store.Run{}, arming{}
		found, err := s.killAhead(ctx, t, runID, reason)
		ahead := len(found) > 0
		t.count(found...)
		if err == nil && !ahead {
			err = t.do(ctx, s.findAsItIs(runID, &found)...)
		}
		if err != nil {
			return err
		}
		there := false
		if run, there = lastOf(found); !there {
			return store.ErrNotFound
		}
		was := run
		if ahead { // it is cancelled already
			was.State, was.Reason = store.StatePlanned, ""
		}
		if done, err = s.kill(ctx, t, &run, &was, reason); err != nil {
			return err
		}
		if c := (changed{}); c.OfKill(ctx, &was, &run) {
			return t.do(ctx, s.note(c))
		}
		return nil
	})
	if err != nil {
		return store.Run{}, failed(err, "kill run %d", runID)
	}
	s.tell(done)
	done.mark(&run)
	if run.State.Ended() {
		s.wakeEnded(1)
	} else if inc, attached := store.LocalIncarnation(run.Address); attached {
		s.wakeInbox(inc)
	}
	return run, nil
}

// kill does to the run what its state calls for. A planned run may be started
// meanwhile, and a started one put back: then the other way is tried. Was is what the run is
// before anything is done to it, or the run that follows it.
func (s *Store) kill(ctx context.Context, t *tx, run, was *store.Run, reason string) (arming, error) {
	for range 3 {
		var changed []store.Run
		if run.State.Ended() {
			if err := t.do(ctx, s.unendedAfter(run).into(readRuns(&changed))); err != nil || len(changed) == 0 {
				return arming{}, err
			}
			*run, *was, changed = changed[0], changed[0], nil
		}
		switch {
		case run.State == store.StatePlanned:
			// The job is locked before its planned run, as an edit does.
			err := t.do(ctx, s.sql.lockNext.with(run.JobID),
				s.sql.killPlanned.with(run.ID, reason).into(readRuns(&changed)))
			if err != nil {
				return arming{}, err
			}
			if len(changed) > 0 {
				*run = changed[0]
				t.count(*run)
				if err := s.uncount(ctx, t, changed, false); err != nil {
					return arming{}, err
				}
				return s.arm(ctx, t, endedOf(changed), nil)
			}
		case !run.State.Ended() && run.KillReason == "":
			if err := t.do(ctx, s.sql.killStarted.with(run.ID, reason).into(readRuns(&changed))); err != nil {
				return arming{}, err
			}
			if len(changed) > 0 {
				*run = changed[0]
				return arming{}, nil
			}
		default:
			return arming{}, nil
		}
		if err := t.do(ctx, s.sql.runAsItIs.with(run.ID).into(readRuns(&changed))); err != nil {
			return arming{}, err
		}
		if len(changed) == 0 {
			return arming{}, store.ErrNotFound
		}
		*run, *was = changed[0], changed[0]
	}
	return arming{}, store.ErrLocked
}

// settleQueries are the statements of this file.
type settleQueries struct {
	settleLost, settleAdopt, settleKill, settleCancel, settleBack query
	runAsItIs, killPlanned, killStarted                           query
}

func (q *settleQueries) define(sql template) {
	update := `with ` + fence("") + `
	update {{schema}}.xxl_job_log l set trigger_msg = `
	head := update + say("v.msg") + `, `
	tail := ` returning {{run}}`
	q.settleLost = sql(head + `state = {{state.lost}}, handle_time = {{now}}, inbox = null ` + settled + tail).saying()
	q.settleAdopt = sql(head + `start_owner = v.new_owner, start_token = v.new_token ` + settled + tail).saying()
	q.settleKill = sql(head + `state = {{state.killed}}, handle_time = {{now}}, inbox = null ` + settled + ` and l.kill_reason is not null` + tail).saying()
	q.settleCancel = sql(head + `state = {{state.cancelled}}, alarm_status = {{alarm.none}}, handle_time = {{now}}, inbox = null,
		reason = case when exists (select from {{schema}}.xxl_job_info i where i.id = l.job_id) then 'stop' else 'remove' end ` + settled + `
	and not exists (select from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard
		and ` + mayRun + `)` + tail).saying()
	q.settleBack = sql(update + sayBehind("("+spelledOut()+")", "v.msg") + `, routed = null, state = {{state.planned}}, plan_epoch = null, start_owner = null, start_token = null,
		executor_address = null, executor_boot_id = null, progress = null, progress_text = null,
		job_version = null, executor_handler = null, executor_block_strategy = null, inbox = null,
		executor_param = case when l.param_set then l.executor_param end, trigger_time = null, taken_time = null ` + settled + tail).saying()

	q.runAsItIs = sql(`select {{run}} from {{schema}}.xxl_job_log l where l.id = $1`)
	q.killPlanned = sql(`update {{schema}}.xxl_job_log l set state = {{state.cancelled}}, alarm_status = {{alarm.none}}, reason = $2, handle_time = {{now}}
	where l.id = $1 and l.state + 0 = {{state.planned}} returning {{run}}`).saying()
	q.killStarted = sql(`update {{schema}}.xxl_job_log l set kill_reason = $2
	where l.id = $1 and l.state + 0 in ({{state.started}}, {{state.dispatched}}) and l.kill_reason is null returning {{run}}`).saying()
}
