package postgres

// How far runs are. It is best effort: what somebody else has locked at this moment goes
// without, and is said again with the next news or with the end.

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

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

// progressQueries are the statements of this file.
type progressQueries struct {
	setProgress query
}

func (q *progressQueries) define(sql template) {
	q.setProgress = sql(`with mine as materialized (
	select p.id, r.ord from (select unnest({{arg.runs}}::bigint[]) id, unnest({{arg.places}}::int[]) ord) r
	join {{schema}}.xxl_job_log p on p.id = r.id and ` + few + `
	where p.state + 0 in ({{state.started}}, {{state.dispatched}}) and p.start_token = ({{arg.tokens}}::bigint[])[r.ord]
		and (({{arg.addresses}}::smallint[])[r.ord] = 0 or p.state = {{state.started}}
			and p.executor_address = ({{arg.words}}::text[])[({{arg.addresses}}::smallint[])[r.ord]])
	order by p.id for no key update of p skip locked)
	update {{schema}}.xxl_job_log l set progress = ({{arg.percents}}::smallint[])[r.ord], progress_text = ({{arg.texts}}::text[])[r.ord]
	from mine r where l.id = r.id and ` + few)
}
