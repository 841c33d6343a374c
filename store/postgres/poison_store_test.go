package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// poison has the database raise an error before what of which table, where the condition is true.
func poison(t *testing.T, s *postgres.Store, verb, table, cond string) {
	t.Helper()
	_, err := pgtest.SharedPool(t).Exec(t.Context(), fmt.Sprintf(`create or replace function %[1]s.poisoned_%[3]s() returns trigger language plpgsql as $$ begin if %[4]s then raise 'poisoned'; end if; return new; end $$;
	create trigger poisoned before %[2]s on %[1]s.%[3]s for each row execute function %[1]s.poisoned_%[3]s()`, postgres.SchemaOf(s), verb, table, cond))
	must(t, err)
}

// TestRefusedMembers: of what the store chooses by itself it does all that the database lets it do,
// and says why it has left one.
func TestRefusedMembers(t *testing.T) {
	inServer(t)
	t.Parallel()
	const n = 9 // of which the fifth is poisoned
	for name, refused := range map[string]func(t *testing.T, a *actor, jobs []store.Job, bad store.Job) (done, again int, why error){
		"moves": func(t *testing.T, a *actor, jobs []store.Job, bad store.Job) (done, again int, why error) {
			for _, job := range jobs {
				a.ahead(job, store.Trigger{At: time.Now().Add(time.Hour)}, time.Now().Add(-time.Second))
			}
			poison(t, a.Store, "insert", "xxl_job_log", fmt.Sprint("new.job_id = ", bad.ID))
			one := a.move(time.Time{})
			return one.Runs, a.move(time.Time{}).Runs, one.Refused
		},
		"windows": func(t *testing.T, a *actor, jobs []store.Job, bad store.Job) (done, again int, why error) {
			two := []store.Job{a.job(), a.job()}
			for _, job := range jobs {
				_, err := a.EditJob(a.ctx, job.ID, store.Edit{Version: job.Version, Verb: "update", Change: func(j *store.Job) (bool, error) {
					j.After = []int64{two[0].ID, two[1].ID}
					return false, nil
				}})
				must(t, err)
			}
			a.succeeds(two[0])
			_, err := a.PayOwed(a.ctx, store.OwedQuery{Shards: a.shards, Limit: 1000})
			must(t, err)
			poison(t, a.Store, "insert", "xxl_job_log", fmt.Sprint("new.job_id = ", bad.ID))
			expire := func() store.Expired {
				e, err := a.ExpireWindows(a.ctx, store.WindowQuery{Shards: a.shards, Before: time.Now().AddDate(1, 0, 0), Limit: 1000})
				must(t, err)
				return e
			}
			one := expire()
			return one.Windows, expire().Windows, one.Refused
		},
		"alarms": func(t *testing.T, a *actor, jobs []store.Job, bad store.Job) (done, again int, why error) {
			_, err := a.KeepRules(a.ctx, store.RuleKeeper{App: "app", Node: "n", Incarnation: "n-1", Rules: []store.AlarmRule{store.NewAlarmRule(alarm.Rule{Name: "late", Causes: []alarm.Cause{alarm.Late}})}})
			must(t, err)
			for _, job := range jobs {
				job, err := a.EditJob(a.ctx, job.ID, store.Edit{Version: job.Version, Verb: "update", Change: func(j *store.Job) (bool, error) {
					j.LateAfter = time.Second
					return false, nil
				}})
				must(t, err)
				a.started(job)
			}
			poison(t, a.Store, "insert", "xxl_job_alarm", fmt.Sprint("new.job_id = ", bad.ID))
			late := func() store.Late {
				l, err := a.AddLate(a.ctx, store.LateQuery{Shards: a.shards, Now: time.Now().Add(time.Hour), Limit: 1000})
				must(t, err)
				return l
			}
			one := late()
			return one.Alarms, late().Alarms, one.Refused
		},
		"corrections": func(t *testing.T, a *actor, jobs []store.Job, bad store.Job) (done, again int, why error) {
			now := time.Now().Add(-2 * time.Hour)
			for _, job := range jobs {
				_, err := a.AddRun(a.ctx, job.ID, store.Trigger{})
				must(t, err)
			}
			poison(t, a.Store, "update", "xxl_job_log", fmt.Sprint("new.job_id = ", bad.ID))
			correct := func() (int, error) {
				return a.RedateRuns(a.ctx, store.RedateQuery{Shards: a.shards, Now: now, Limit: 1000})
			}
			done, why = correct()
			again, _ = correct()
			return done, again, why
		},
		"sweeps": func(t *testing.T, a *actor, jobs []store.Job, bad store.Job) (done, again int, why error) {
			for _, job := range jobs {
				job, err := a.EditJob(a.ctx, job.ID, store.Edit{Version: job.Version, Verb: "update", Change: func(j *store.Job) (bool, error) {
					j.Schedule = schedule.FixedDelay(time.Hour)
					return false, nil
				}})
				must(t, err)
				p := a.plan(job)
				p.Next, p.Wait, p.Runs[0].Type = time.Time{}, true, store.TriggerFixDelay
				runs, err := a.Claim(a.ctx, nil, []store.Plan{p})
				must(t, err)
				run(t, pgtest.SharedPool(t), fmt.Sprintf("delete from %q.xxl_job_log where id = %d", postgres.SchemaOf(a.Store), runs[0].ID))
			}
			poison(t, a.Store, "update", "xxl_job_next", fmt.Sprint("new.job_id = ", bad.ID))
			why = a.Sweep(a.ctx, a.shards)
			for _, job := range jobs {
				got, err := a.Job(a.ctx, job.ID)
				must(t, err)
				if got.WaitRun == 0 {
					done++
				}
			}
			return done, 0, why
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := postgres.New(t.Context(), pgtest.SharedPool(t), postgres.FewDays(postgres.Config{Schema: pgtest.Schema(t), AutoMigrate: true}))
			must(t, err)
			t.Cleanup(s.Close)
			a := own(t, s, inc(t, name), 2)
			var jobs []store.Job
			for range n {
				jobs = append(jobs, a.job())
			}
			done, again, why := refused(t, a, jobs, jobs[n/2])
			if done != n-1 || again != 0 {
				t.Errorf("%d are done at first, and %d then, want %d", done, again, n-1)
			}
			if !errors.Is(why, store.ErrRefused) || !strings.Contains(why.Error(), "poisoned") {
				t.Errorf("the other is left for %v", why)
			}
		})
	}
}

// TestRefusedBatches: calls with members that their callers choose are refused as a whole, in words,
// and those without the poisoned one are not.
func TestRefusedBatches(t *testing.T) {
	inServer(t)
	t.Parallel()
	s, err := postgres.New(t.Context(), pgtest.SharedPool(t), postgres.FewDays(postgres.Config{Schema: pgtest.Schema(t), AutoMigrate: true}))
	must(t, err)
	t.Cleanup(s.Close)
	a := own(t, s, inc(t, "a"), 2)
	b, _ := join(t, s, inc(t, "b"), 2)
	good, bad := a.job(), a.job()
	handed := func(job store.Job, address string) store.Run {
		st := a.startOf(a.planned(job), job.Version)
		st.Address, st.Owner = address, a.inc
		answers, err := a.Start(a.ctx, nil, []store.Start{st})
		must(t, err)
		return answers[0].Run
	}
	nextOf := func(job store.Job) store.Job {
		job, err := a.Job(a.ctx, job.ID)
		must(t, err)
		return job
	}
	local := [2]store.Run{handed(good, store.LocalAddress(b.inc)), handed(bad, store.LocalAddress(b.inc))}
	far := [2]store.Run{handed(nextOf(good), "http://127.0.0.1:1"), handed(nextOf(bad), "http://127.0.0.1:1")}
	poison(t, s, "update", "xxl_job_log", fmt.Sprint("new.job_id = ", bad.ID))
	poison(t, s, "insert or update", "xxl_job_registry", "new.registry_key = 'bad'")
	poison(t, s, "insert or update", "xxl_job_rule", "new.name = 'bad'")
	poison(t, s, "insert", "xxl_job_alarm", "new.app_name = 'bad'")
	_, err = s.KeepRules(a.ctx, store.RuleKeeper{App: "ops", Node: "ops", Incarnation: a.inc, Rules: []store.AlarmRule{store.NewAlarmRule(alarm.Rule{Name: "all", Causes: []alarm.Cause{alarm.Trouble}})}})
	must(t, err)
	verdict := func(r store.Run) store.Verdict {
		r, err := s.Run(a.ctx, r.ID)
		must(t, err)
		return store.Verdict{RunID: r.ID, Shard: r.Shard, Epoch: a.epoch(r.Shard), Owner: r.Owner, Token: r.Token, Taken: !r.Taken.IsZero(), To: store.StateLost}
	}
	for _, x := range []struct {
		what string
		call func(n int) (int, error) // for so many, of which the second is poisoned
	}{
		{"marks", func(n int) (int, error) {
			var list []store.Dispatch
			for _, r := range far[:n] {
				list = append(list, store.Dispatch{RunID: r.ID, Owner: r.Owner, Token: r.Token})
			}
			runs, err := s.Dispatched(a.ctx, list)
			return len(runs), err
		}},
		{"takes", func(n int) (int, error) {
			var list []int64
			for _, r := range local[:n] {
				list = append(list, r.ID)
			}
			runs, err := s.Take(a.ctx, b.inc, list)
			return len(runs), err
		}},
		{"verdicts", func(n int) (int, error) {
			var list []store.Verdict
			for _, r := range local[:n] {
				list = append(list, verdict(r))
			}
			runs, err := s.Settle(a.ctx, list)
			return len(runs), err
		}},
		{"registrations", func(n int) (int, error) {
			regs := []store.Registration{{App: "good", Address: "http://127.0.0.1:1"}, {App: "bad", Address: "http://127.0.0.1:1"}}
			return n, s.PutAddresses(a.ctx, regs[:n])
		}},
		{"rules", func(n int) (int, error) {
			k := store.RuleKeeper{App: "app", Node: "n", Incarnation: b.inc}
			for _, name := range []string{"good", "bad"}[:n] {
				k.Rules = append(k.Rules, store.NewAlarmRule(alarm.Rule{Name: name, Causes: []alarm.Cause{alarm.Failed}}))
			}
			_, err := s.KeepRules(a.ctx, k)
			return n, err
		}},
		{"notes", func(n int) (int, error) {
			notes := store.TroubleNotes{Incarnation: b.inc, List: []store.TroubleNote{{Cause: store.TroubleNoExecutor, App: "good"}, {Cause: store.TroubleNoExecutor, App: "bad"}}[:n]}
			mine, err := s.NoteTroubles(a.ctx, notes)
			return len(mine), err
		}},
	} {
		if _, err := x.call(2); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "poisoned") {
			t.Errorf("%s: %v", x.what, err)
		}
		if n, err := x.call(1); n != 1 || err != nil {
			t.Errorf("%s without the poisoned one: %d, %v", x.what, n, err)
		}
	}
}

// TestRefusedAlarms: an alarm that the database refuses is dropped, with a line, and no other with it;
// what it tells of has happened. One that refuses them all keeps nothing from happening either.
func TestRefusedAlarms(t *testing.T) {
	inServer(t)
	t.Parallel()
	const n = 40
	for name, c := range map[string]struct {
		cond    func(bad store.Job) string
		dropped int // of n
	}{
		"one":          {func(bad store.Job) string { return fmt.Sprint("new.job_id = ", bad.ID) }, 1},
		"all":          {func(store.Job) string { return "true" }, n},
		"the last few": {func(bad store.Job) string { return fmt.Sprint("new.job_id >= ", bad.ID) }, n / 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &lines{}
			s, err := postgres.New(t.Context(), pgtest.SharedPool(t), postgres.FewDays(postgres.Config{Schema: pgtest.Schema(t), AutoMigrate: true, Logger: log.logger()}))
			must(t, err)
			t.Cleanup(s.Close)
			a := own(t, s, inc(t, name), 2)
			_, err = s.KeepRules(a.ctx, store.RuleKeeper{App: "app", Node: "n", Incarnation: a.inc, Rules: []store.AlarmRule{store.NewAlarmRule(alarm.Rule{Name: "all", Causes: []alarm.Cause{alarm.Failed, alarm.Skipped, alarm.Stopped}})}})
			must(t, err)
			var jobs []store.Job
			var results []store.Result
			for range n {
				jobs = append(jobs, a.job())
				res := result(a.started(jobs[len(jobs)-1]))
				res.State = store.StateFailed
				results = append(results, res)
			}
			poison(t, s, "insert", "xxl_job_alarm", c.cond(jobs[n/2]))
			ended, err := s.Finish(a.ctx, nil, results)
			if err != nil || len(ended) != n {
				t.Errorf("%d results are accepted, error %v", len(ended), err)
			}
			inserted := func() int {
				list, err := s.Alarms(a.ctx, a.shards, nil, 0, 1000)
				must(t, err)
				return len(list)
			}
			if got := inserted(); got != n-c.dropped {
				t.Errorf("%d alarms are there, want %d", got, n-c.dropped)
			}
			if lines := log.count("the database refuses alarms, which are dropped"); lines != 1 {
				t.Errorf("the log has %d lines of it", lines)
			}
			var plans []store.Plan
			for _, job := range jobs {
				job, err := s.Job(a.ctx, job.ID)
				must(t, err)
				plans = append(plans, store.Plan{JobID: job.ID, Shard: job.Shard, Epoch: a.epoch(job.Shard), Version: job.Version, Due: job.Next, Stop: "broken"})
			}
			_, err = s.Claim(a.ctx, nil, plans)
			must(t, err)
			for _, job := range jobs {
				if got, err := s.Job(a.ctx, job.ID); err != nil || !got.Stopped {
					t.Errorf("job %d is not stopped (%v)", job.ID, err)
				}
			}
			if got := inserted(); got != 2*(n-c.dropped) {
				t.Errorf("then %d alarms are there, want %d", got, 2*(n-c.dropped))
			}
		})
	}
}
