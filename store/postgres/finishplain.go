package postgres

// Results of runs that the caller knows, that have succeeded at one attached executor and say
// nothing more, as most do. What decides about them is as in finish.go.

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob/store"
)

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

// plainQueries are the statements of this file.
type plainQueries struct {
	finishPlain query
}

func (q *plainQueries) define(sql template) {
	q.finishPlain = sql(`update {{schema}}.xxl_job_log l set state = {{state.succeeded}}, handle_time = (select {{now}}),
		handle_msg = null, no_retry = null, snoozed = null, inbox = null
	from (select unnest({{arg.runs}}::bigint[]) id, unnest({{arg.tokens}}::bigint[]) token, unnest({{arg.places}}::int[]) ord) r
	where ` + runIs("r.id") + ` and ` + few + ` and l.state + 0 = {{state.started}} and l.start_token = r.token and l.executor_address = {{arg.address}}::text
	returning r.ord, ` + anyLink + `, l.handle_time, l.routed, l.trigger_msg, l.kill_reason, l.progress, l.progress_text`)
}
