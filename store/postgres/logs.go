package postgres

// Lines of runs' logs: pages, whose table has a partition for each one of xxl_job_log, and
// questions to the node that has the lines.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob/store"
)

var _ store.LogStore = (*Store)(nil)

// AddLogPages stores pages of runs.
func (s *Store) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) (refused []int64, err error) {
	if len(pages) == 0 {
		return nil, ended(ctx)
	}
	if len(pages) > store.MostLogPages {
		return nil, fmt.Errorf("postgres: add pages of logs: %d of them, at most %d", len(pages), store.MostLogPages)
	}
	args := append(pageArgs(pages), named{{"job_bytes", jobBytes}}...)
	err = s.withPartitions(ctx, func() error {
		refused = nil
		return s.one(ctx, bounds{name: "add_log_pages"}, s.sql.addPages.by(args).into(readIDs(&refused)))
	})
	return refused, failed(err, "add %d pages of logs", len(pages))
}

func pageArgs(pages []store.LogPage) named {
	n := len(pages)
	runs, firsts, lasts, sizes := make([]int64, n), make([]int32, n), make([]int32, n), make([]int32, n)
	contents, notices := make([][]byte, n), make([]bool, n)
	for i := range pages {
		p := &pages[i]
		runs[i], firsts[i], lasts[i], sizes[i] = p.RunID, int32(p.FirstLine), int32(p.LastLine), int32(p.Size)
		contents[i], notices[i] = p.Content, p.Notice
		if contents[i] == nil {
			contents[i] = []byte{}
		}
	}
	return named{{"runs", runs}, {"firsts", firsts}, {"lasts", lasts}, {"sizes", sizes}, {"contents", contents}, {"notices", notices}, {"places", upTo(n)}}
}

// LogPages returns pages of a run.
func (s *Store) LogPages(ctx context.Context, runID int64, fromLine, limit int) (pages []store.LogPage, last int, err error) {
	err = s.readByIndex(ctx, s.sql.logPages.by(named{
		{"run", runID}, {"from_line", min(max(fromLine, math.MinInt32), math.MaxInt32)}, {"limit", max(limit, 0)},
	}).into(func(rows pgx.Rows) error {
		var first, to, size pgtype.Int4
		var content []byte
		if err := rows.Scan(&last, &first, &to, &size, &content); err != nil || !first.Valid {
			return err
		}
		pages = append(pages, store.LogPage{RunID: runID, FirstLine: int(first.Int32), LastLine: int(to.Int32), Size: int(size.Int32), Content: content})
		return nil
	}))
	if err != nil {
		return nil, 0, failed(err, "pages of the log of run %d", runID)
	}
	return pages, last, nil
}

// pagePartitionName is the partition of the logs of a day's runs.
func pagePartitionName(day time.Time) string { return "xxl_job_log_page_" + day.Format("20060102") }

// newPagePartition makes one, as newPartition does.
func (s *Store) newPagePartition(from time.Time) []string {
	name := s.schema + "." + pgx.Identifier{pagePartitionName(from)}.Sanitize()
	lo, hi := idAt(from), idAt(from.Add(day))
	return []string{
		fmt.Sprintf(`create table if not exists %s (like %s.xxl_job_log_page including defaults including constraints including storage)`, name, s.schema),
		fmt.Sprintf(`alter table %s.xxl_job_log_page attach partition %s for values from (%d) to (%d)`, s.schema, name, lo, hi),
	}
}

// missingPages are the definitions of those that are not there, for the days that are given
// and for each day that has a partition of runs.
func (s *Store) missingPages(ctx context.Context, do doer, days []time.Time, runs map[string]bool) (sql []string, err error) {
	have := map[string]bool{}
	if err := do(ctx, s.sql.pagePartitions.with().into(readNames(have))); err != nil {
		return nil, err
	}
	for name := range runs {
		if from, err := dayOfPartition(name); err == nil {
			days = append(days, from)
		}
	}
	slices.SortFunc(days, time.Time.Compare)
	for _, from := range slices.CompactFunc(days, time.Time.Equal) {
		if !have[pagePartitionName(from)] {
			sql = append(sql, s.newPagePartition(from)...)
		}
	}
	return sql, nil
}

// dayOfPartition is the day in the name of a partition.
func dayOfPartition(name string) (time.Time, error) {
	return time.Parse("20060102", name[strings.LastIndexByte(name, '_')+1:])
}

// dropPages forgets the pages of days that were over at the given time, once their runs are
// gone: the runs of some days may stay. Partitions are dropped; where the role may not do that, their rows are deleted.
func (s *Store) dropPages(ctx context.Context, before time.Time, stays map[time.Time]bool) error {
	have := map[string]bool{}
	if err := s.read(ctx, s.sql.pagePartitions.with().into(readNames(have))); err != nil {
		return err
	}
	for name := range have {
		from, err := dayOfPartition(name)
		if err != nil || from.Add(day).After(before) || stays[from] {
			continue
		}
		err = s.dropPartition(ctx, "xxl_job_log_page", name)
		if errors.Is(err, errNotOwner) {
			err = s.inBatches(ctx, "delete_pages", s.sql.deletePages, idAt(from), idAt(from.Add(day))-1)
		}
		if err != nil {
			return err
		}
	}
	last := idAt(before.UTC().Truncate(day)) - 1
	return s.inBatches(ctx, "delete_log_use", s.sql.deleteUse, 0, last)
}

// dayOfID is the day of an id, since 2025, and where it stands in days: their number.
func dayOfID(id string) string { return `(` + id + ` / 8192::bigint / 86400000::bigint)::int` }

// AskLog puts a question to an incarnation.
func (s *Store) AskLog(ctx context.Context, ask store.Ask) (store.Ask, error) {
	addresses, err := listText(ask.Addresses)
	if err != nil {
		return store.Ask{}, err
	}
	added := false
	var row runRow
	err = s.one(ctx, bounds{name: "ask_log"}, s.sql.askLog.by(named{
		{"incarnation", ask.Incarnation}, {"run", ask.Run.ID}, {"from_line", ask.FromLine}, {"route", nonempty(store.PlainText(ask.Route))}, {"addresses", addresses},
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

// listText is a list of texts as it is kept where nothing is looked for in it: null for none.
func listText(list []string) (*string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(plainTexts(list))
	if err != nil {
		return nil, err
	}
	kept := string(text)
	return &kept, nil
}

// listOf reads what listText has made.
func listOf(text string) (list []string, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &list)
	}
	return list, err
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

// logPageQueries are the statements of this file.
type logPageQueries struct {
	addPages, logPages, pagePartitions, deletePages, deleteUse query
	askLog, answerLog, logAnswer, dropAsks                     query
}

func (q *logPageQueries) define(sql template) {
	// The rows of xxl_job_log_use are locked in order, and are what writers of one job's pages
	// wait for each other by. A page that is there already is counted only once; it is looked
	// up by a subquery, which the planner does not make a join of: for tables that it takes for
	// empty it would read them whole.
	q.addPages = sql(`with given as materialized (
	select r.run_id, r.first_line, r.last_line, r.size, r.content, r.notice, l.job_id, ` + dayOfID("l.id") + ` as day
	from unnest({{arg.runs}}::bigint[], {{arg.firsts}}::int[], {{arg.lasts}}::int[], {{arg.sizes}}::int[], {{arg.contents}}::bytea[], {{arg.notices}}::boolean[], {{arg.places}}::int[])
		r(run_id, first_line, last_line, size, content, notice, ord)
	join {{schema}}.xxl_job_log l on l.id = r.run_id and ` + few + `
	where (select p.last_line from {{schema}}.xxl_job_log_page p where p.run_id = r.run_id and p.first_line = r.first_line) is null),
	used as (
	insert into {{schema}}.xxl_job_log_use as u (day, job_id, bytes)
	select g.day, g.job_id, pg_catalog.sum(pg_catalog.octet_length(g.content)) from given g group by g.day, g.job_id order by g.day, g.job_id
	on conflict (day, job_id) do update set bytes = u.bytes + excluded.bytes where u.bytes < {{arg.job_bytes}}
	returning u.day, u.job_id),
	put as (
	insert into {{schema}}.xxl_job_log_page (run_id, first_line, last_line, size, content)
	select g.run_id, g.first_line, g.last_line, g.size, g.content from given g
	where g.notice or exists (select from used u where u.day = g.day and u.job_id = g.job_id)
	order by g.run_id, g.first_line
	on conflict (run_id, first_line) do nothing)
	select distinct g.run_id from given g
	where not g.notice and not exists (select from used u where u.day = g.day and u.job_id = g.job_id)`)
	const lastLine = `coalesce((select p.last_line from {{schema}}.xxl_job_log_page p where p.run_id = {{arg.run}} order by p.first_line desc limit 1), 0)`
	q.logPages = sql(`with e as materialized (select ` + lastLine + ` as last_line),
	f as materialized (select e.last_line, case when {{arg.from_line}}::int < 0 then e.last_line + {{arg.from_line}}::int + 1 else {{arg.from_line}}::int end as line from e)
	select f.last_line, p.first_line, p.last_line, p.size, p.content from f
	left join lateral (select p.first_line, p.last_line, p.size, p.content from {{schema}}.xxl_job_log_page p
		where p.run_id = {{arg.run}} and p.last_line >= f.line and p.first_line >= coalesce((
			select b.first_line from {{schema}}.xxl_job_log_page b where b.run_id = {{arg.run}} and b.first_line <= f.line order by b.first_line desc limit 1), 0)
		order by p.first_line limit {{arg.limit}}) p on true
	order by p.first_line`)
	q.pagePartitions = sql(`select c.relname from pg_catalog.pg_inherits h join pg_catalog.pg_class c on c.oid = h.inhrelid
	where h.inhparent = '{{literal}}.xxl_job_log_page'::pg_catalog.regclass::pg_catalog.oid order by c.relname`)
	q.deletePages = sql(`delete from {{schema}}.xxl_job_log_page l where l.run_id between {{arg.lo}} and {{arg.hi}}
	and l.ctid = any(array(select p.ctid from {{schema}}.xxl_job_log_page p where p.run_id between {{arg.lo}} and {{arg.hi}}
		order by p.run_id, p.first_line limit {{arg.limit}})) returning 1`)
	q.deleteUse = sql(`delete from {{schema}}.xxl_job_log_use u where u.day between ` + dayOfID("{{arg.lo}}::bigint") + ` and ` + dayOfID("{{arg.hi}}::bigint") + `
	and u.ctid = any(array(select p.ctid from {{schema}}.xxl_job_log_use p where p.day between ` + dayOfID("{{arg.lo}}::bigint") + ` and ` + dayOfID("{{arg.hi}}::bigint") + `
		order by p.day, p.job_id limit {{arg.limit}})) returning 1`)

	q.askLog = sql(`with l as (select {{run}} from {{schema}}.xxl_job_log l where l.id = {{arg.run}}),
	asked as (
		insert into {{schema}}.xxl_job_ask (incarnation, run_id, from_line, route, addresses, asked)
		select {{arg.incarnation}}, l.id, {{arg.from_line}}, {{arg.route}}, {{arg.addresses}}, {{now}} from l returning id)
	select asked.id, l.* from asked, l`).saying()
	q.answerLog = sql(`update {{schema}}.xxl_job_ask a set answered = {{now}}, to_line = {{arg.to_line}},
	is_end = {{arg.is_end}}, content = {{arg.content}}, refusal = {{arg.refusal}}
	where a.id = {{arg.ask}} and a.answered is null and a.asked > {{kept}} returning a.id`).saying()
	q.logAnswer = sql(`select a.answered is not null, coalesce(a.to_line, 0), coalesce(a.is_end, false), coalesce(a.content, ''), coalesce(a.refusal, '')
	from {{schema}}.xxl_job_ask a where a.id = $1 and a.asked > {{kept}}`)
	q.dropAsks = sql(`delete from {{schema}}.xxl_job_ask a where a.id = any(array(
		select p.id from {{schema}}.xxl_job_ask p where p.asked <= {{kept}} order by p.id limit $1 for update skip locked)) returning a.id`)
}
