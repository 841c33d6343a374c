package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// AskLog puts a question to an incarnation.
func (s *Store) AskLog(ctx context.Context, ask store.Ask) (store.Ask, error) {
	added := false
	var row runRow
	err := s.one(ctx, bounds{name: "ask_log"}, s.sql.askLog.by(named{
		{"incarnation", ask.Incarnation}, {"run", ask.Run.ID}, {"from_line", ask.FromLine},
	}).into(func(rows pgx.Rows) (err error) {
		added = true
		ask.Run, err = row.scan(rows, &ask.ID)
		return err
	}))
	if err == nil && !added {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Ask{}, failed(err, "ask for the log of run %d", ask.Run.ID)
	}
	s.wakeInbox(ask.Incarnation)
	return ask, nil
}

// AnswerLog answers a question that has no answer.
func (s *Store) AnswerLog(ctx context.Context, id int64, a store.Answer) error {
	var answered []int64
	err := s.one(ctx, bounds{name: "answer_log"}, s.sql.answerLog.by(named{
		{"ask", id}, {"to_line", a.ToLine}, {"is_end", a.IsEnd}, {"content", a.Content},
		{"refusal", nonempty(a.Refusal)},
	}).into(readIDs(&answered)))
	s.wakeEnded(len(answered))
	return failed(err, "answer question %d", id)
}

// LogAnswer returns the answer to a question.
func (s *Store) LogAnswer(ctx context.Context, id int64) (a store.Answer, answered bool, err error) {
	found := false
	err = s.read(ctx, s.sql.logAnswer.with(id).into(func(rows pgx.Rows) error {
		found = true
		return rows.Scan(&answered, &a.ToLine, &a.IsEnd, &a.Content, &a.Refusal)
	}))
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Answer{}, false, failed(err, "answer to question %d", id)
	}
	return a, answered, nil
}

// askBatch is how many questions a step of dropAsks deletes.
const askBatch = 100

// dropAsks deletes the questions that are too old; no statement shows them any
// more. Others may be at it: what they have locked is theirs.
func (s *Store) dropAsks(ctx context.Context) error {
	for {
		var dropped []int64
		if err := s.one(ctx, bounds{name: "drop_asks"}, s.sql.dropAsks.with(askBatch).into(readIDs(&dropped))); err != nil {
			return failed(err, "drop old questions for logs")
		}
		if len(dropped) < askBatch {
			return nil
		}
	}
}

// askQueries are the statements of this file.
type askQueries struct {
	askLog, answerLog, logAnswer, dropAsks query
}

func (q *askQueries) define(sql template) {
	q.askLog = sql(`with l as (select {{run}} from {{schema}}.xxl_job_log l where l.id = {{arg.run}}),
	asked as (
		insert into {{schema}}.xxl_job_ask (incarnation, run_id, from_line, asked)
		select {{arg.incarnation}}, l.id, {{arg.from_line}}, {{now}} from l returning id)
	select asked.id, l.* from asked, l`)
	q.answerLog = sql(`update {{schema}}.xxl_job_ask a set answered = {{now}}, to_line = {{arg.to_line}},
	is_end = {{arg.is_end}}, content = {{arg.content}}, refusal = {{arg.refusal}}
	where a.id = {{arg.ask}} and a.answered is null and a.asked > {{kept}} returning a.id`)
	q.logAnswer = sql(`select a.answered is not null, coalesce(a.to_line, 0), coalesce(a.is_end, false), coalesce(a.content, ''), coalesce(a.refusal, '')
	from {{schema}}.xxl_job_ask a where a.id = $1 and a.asked > {{kept}}`)
	q.dropAsks = sql(`delete from {{schema}}.xxl_job_ask a where a.id = any(array(
		select p.id from {{schema}}.xxl_job_ask p where p.asked <= {{kept}} order by p.id limit $1 for update skip locked)) returning a.id`)
}
