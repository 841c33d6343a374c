package postgres

// What searches and other questions of consoles may cost, with a million runs.

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// fillReads makes children of a run.
func (d *planData) fillReads(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, parent_id, executor_fail_retry_count)
	select $1::bigint + n * 8192 + 3, n * 100 + 98, (n * 100 + 98) % 32, 'app-8', 3, 'PARENT', $2::bigint, now(), $1::bigint, -1 from generate_series(0, 199) n`,
		idAt(d.now.Add(-time.Minute)), d.now.UnixMilli())
}

// searchCases has two cases for each search: how far it goes, and what it finds there.
func (d *planData) searchCases() []planCase {
	var list []planCase
	search := func(name string, rows int, q store.RunSearch, change ...func(*planCase)) {
		q.Complete()
		sr := searching{store: d.Store, search: &q, low: 1}
		if !q.Since.IsZero() {
			sr.low = idAt(q.Since)
		}
		if !q.Until.IsZero() {
			q.Before = min(q.Before, idAt(q.Until.Add(sr.margin())))
		}
		var n int
		var oldest int64
		edge := sr.edge(&n, &oldest)
		if err := d.list(context.Background(), edge); err != nil {
			panic(err)
		}
		sr.low = oldest
		var runs []store.Run
		find := planCase{name: "SearchRuns " + name, st: sr.matches(context.Background(), &runs), rows: rows, batch: q.Examine, wasted: q.Examine, reach: reachAll}
		stop := planCase{name: "SearchRuns " + name + ": the edge", st: edge, rows: 1, batch: q.Examine + 100, wasted: 200, reach: reachAll}
		if len(q.JobIDs) == 1 {
			find.scans, stop.scans = smallLock, smallLock
		}
		for _, c := range change {
			c(&find)
			c(&stop)
		}
		find.st.read, stop.st.read = nil, nil
		list = append(list, find, stop)
	}
	open := func(c *planCase) { c.wasted = 13_000 } // what has not ended is in one index, which is read and sorted
	bad := []store.State{store.StateFailed, store.StateLost}
	middle := d.now.Add(-15 * day)
	search("all", 100, store.RunSearch{})
	search("of a rare app", 0, store.RunSearch{Apps: []string{"nowhere"}})
	search("of a rare app with a text", 0, store.RunSearch{Apps: []string{"app-1"}, Text: "nothing"})
	search("with a text, without secrets", 0, store.RunSearch{Text: "nothing", NoSecrets: true})
	search("without secrets", 100, store.RunSearch{NoSecrets: true})
	search("of two apps", 100, store.RunSearch{Apps: []string{"app-1", "app-2"}})
	search("by day", 100, store.RunSearch{Since: middle, Until: middle.Add(day)})
	search("by day of an app", 100, store.RunSearch{Since: middle, Until: middle.Add(day), Apps: []string{"app-3"}})
	search("bad", 100, store.RunSearch{States: bad})
	search("bad of an app", 100, store.RunSearch{States: bad, Apps: []string{"app-0"}})
	search("rare among the bad", 0, store.RunSearch{States: []store.State{store.StateKilled}})
	search("skipped", 100, store.RunSearch{States: []store.State{store.StateSkipped}})
	search("started", 100, store.RunSearch{States: []store.State{store.StateStarted}}, open)
	search("planned", 100, store.RunSearch{States: []store.State{store.StatePlanned}})
	search("of a job", 10, store.RunSearch{JobIDs: []int64{d.started[0].JobID}})
	search("bad of a job", 0, store.RunSearch{JobIDs: []int64{d.started[0].JobID}, States: bad})
	search("of two jobs", 0, store.RunSearch{JobIDs: []int64{42, 43}})
	search("ahead", 100, store.RunSearch{Ahead: true})
	search("ahead of an app", 10, store.RunSearch{Ahead: true, Apps: []string{"app-1"}})
	search("slow", 0, store.RunSearch{Slower: time.Hour})
	search("late", 0, store.RunSearch{LateBy: time.Hour})
	search("late and waiting", 100, store.RunSearch{LateBy: time.Second, States: []store.State{store.StatePlanned}})
	q := d.sql
	lo, hi := d.openRange()
	infos := []string{"xxl_job_info"}
	values := func(of query, prefix string) statement { return of.by(named{{"prefix", prefix}, {"limit", 20}}) }
	return append(append(list, d.jobSearchCases()...),
		planCase{name: "countJobs", st: q.countJobs.with(), rows: 10, scans: infos, wide: true},
		planCase{name: "valuesOfApp", st: values(q.valuesOfApp, "app-1"), rows: 1, wasted: 30},
		planCase{name: "valuesOfHandler", st: values(q.valuesOfHandler, "HAND"), rows: 20, scans: infos, wide: true},
		planCase{name: "valuesOfAuthor", st: values(q.valuesOfAuthor, ""), rows: 20, scans: infos, wide: true},
		planCase{name: "valuesOfTag", st: values(q.valuesOfTag, "tag"), rows: 10, scans: infos, wide: true},
		planCase{name: "schedules all", st: q.schedules.by(named{{"after", 0}, {"limit", 10_000}}), rows: 9000, wasted: 15_000, wide: true},
		planCase{name: "schedules 1000", st: q.schedules.by(named{{"after", 50_000}, {"limit", 1000}}), rows: 1000, wasted: 1500},
		planCase{name: "lastRuns 50x10", st: q.lastRuns.by(named{{"jobs", jobIDs(50, 1)}, {"limit", 10}, {"texts", 0}}), rows: 100, reach: reachAll, wasted: 100},
		planCase{name: "lastRuns 200x1", st: q.lastRuns.by(named{{"jobs", jobIDs(200, 7)}, {"limit", 1}, {"texts", allTexts}}), rows: 50, batch: 200, reach: reachAll, wasted: 100},
		planCase{name: "openOfJobs 50", st: q.openOfJobs.by(named{{"jobs", jobIDs(50, 1)}, {"states", []int16{0, 1, 2}}, {"lo", lo}, {"hi", hi}, {"limit", 1000}, {"texts", 0}}), rows: 50, reach: reachOpen, wasted: 3000},
		planCase{name: "openOfJobs 1", st: q.openOfJobs.by(named{{"jobs", jobIDs(1, 1)}, {"states", []int16{0, 1, 2}}, {"lo", lo}, {"hi", hi}, {"limit", 1000}, {"texts", 0}}), rows: 1, reach: reachOpen, wasted: 3000},
		planCase{name: "children", st: q.children.by(named{{"parent", idAt(d.now.Add(-time.Minute))}, {"after", 0}, {"limit", 100}, {"texts", 0}}), reach: reachAll},
		planCase{name: "waitingRuns", st: q.waitingRuns.by(named{{"since", int64(0)}, {"after", int64(0)}, {"lo", lo}, {"hi", hi}, {"limit", 100}, {"texts", 160}}), rows: 100, reach: reachOpen, wasted: 100},
		planCase{name: "waitingRuns behind", st: q.waitingRuns.by(named{{"since", d.now.UnixMilli()}, {"after", int64(1)}, {"lo", lo}, {"hi", hi}, {"limit", 100}, {"texts", allTexts}}), rows: 5, reach: reachOpen, wasted: 100},
		planCase{name: "openRuns", st: q.openRuns.by(named{{"lo", lo}, {"hi", hi}, {"limit", 10_000}}), rows: 2, batch: 20_000, reach: reachOpen, wasted: 100, scans: manyOpen},
		planCase{name: "view", st: q.view.by(named{{"locks", true}, {"lock_class", int32(1)}, {"node_class", int32(2)}, {"incarnation", ""}}), rows: 1, scans: smallNodes},
	)
}

// jobSearchCases are lists of jobs in each order.
func (d *planData) jobSearchCases() []planCase {
	var list []planCase
	search := func(name string, rows int, q store.JobSearch, change ...func(*planCase)) {
		q.Complete()
		l := d.jobSearch(context.Background(), &q)
		c := planCase{name: "SearchJobs " + name, st: statement{sql: l.sql, args: l.args}, rows: rows, wasted: 3000}
		for _, f := range change {
			f(&c)
		}
		list = append(list, c)
	}
	// What no index serves goes through all jobs: of these there are ten times as many here as
	// such lists are made for.
	wide := func(c *planCase) { c.wide, c.scans = true, []string{"xxl_job_info", "xxl_job_next"} }
	search("by id", 100, store.JobSearch{After: store.Job{ID: 50_000}})
	search("by name", 100, store.JobSearch{Order: store.ByName})
	search("by name, on", 100, store.JobSearch{Order: store.ByName, After: store.Job{ID: 50_000, Name: "job 50000"}})
	search("by next", 100, store.JobSearch{Order: store.ByNext})
	search("by next, on", 100, store.JobSearch{Order: store.ByNext, After: store.Job{ID: 50_000, Next: d.now.Add(time.Hour)}})
	search("of two apps by name", 100, store.JobSearch{Order: store.ByName, Apps: []string{"app-1", "app-2"}})
	search("of a tag", 100, store.JobSearch{Tags: []string{"tag-50"}}, wide)
	search("of two tags", 100, store.JobSearch{Tags: []string{"tag-50", "all"}}, wide)
	search("of a text", 1, store.JobSearch{Text: "Job 4242"}, wide)
	search("that are stopped", 0, store.JobSearch{StopReason: "finished"}, wide)
	return list
}

// What users of a console, their sessions and their tokens may cost, with ten thousand users, of
// whom thirty are admins, fifty thousand sessions and as many tokens and tries.

const planUsers = 10_000

func (d *planData) fillAccounts(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_user (username, title, password, role, permission, scripts, disabled, version, added, password_set)
	select 'user-' || n, '', '', case when n % 333 = 0 then 1 else 0 end, '{"app-1":"viewer"}', false, n % 50 = 0, 1, now(), now() from generate_series(1, $1::int) n`, planUsers)
	d.exec(t, `insert into {{schema}}.xxl_job_user_session (hash, username, client, agent, began, seen, proved)
	select pg_catalog.sha256(n::text::bytea), 'user-' || n % $1::int + 1, '', '', now() - n * interval '1 s', now() - n % 40000 * interval '1 s', now() from generate_series(1, 5 * $1::int) n`, planUsers)
	d.exec(t, `insert into {{schema}}.xxl_job_user_token (username, name, role, permission, scripts, hash, added, expires, used)
	select 'user-' || n % $1::int + 1, 'token', 0, '', false, pg_catalog.sha256(n::text::bytea), now(), now() + interval '30 days', now() from generate_series(1, 5 * $1::int) n`, planUsers)
	d.exec(t, `insert into {{schema}}.xxl_job_user_try (bucket, failed, last) select n, 3, now() from generate_series(0, 49999) n`)
	d.exec(t, `insert into {{schema}}.xxl_job_user_code (hash, until) select pg_catalog.sha256(n::text::bytea), now() + interval '1 day' from generate_series(1, 100) n`)
}

// accountTables are those that fillAccounts fills.
const accountTables = " xxl_job_user xxl_job_user_session xxl_job_user_token xxl_job_user_try xxl_job_user_code"

func (d *planData) accountCases() []planCase {
	q, name, hash := d.sql, "user-4711", []byte(fmt.Sprintf("%-32s", "none"))
	user := named{{"name", name}, {"title", ""}, {"password", ""}, {"role", 0}, {"permission", ""}, {"scripts", false}, {"disabled", false}}
	added := append(named{{"settings", ""}}, user...)
	added[1].value = "somebody"
	known := sha256.Sum256([]byte("4711"))
	idle, most := (12 * time.Hour).Milliseconds(), (7 * 24 * time.Hour).Milliseconds()
	session := named{{"hash", hash}, {"idle", idle}, {"most", most}, {"note", int64(600_000)}, {"ahead", aheadMilli}, {"doubted", false}}
	return []planCase{
		{name: "addUser", st: q.addUser.by(added), rows: 1},
		{name: "anyUser", st: q.anyUser.with(), rows: 1, wasted: 1, scans: []string{"xxl_job_user"}}, // it looks at one
		{name: "updateUser", st: q.updateUser.by(user), rows: 1},
		{name: "lockUsers", st: q.lockUsers.with(name), rows: 31, batch: 62},
		{name: "removeUser", st: q.removeUser.with(name), batch: 1},
		{name: "rehash", st: q.rehash.by(named{{"name", name}, {"old", ""}, {"hash", "anew"}}), rows: 1, batch: 3},
		{name: "saveSettings", st: q.saveSettings.with(name, "{}"), rows: 1},
		{name: "user", st: q.user.with(name), rows: 1},
		{name: "users", st: q.users.with("user-3", 100), rows: 100},
		{name: "addCode", st: q.addCode.by(named{{"hash", hash}, {"ms", int64(1000)}}), batch: 1},
		{name: "trimCodes", st: q.trimCodes.with(100), batch: 101, scans: []string{"xxl_job_user_code"}, wasted: 200},
		{name: "lockCodes", st: q.lockCodes.with(hash), rows: 100, scans: []string{"xxl_job_user_code"}},
		{name: "dropCodes", st: q.dropCodes.with(), batch: 100, scans: []string{"xxl_job_user_code"}},
		{name: "lockLogin", st: q.lockLogin.with(name), rows: 1},
		{name: "addSession", st: q.addSession.by(named{{"hash", hash}, {"user", name}, {"client", ""}, {"agent", ""}}), rows: 1},
		{name: "dropIdle", st: q.dropIdle.with(idle), batch: 2000},
		{name: "dropOld", st: q.dropOld.with(most), batch: 2000},
		{name: "redateSessions", st: q.redateSessions.with(aheadMilli)},
		{name: "trimSessions", st: q.trimSessions.with(name, 50), batch: 50, wasted: 50},
		{name: "session", st: q.session.by(session), wasted: 1},
		{name: "seeSession", st: q.seeSession.with(hash)},
		{name: "proveSession", st: q.proveSession.with(hash)},
		{name: "endSession", st: q.endSession.with(name, int64(1)), wasted: 50},
		{name: "endSessions", st: q.endSessions.with(name), batch: 50},
		{name: "sessions", st: q.sessions.by(named{{"user", name}, {"idle", idle}, {"most", most}}), rows: 1, wasted: 50},
		{name: "tryLogin", st: q.tryLogin.by(named{{"bucket", 4711}, {"free", 5}, {"longest", 30.0}, {"kept", 3600.0}}), rows: 1},
		{name: "tries", st: q.tries.with(4711), rows: 1},
		{name: "passLogin", st: q.passLogin.with(4711), batch: 1},
		{name: "lockOwner", st: q.lockOwner.with(name), rows: 1},
		{name: "countTokens", st: q.countTokens.with(name), rows: 1, batch: 50},
		{name: "addToken", st: q.addToken.by(named{{"user", name}, {"name", "ci"}, {"role", 0}, {"permission", ""}, {"scripts", false}, {"hash", hash}, {"expires", d.now}}), rows: 1},
		{name: "token", st: q.token.by(named{{"id", int64(4711)}, {"note", int64(3_600_000)}, {"ahead", aheadMilli}, {"hash", known[:]}}), rows: 1},
		{name: "useToken", st: q.useToken.with(int64(4711)), rows: 1},
		{name: "removeToken", st: q.removeToken.with(name, int64(1)), wasted: 50},
		{name: "removeTokens", st: q.removeTokens.with(name), batch: 50},
		{name: "tokens", st: q.tokens.with(name), rows: 5},
	}
}

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

// What reports may cost: of ten apps, for 35 days by quarters of an hour, the last of them spread
// over slots, and two years by days; and of sixty apps for four days of a time to come.

func (d *planData) fillReports(t testing.TB) {
	t.Helper()
	last := store.QuarterOf(d.now)
	d.exec(t, `insert into {{schema}}.xxl_job_report (quarter, app_name, slot, succeeded, late_sum, late_1, took_sum, took_5)
	select $1::bigint - n::bigint * 900000, 'app-' || a, s, 7, 7, 7, 35, 7 from generate_series(0, 35 * 96) n, generate_series(0, 9) a, generate_series(0, 16) s
	where s = 0 or n < 4`, last.UnixMilli())
	d.exec(t, `insert into {{schema}}.xxl_job_log_report (trigger_day, app_name, running_count, suc_count, fail_count, update_time, succeeded)
	select $1::date - n, 'app-' || a, 0, 700, 0, now(), 700 from generate_series(36, 730) n, generate_series(0, 9) a`, store.DayOf(last))
	d.exec(t, `insert into {{schema}}.xxl_job_report (quarter, app_name, slot, cancelled)
	select $1::bigint + n::bigint * 900000, 'many-' || a, 0, 1 from generate_series(0, 4 * 96 - 1) n, generate_series(0, 59) a`, last.Add(1000*day).UnixMilli())
}

func (d *planData) reportCases() []planCase {
	q := d.sql
	day1, month := d.reportQuery(store.ReportDay), d.reportQuery(store.QuartersKept)
	years := store.ReportQuery{From: d.now.Add(-800 * day).Truncate(day), To: d.now.Truncate(day)}
	of := func(query store.ReportQuery, apps ...string) store.ReportQuery {
		query.Apps = apps
		return query
	}
	edge := func(query store.ReportQuery, name string, n int) named {
		return append(reportArgs(&query, query.To), named{{name, n}}...)
	}
	later := store.ReportQuery{From: store.QuarterOf(d.now).Add(1000 * day), To: store.QuarterOf(d.now).Add(1004 * day)}
	many := make([]string, 60)
	for i := range many {
		many[i] = fmt.Sprint("many-", i)
	}
	sums := func(query store.ReportQuery, length time.Duration) named {
		return append(reportArgs(&query, query.To), named{{"length", length.Milliseconds()}, {"together", false}}...)
	}
	fold := func(before time.Time) named { return named{{"before", before.UnixMilli()}, {"limit", 1000}} }
	counts := make([]*store.Report, 10)
	for i := range counts {
		counts[i] = &store.Report{App: "app-" + string(rune('0'+i)), From: store.QuarterOf(d.now), Length: store.Quarter}
	}
	add := d.addReports(counts)
	return []planCase{
		{name: "addReports", st: add, rows: 0, batch: 20, wasted: 200, kept: true},
		{name: "addReports of one", st: d.addReports(counts[:1]), rows: 0, batch: 20, wasted: 200, kept: true},
		{name: "reportEdge of a day", st: q.reportEdge.by(edge(day1, "limit", 20_000)), rows: 0, batch: 3000},
		{name: "reportEdge of 35 days", st: q.reportEdge.by(edge(month, "limit", 20_000)), rows: 1, batch: 30_000, wasted: 20_000},
		{name: "reportEdge of years", st: q.reportEdge.by(edge(years, "limit", 20_000)), rows: 1, batch: 30_000, wasted: 20_000},
		{name: "reportCountOf two apps", st: q.reportCountOf.by(edge(of(month, "app-1", "app-2"), "limit", 20_000)), rows: 1, batch: 2000},
		{name: "reportCountOf too many", st: q.reportCountOf.by(edge(of(later, many...), "limit", 1000)), rows: 1, batch: 250},
		{name: "reportShareOf two apps", st: q.reportShareOf.by(edge(of(years, "app-1", "app-2"), "share", 1000)), rows: 1, batch: 1000, wasted: 100},
		{name: "reportShareOf many apps", st: q.reportShareOf.by(edge(of(later, many...), "share", 16)), rows: 1, batch: 250},
		{name: "reports of a day by hours", st: q.reports.by(sums(day1, time.Hour)), rows: 240, batch: 3000},
		{name: "reports of a month of days", st: q.reports.by(sums(store.ReportQuery{From: years.From, To: years.From.Add(90 * day)}, day)), rows: 200, batch: 1000},
		{name: "reportsOf an app by hours", st: q.reportsOf.by(sums(of(month, "app-3"), time.Hour)), rows: 800, batch: 4000},
		{name: "reportsOf three apps by quarters", st: q.reportsOf.by(sums(of(day1, "app-3", "app-4", "x"), store.Quarter)), rows: 180, batch: 500},
		{name: "foldSlots", st: q.foldSlots.by(fold(d.now.Add(-store.Quarter))), rows: 1, batch: 2000, wasted: 2000},
		{name: "foldDays", st: q.foldDays.by(fold(store.DayOf(d.now.Add(-34 * day)))), rows: 1, batch: 2000, wasted: 2000},
	}
}

// reportQuery is for so much up to now.
func (d *planData) reportQuery(length time.Duration) store.ReportQuery {
	to := store.QuarterOf(d.now).Add(store.Quarter)
	return store.ReportQuery{From: to.Add(-length), To: to}
}
