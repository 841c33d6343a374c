package postgres

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

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

// killQueries are the statements of this file.
type killQueries struct {
	runAsItIs, killPlanned, killStarted query
}

func (q *killQueries) define(sql template) {
	q.runAsItIs = sql(`select {{run}} from {{schema}}.xxl_job_log l where l.id = $1`)
	q.killPlanned = sql(`update {{schema}}.xxl_job_log l set state = {{state.cancelled}}, alarm_status = {{alarm.none}}, reason = $2, handle_time = {{now}}
	where l.id = $1 and l.state + 0 = {{state.planned}} returning {{run}}`)
	q.killStarted = sql(`update {{schema}}.xxl_job_log l set kill_reason = $2
	where l.id = $1 and l.state + 0 in ({{state.started}}, {{state.dispatched}}) and l.kill_reason is null returning {{run}}`)
}
