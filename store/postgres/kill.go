package postgres

import (
	"context"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// Kill asks for the end of a run.
func (s *Store) Kill(ctx context.Context, runID int64, reason string) (xxljob.Run, error) {
	if reason == "" {
		reason = "killed" // an empty KillReason would be: nobody asked
	}
	var runs []xxljob.Run
	var done arming
	err := s.inTx(ctx, bounds{name: "kill"}, func(t *tx) error {
		runs, done = nil, arming{}
		if err := t.do(ctx, s.sql.runAsItIs.with(runID).into(readRuns(&runs))); err != nil {
			return err
		}
		if len(runs) == 0 {
			return xxljob.ErrNotFound
		}
		var err error
		done, err = s.kill(ctx, t, &runs[0], reason)
		return err
	})
	if err != nil {
		return xxljob.Run{}, failed(err, "kill run %d", runID)
	}
	s.tell(done)
	if runs[0].State.Ended() {
		s.wakeEnded(1)
	} else if inc, attached := store.LocalIncarnation(runs[0].Address); attached {
		s.wakeInbox(inc)
	}
	return runs[0], nil
}

// kill does to the run what its state calls for. A planned run may be started
// meanwhile, and a started one put back: then the other way is tried.
func (s *Store) kill(ctx context.Context, t *tx, run *xxljob.Run, reason string) (arming, error) {
	for range 3 {
		var changed []xxljob.Run
		switch {
		case run.State == xxljob.StatePlanned:
			// The job is locked before its planned run, as an edit does.
			err := t.do(ctx, s.sql.lockNext.with(run.JobID),
				s.sql.killPlanned.with(run.ID, reason).into(readRuns(&changed)))
			if err != nil {
				return arming{}, err
			}
			if len(changed) > 0 {
				*run = changed[0]
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
			return arming{}, xxljob.ErrNotFound
		}
		*run = changed[0]
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
