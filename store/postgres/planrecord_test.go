package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// What the record of changes may cost, with 300,000 entries of more than a year.

const planChanges = 300_000

// fillRecord makes entries of the time before the last hour: most are triggers of a few users,
// one of a hundred is of the console itself, few are of a user whom one seldom sees, and many of
// one who has gone half way.
func (d *planData) fillRecord(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_change (job_id, version, at, actor, client, request_id, verb, object, object_id, app_name, before, after, definition)
	select case when n % 100 = 7 then 0 else n % 9000 + 1 end, case when n % 10 = 3 then n / 10 else 0 end, $2::timestamptz - interval '1 hour' - ($1::int - n) * interval '115 seconds',
		case when n % 20000 = 11 then 'seldom' when n < $1::int / 2 and n % 4 = 1 then 'gone' else 'user-' || n % 20 end, '10.0.0.1:1', 'r-' || n,
		case when n % 100 = 7 then 'login' when n % 10 = 3 then 'update' else 'trigger' end,
		case when n % 100 = 7 then 'login' when n % 10 = 3 then 'job' else 'run' end,
		case when n % 100 = 7 then 'user-' || n % 20 when n % 10 = 3 then '' else n::text end,
		case when n % 100 = 7 then '' when n % 50000 = 12 then 'rare' else 'app-' || n % 10 end, '{"Param":"a"}', '{"Param":"b"}',
		case when n % 10 = 3 then '{"Param":"b"}' end
	from generate_series(1, $1::int) n`, planChanges, d.now)
	d.exec(t, `insert into {{schema}}.xxl_job_change (job_id, version, at, actor, verb, app_name, definition) select n, 1, now(), 'somebody', 'add', 'app-' || n % 10, '{}' from generate_series(1, $1) n`, planJobs)
}

// recordCases are what writes and reads the record. A search that goes by several fields has
// two: how far it goes, and what it finds there.
func (d *planData) recordCases() []planCase {
	var list []planCase
	search := func(name string, rows int, q store.ChangeSearch) {
		if !q.Complete() {
			panic("nothing can be found")
		}
		cs := changeSearch{store: d.Store, q: &q, low: 1}
		if !cs.choose() {
			panic("nothing can be found")
		}
		if err := cs.narrow(context.Background()); err != nil {
			panic(err)
		}
		name = "SearchChanges " + name
		if len(cs.rest) == 0 {
			list = append(list, planCase{name: name, st: cs.matches(nil, q.Limit), rows: rows, batch: 100, wasted: 100})
		} else {
			edge := cs.edge(new(int), new(int64))
			if _, err := cs.reach(context.Background()); err != nil {
				panic(err)
			}
			list = append(list, planCase{name: name + ": the edge", st: edge, rows: 1, batch: q.Examine + 100, wasted: 200},
				planCase{name: name, st: cs.matches(nil, q.Limit), rows: rows, batch: q.Examine, wasted: q.Examine})
		}
		for i := range list {
			list[i].st.read = nil
		}
	}
	year := d.now.AddDate(0, 0, -200)
	search("all", 100, store.ChangeSearch{})
	search("of a user", 100, store.ChangeSearch{Actor: "user-3"})
	search("of a rare user", 15, store.ChangeSearch{Actor: "seldom"})
	search("of nobody", 0, store.ChangeSearch{Actor: "nobody"})
	search("of a verb", 100, store.ChangeSearch{Verb: "login"})
	search("of no verb", 0, store.ChangeSearch{Verb: "nothing"})
	search("of an app", 100, store.ChangeSearch{Apps: []string{"app-3"}})
	search("of a rare app", 6, store.ChangeSearch{Apps: []string{"rare"}})
	search("of apps", 100, store.ChangeSearch{Apps: []string{"app-3", "app-4"}})
	search("of rare apps", 0, store.ChangeSearch{Apps: []string{"rare", "nowhere"}})
	search("of a kind", 100, store.ChangeSearch{Object: store.ObjectLogin})
	search("of no kind", 0, store.ChangeSearch{Object: "nothing"})
	search("of an object", 100, store.ChangeSearch{Object: store.ObjectLogin, ObjectID: "user-7"})
	search("of a run", 1, store.ChangeSearch{Object: store.ObjectRun, ObjectID: "12345"})
	search("of a job", 1, store.ChangeSearch{Object: store.ObjectJob, ObjectID: "42"})
	search("of a job and its runs", 30, store.ChangeSearch{JobID: 42})
	search("of a day", 100, store.ChangeSearch{Since: year, Until: year.Add(day)})
	search("of a day by a user", 30, store.ChangeSearch{Since: year, Until: year.Add(day), Actor: "user-3"})
	search("of a day long ago", 0, store.ChangeSearch{Until: d.now.AddDate(-2, 0, 0)})
	search("since a day", 100, store.ChangeSearch{Since: year})
	search("of a user who has gone", 0, store.ChangeSearch{Actor: "gone", Since: d.now.AddDate(0, 0, -100)})
	search("that combine", 0, store.ChangeSearch{Actor: "user-7", Verb: "update", Apps: []string{"app-2"}, Object: store.ObjectLogin})
	search("of a user who does other things", 0, store.ChangeSearch{Actor: "user-3", Verb: "login"})
	q := d.sql
	one := (&changed{Change: store.Change{JobID: 42, Version: 1, Actor: "somebody", Verb: "update", Object: store.ObjectJob}}).args()
	ids, text := jobIDs(1000, 91), "{}"
	texts, definitions := make([]string, len(ids)), make([]*string, len(ids))
	for i := range texts {
		texts[i], definitions[i] = fmt.Sprint("text ", i), &text
	}
	return append(list,
		planCase{name: "insertChange", st: q.insertChange.by(one), rows: 1},
		planCase{name: "recordChange", st: q.recordChange.by(one), rows: 1},
		planCase{name: "noteRun", st: q.noteRun.by(named{{"job", 42}, {"actor", "ann"}, {"client", ""}, {"request_id", ""}, {"verb", "trigger"}, {"run", "1"}, {"after", "{}"}}), rows: 1},
		planCase{name: "insertChanges", st: q.insertChanges.by(named{
			{"jobs", ids}, {"apps", texts}, {"afters", texts}, {"definitions", definitions}, {"actor", "ann"}, {"client", ""}, {"request_id", ""},
		}), batch: 1000},
		planCase{name: "noteStops", st: q.noteStops.by(named{{"jobs", ids[:100]}, {"before", "{}"}, {"afters", texts[:100]}, {"definitions", definitions[:100]}}), batch: 100},
		planCase{name: "dropChanges", st: q.dropChanges.with(d.now.AddDate(0, 0, -300), endBatch), rows: endBatch},
		planCase{name: "dropChanges none", st: q.dropChanges.with(d.now.AddDate(-3, 0, 0), endBatch)},
		planCase{name: "changes", st: q.changes.with(42, 100), rows: 1},
		planCase{name: "jobAt", st: q.jobAt.with(42, 1), rows: 1},
		planCase{name: "jobAt none", st: q.jobAt.with(42, 1_000_000)},
		planCase{name: "changesBetween", st: q.changesBetween.with(d.now.Add(-100*time.Hour), d.now.Add(-50*time.Hour)), rows: 1},
		planCase{name: "changesBetween open", st: q.changesBetween.with(nil, nil), rows: 1},
	)
}
