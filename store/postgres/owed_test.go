package postgres_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// holding is a store, with a function that holds rows as somebody else's session does, and one
// that changes them as a former version would.
func holding(t *testing.T) (*postgres.Store, *actor, string, func(sql string, args ...any), func(sql string, args ...any)) {
	return holdingIn(t, pgtest.Pool(t), made.take(t))
}

func holdingIn(t *testing.T, pool *pgxpool.Pool, schema string) (*postgres.Store, *actor, string, func(sql string, args ...any), func(sql string, args ...any)) {
	s, a := openAt(t, pool, schema)
	a.beat()
	hold := func(sql string, args ...any) {
		t.Helper()
		tx, err := pool.Begin(t.Context())
		must(t, err)
		t.Cleanup(func() { tx.Rollback(context.Background()) })
		_, err = tx.Exec(t.Context(), "set local search_path = "+schema)
		must(t, err)
		_, err = tx.Exec(t.Context(), sql, args...)
		must(t, err)
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		tx, err := pool.Begin(t.Context())
		must(t, err)
		_, err = tx.Exec(t.Context(), "set local search_path = "+schema)
		must(t, err)
		_, err = tx.Exec(t.Context(), sql, args...)
		must(t, err)
		must(t, tx.Commit(t.Context()))
	}
	return s, a, schema, hold, exec
}

// jobWith is a job that is added with what a test says.
func jobWith(a *actor, opts ...func(*store.Job)) store.Job {
	a.Helper()
	def := newJob()
	for _, o := range opts {
		o(&def)
	}
	job, err := a.AddJob(a.ctx, def, nil)
	must(a.T, err)
	return job
}

// succeeds has a run of the job succeed.
func (a *actor) succeeds(job store.Job) store.Run {
	a.Helper()
	j, err := a.Job(a.ctx, job.ID)
	must(a.T, err)
	r := a.started(j)
	res := result(r)
	res.State = store.StateSucceeded
	_, err = a.Finish(a.ctx, nil, []store.Result{res})
	must(a.T, err)
	return r
}

// TestALockedChildHoldsUpNoOthers: what is owed to a job that somebody has locked stays for later, and nothing else does.
func TestALockedChildHoldsUpNoOthers(t *testing.T) {
	t.Parallel()
	_, a, _, hold, _ := holding(t)
	x, y := jobWith(a), jobWith(a)
	p := jobWith(a, func(j *store.Job) { j.Children = []int64{x.ID} })
	q := jobWith(a, func(j *store.Job) { j.Children = []int64{y.ID} })
	a.succeeds(p)
	a.succeeds(q)
	hold("select from xxl_job_next where job_id = $1 for update", x.ID)
	paid, err := a.PayOwed(a.ctx, store.OwedQuery{Shards: a.shards, Limit: 100})
	if err != nil || paid.Runs != 1 {
		t.Error("a job that others have locked holds up the children of all others")
	}
}

// TestALockedWindowHoldsUpNoOthers: so does what counts for a window that somebody has locked.
func TestALockedWindowHoldsUpNoOthers(t *testing.T) {
	t.Parallel()
	_, a, _, hold, _ := holding(t)
	p, z := jobWith(a), jobWith(a)
	join := jobWith(a, func(j *store.Job) { j.After = []int64{p.ID, z.ID} })
	y := jobWith(a)
	q := jobWith(a, func(j *store.Job) { j.Children = []int64{y.ID} })
	a.succeeds(p)
	paid, err := a.PayOwed(a.ctx, store.OwedQuery{Shards: a.shards, Limit: 100})
	must(t, err)
	a.succeeds(z)
	a.succeeds(q)
	hold("select from xxl_job_window where job_id = $1 for update", join.ID)
	paid, err = a.PayOwed(a.ctx, store.OwedQuery{Shards: a.shards, Limit: 100})
	if err != nil || paid.Runs != 1 {
		t.Error("a window that others have locked holds up the children of all others")
	}
}

// TestUnknownWindowsAreNotTakenAgain: what is owed to a job whose windows this process cannot work out is said by each
// payment, and not taken again by each, until the job is edited here or some seconds have passed.
func TestUnknownWindowsAreNotTakenAgain(t *testing.T) {
	t.Parallel()
	_, a, _, _, exec := holding(t)
	p := jobWith(a)
	join := jobWith(a, func(j *store.Job) { j.After, j.AfterZone = []int64{p.ID}, "Mars/Olympus" })
	a.succeeds(p)
	pay := func(limit, runs, unknown int) {
		t.Helper()
		paid, err := a.PayOwed(a.ctx, store.OwedQuery{Shards: a.shards, Limit: limit})
		must(t, err)
		if paid.Runs != runs || len(paid.Unknown) != unknown || unknown == 1 && (paid.Unknown[0].JobID != join.ID || paid.Unknown[0].Owed != 1) {
			t.Errorf("paid %d runs, want %d, and left %+v", paid.Runs, runs, paid.Unknown)
		}
	}
	pay(100, 0, 1)
	exec("update xxl_job_info set after_zone = 'Asia/Shanghai' where id = $1", join.ID) // another process, without a word
	pay(100, 0, 1)
	pay(10, 0, 1)
	_, err := a.EditJob(a.ctx, join.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) { j.Name = "edited"; return true, nil }})
	must(t, err)
	pay(100, 1, 0)
}

// TestALockedPartHoldsUpNoOthers: the result of a part whose trigger somebody has locked is left out, and no other.
func TestALockedPartHoldsUpNoOthers(t *testing.T) {
	t.Parallel()
	s, a, _, hold, _ := holding(t)
	y := jobWith(a)
	job := jobWith(a, func(j *store.Job) { j.Children = []int64{y.ID} })
	first, second := a.parts(job)
	_, err := a.Finish(a.ctx, nil, []store.Result{{RunID: first.ID, State: store.StateSucceeded}})
	must(t, err)
	hold("select from xxl_job_part for update")
	postgres.BeCareful(s)
	other := a.started(jobWith(a))
	res := result(other)
	res.State = store.StateSucceeded
	got, _ := a.Finish(a.ctx, nil, []store.Result{{RunID: second.ID, State: store.StateSucceeded}, res})
	if len(got) != 1 {
		t.Error("a row of xxl_job_part that others have locked holds up the result of another job")
	}
}

// TestChildrenThatAFormerVersionSaved: a definition that a node of the version before has written leads to its children.
func TestChildrenThatAFormerVersionSaved(t *testing.T) {
	t.Parallel()
	_, a, _, _, exec := holding(t)
	y := jobWith(a)
	job := jobWith(a)
	// what a node of the version before does in AddJob and EditJob
	exec("update xxl_job_info set child_jobid = $2::int::text, version = version + 1 where id = $1", job.ID, y.ID)
	exec("update xxl_job_next set version = version + 1 where job_id = $1", job.ID)
	a.succeeds(job)
	paid, err := a.PayOwed(a.ctx, store.OwedQuery{Shards: a.shards, Limit: 100})
	must(t, err)
	if paid.Runs != 1 {
		t.Errorf("the definition has Children, and nothing is triggered, ever: %+v", paid)
	}
}

// TestRubbishAmongChildren: an id that no job can have, written by hand, is none of the children.
func TestRubbishAmongChildren(t *testing.T) {
	t.Parallel()
	_, a, _, _, exec := holding(t)
	y := jobWith(a)
	job := jobWith(a, func(j *store.Job) { j.Children = []int64{y.ID} })
	exec("update xxl_job_info set child_jobid = child_jobid || ',99999999999' where id = $1", job.ID)
	r := a.started(job)
	other := a.started(jobWith(a))
	res, res2 := result(r), result(other)
	res.State, res2.State = store.StateSucceeded, store.StateSucceeded
	got, err := a.Finish(a.ctx, nil, []store.Result{res, res2})
	if err != nil {
		t.Errorf("results can never be stored: %d %v", len(got), err)
	}
	_, err = a.EditJob(a.ctx, job.ID, store.Edit{Verb: "stop", Change: func(j *store.Job) (bool, error) { j.Stopped = true; return false, nil }})
	if err != nil {
		t.Errorf("a stop: %v", err)
	}
}

// TestARemovedJobIsNotOpen: nobody waits for a job to recover that is removed.
func TestARemovedJobIsNotOpen(t *testing.T) {
	t.Parallel()
	_, a, _, _, _ := holding(t)
	job := jobWith(a)
	must(t, a.MarkAlarms(a.ctx, store.AlarmMarks{Jobs: []store.JobTold{{JobID: job.ID, Rule: "r", At: time.Now(), Open: true}}}))
	must(t, a.RemoveJob(a.ctx, job.ID))
	_, open, err := a.OpenAlarms(a.ctx, a.shards, nil, store.JobTold{}, 10)
	must(t, err)
	if open != 0 {
		t.Errorf("%d are open of a job that is removed, for good", open)
	}
}

// TestALockedRunHoldsUpNoMarks: what was told is noted, also where the row of the run is held.
func TestALockedRunHoldsUpNoMarks(t *testing.T) {
	t.Parallel()
	s, a, _, hold, _ := holding(t)
	_, err := s.KeepRules(t.Context(), store.RuleKeeper{App: "app", Node: "n", Incarnation: "n-1", Rules: []store.AlarmRule{store.NewAlarmRule(alarm.Rule{Name: "all", Causes: []alarm.Cause{alarm.Failed, alarm.Lost, alarm.Attempt, alarm.Skipped}})}})
	must(t, err)
	fail := func() store.Run {
		r := a.started(jobWith(a))
		res := result(r)
		res.State = store.StateFailed
		_, err := a.Finish(a.ctx, nil, []store.Result{res})
		must(t, err)
		return r
	}
	x := fail()
	fail()
	list, err := a.Alarms(a.ctx, a.shards, nil, 0, 10)
	must(t, err)
	hold("select from xxl_job_log where id = $1 for update", x.ID)
	var m store.AlarmMarks
	for _, al := range list {
		m.Done = append(m.Done, store.AlarmDone{ID: al.ID, Status: 2})
		m.Told = append(m.Told, store.AlarmTold{ID: al.ID, Rule: "r"})
	}
	must(t, a.MarkAlarms(a.ctx, m))
	list, _ = a.Alarms(a.ctx, a.shards, nil, 0, 10)
	if len(list) > 1 {
		t.Errorf("a run that others have locked holds up the marks of %d alarms", len(list))
	}
}

// TestALockedRunHoldsUpNoOtherStarts: the start of a run whose row is held is left for later, and
// the others of its batch are not, whichever statement starts them.
func TestALockedRunHoldsUpNoOtherStarts(t *testing.T) {
	inServer(t)
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "a"), 1)
	for name, change := range map[string]func(*store.Start, store.Run){
		"as the caller does not know it": func(*store.Start, store.Run) {},
		"elsewhere":                      func(st *store.Start, r store.Run) { st.Known, st.Address = &r, "http://127.0.0.1:1" },
		"here":                           func(st *store.Start, r store.Run) { st.Known = &r },
	} {
		var starts []store.Start
		for range 2 {
			job := jobWith(a)
			r := a.planned(job)
			st := a.startOf(r, job.Version)
			change(&st, r)
			starts = append(starts, st)
		}
		hold := begin(t, pgx.ReadCommitted)
		_, err := hold.Exec(t.Context(), fmt.Sprintf("select from %q.xxl_job_log where id = $1 for update", postgres.SchemaOf(s)), starts[0].RunID)
		must(t, err)
		postgres.BeCareful(s)
		out, err := s.Start(a.ctx, nil, starts)
		if err != nil || out[0].Status != store.StartLocked || out[1].Status != store.StartOK {
			t.Errorf("%s: %+v, %v, want the run that is held left out alone", name, out, err)
		}
		must(t, hold.Rollback(t.Context()))
	}
}

// TestRecoveredByARunFromBefore: a job has recovered by a run that was planned before the alarm and has ended after it.
func TestRecoveredByARunFromBefore(t *testing.T) {
	t.Parallel()
	_, a, _, _, _ := holding(t)
	job := jobWith(a)
	r := a.started(job)
	time.Sleep(20 * time.Millisecond)
	must(t, a.MarkAlarms(a.ctx, store.AlarmMarks{Jobs: []store.JobTold{{JobID: job.ID, Rule: "r", At: time.Now(), Open: true}}}))
	time.Sleep(20 * time.Millisecond)
	res := result(r)
	res.State = store.StateSucceeded
	_, err := a.Finish(a.ctx, nil, []store.Result{res})
	must(t, err)
	got, _, err := a.OpenAlarms(a.ctx, a.shards, nil, store.JobTold{}, 10)
	must(t, err)
	if len(got) != 1 {
		t.Error("a run that ended after At is not looked at, since its id is older; in memory it is")
	}
}

// owesMuch stores so many results of a job with a hundred children, each so long.
func owesMuch(t *testing.T, n, size int, param store.ChildParam) {
	_, a, _, _, _ := holding(t)
	child := jobWith(a)
	var ids []int64
	for i := range 100 {
		ids = append(ids, child.ID+int64(i)+1000)
	}
	job := jobWith(a, func(j *store.Job) { j.Children = ids; j.ChildParam = param })
	var starts []store.Start
	p := a.plan(job)
	p.Runs = nil
	for i := range n {
		p.Runs = append(p.Runs, store.NewRun{At: job.Next.Add(time.Duration(i) * time.Millisecond), Type: store.TriggerCron, State: store.StatePlanned})
	}
	runs, err := a.Claim(a.ctx, nil, []store.Plan{p})
	must(t, err)
	for _, r := range runs {
		starts = append(starts, a.startOf(r, job.Version))
	}
	out, err := a.Start(a.ctx, nil, starts)
	must(t, err)
	var results []store.Result
	b := make([]byte, size/2)
	rand.Read(b)
	for _, o := range out {
		if o.Run.ID == 0 {
			continue
		}
		res := result(o.Run)
		res.State, res.HandleMsg = store.StateSucceeded, hex.EncodeToString(b)
		results = append(results, res)
	}
	got, err := a.Finish(a.ctx, nil, results)
	if err != nil || len(got) != n {
		t.Errorf("%d of %d results of %d bytes are stored: %v", len(got), n, size, err)
	}
}

// TestResultsThatOweMuch: a thousand results, or results that are long, of a job with a hundred
// children are stored.
func TestResultsThatOweMuch(t *testing.T) {
	inServer(t)
	t.Parallel()
	owesMuch(t, 1000, 0, "")
	owesMuch(t, 200, 15000, store.ChildParamResult)
}

// TestSuccessesReadNoScripts: what a success owes to other jobs is stored without the script and the parameter
// of its own, which may have megabytes: it is asked for with each end of a run.
func TestSuccessesReadNoScripts(t *testing.T) {
	t.Parallel()
	var meter callMeter
	s := openOn(t, pgtest.Pool(t, pgtest.With(meter.use)), postgres.Config{})
	a := own(t, s, inc(t, "scripts"), 1)
	child := a.job()
	job := jobWith(a, func(j *store.Job) {
		j.GlueType, j.GlueSource, j.Param, j.Children = "GLUE_SHELL", strings.Repeat("echo 1\n", 100_000), strings.Repeat("p", 60<<10), []int64{child.ID}
	})
	run := a.started(job)
	meter.received.Store(0)
	ended, err := s.Finish(a.ctx, nil, []store.Result{result(run)})
	must(t, err)
	if n := meter.received.Load(); len(ended) != 1 || n > 60<<10 {
		t.Errorf("%d runs have ended, for %d bytes from the server", len(ended), n)
	}
}
