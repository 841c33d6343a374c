package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// poisonedJob is a job about which the database refuses something.
type poisonedJob struct {
	xxljob.Scheduler
	store *postgres.Store
	job   xxljob.Job
	since time.Time // it does
}

// anyRun reports whether a run of the job since then is as a function says.
func (p *poisonedJob) anyRun(t *testing.T, is func(r xxljob.Run) bool) bool {
	return slices.ContainsFunc(stage.AllOf(t, p.store, store.RunFilter{JobID: p.job.ID}), func(r xxljob.Run) bool { return r.Scheduled.After(p.since) && is(r) })
}

// isStopped reports whether the job was stopped for it.
func (p *poisonedJob) isStopped(t *testing.T) bool {
	job, err := p.store.Job(t.Context(), p.job.ID)
	return err == nil && job.Stopped && strings.Contains(job.StopReason, "poisoned")
}

// isTrouble reports whether it is a trouble.
func (p *poisonedJob) isTrouble(*testing.T) bool {
	return slices.ContainsFunc(p.Troubles(), func(x xxljob.Trouble) bool { return x.Cause == xxljob.TroubleRefused && x.JobID == p.job.ID })
}

// isUnready reports whether results that are not stored are why the node is not ready.
func (p *poisonedJob) isUnready(*testing.T) bool {
	var not *xxljob.NotReadyError
	return errors.As(p.Ready(), &not) && slices.Contains(not.Reasons, "results")
}

// TestPoisonedTables: the database refuses rows of one table, or changes of them, for one job each,
// by triggers, with codes of their own too, and a constraint that somebody has added. The other jobs go on, and what the scheduler
// can say of those it says.
func TestPoisonedTables(t *testing.T) {
	inServer(t)
	t.Parallel()
	cases := []struct {
		name string
		when string // of a trigger that raises an error: before what, of which table, and the condition; %[1]s is the schema, %[2]d the job
		told func(p *poisonedJob, t *testing.T) bool
	}{
		{"planned runs", "insert on xxl_job_log: new.job_id = %[2]d", (*poisonedJob).isStopped},
		{"planned runs, by a constraint", "", (*poisonedJob).isStopped},
		{"next instants", "update on xxl_job_next: new.job_id = %[2]d", (*poisonedJob).isTrouble},
		{"starts", "update on xxl_job_log: new.job_id = %[2]d and new.state = 1", func(p *poisonedJob, t *testing.T) bool {
			return p.anyRun(t, func(r xxljob.Run) bool {
				return r.State == xxljob.StateRefused && strings.Contains(r.HandleMsg, "poisoned")
			})
		}},
		{"starts and refusals", "update on xxl_job_log: new.job_id = %[2]d and new.state in (1, 8)", (*poisonedJob).isTrouble},
		{"texts of results", "update on xxl_job_log: new.job_id = %[2]d and new.state > 2 and new.handle_msg like 'said%%'", func(p *poisonedJob, t *testing.T) bool {
			return p.anyRun(t, func(r xxljob.Run) bool {
				return r.State == xxljob.StateFailed && strings.Contains(r.HandleMsg, "refuses the text")
			})
		}},
		{"results", "update on xxl_job_log: new.job_id = %[2]d and new.state > 2", (*poisonedJob).isUnready},
		{"alarms", "insert on xxl_job_alarm: new.job_id = %[2]d", func(p *poisonedJob, t *testing.T) bool {
			return p.anyRun(t, func(r xxljob.Run) bool { return r.State == xxljob.StateFailed && r.HandleMsg == "said" })
		}},
		{"children", "insert on xxl_job_log: new.job_id = %[2]d and new.trigger_type = 'PARENT'", func(p *poisonedJob, t *testing.T) bool {
			return slices.ContainsFunc(p.Troubles(), func(x xxljob.Trouble) bool {
				return x.Cause == xxljob.TroubleRefused && strings.Contains(x.Detail, fmt.Sprintf("to job %d", p.job.ID))
			})
		}},
		{"marks of alarms", "update on xxl_job_alarm: new.job_id = %[2]d", nil},
		{"progress", "update on xxl_job_log: new.job_id = %[2]d and new.progress is not null and new.state = 1", nil},
		{"pages of logs", "insert on xxl_job_log_page: exists (select from %[1]s.xxl_job_log l where l.id = new.run_id and l.job_id = %[2]d)", nil},
	}
	s, st, schema := startPoisoned(t)
	// Refused starts are tried four times a second, and each run three times: what comes more often than that on a
	// busy machine is told of late.
	add := func(key, handler string, every time.Duration) xxljob.Job {
		job, err := s.AddJob(t.Context(), xxljob.Job{Key: key, Name: key, Handler: handler, Schedule: xxljob.FixedRate(every), Block: xxljob.BlockConcurrent})
		must(t, err)
		return job
	}
	var good, bad []xxljob.Job
	for _, tt := range cases {
		good, bad = append(good, add("good "+tt.name, "good", time.Second)), append(bad, add(tt.name, "bad", 3*time.Second))
	}
	child, err := s.AddJob(t.Context(), xxljob.Job{Key: "child", Name: "child", Handler: "good", Block: xxljob.BlockConcurrent})
	must(t, err)
	good = append(good, child)
	i := slices.IndexFunc(bad, func(job xxljob.Job) bool { return job.Key == "children" })
	good[i].Children = []int64{bad[i].ID, child.ID}
	_, err = s.UpdateJob(t.Context(), good[i])
	must(t, err)
	time.Sleep(3 * time.Second)
	codes := []string{"P0001", "ZZ001", "38000", "44000", "27000"}
	for i, tt := range cases {
		sql := "alter table %[1]s.xxl_job_log add constraint poisoned check (job_id <> %[2]d) not valid"
		if before, cond, ok := strings.Cut(tt.when, ": "); ok {
			verb, table, _ := strings.Cut(before, " on ")
			sql = `create function %[1]s.poisoned%[2]d() returns trigger language plpgsql as $$ begin if ` + cond + ` then raise 'poisoned' using errcode = '` + codes[i%len(codes)] + `'; end if; return new; end $$;
			create trigger poisoned%[2]d before ` + verb + ` on %[1]s.` + table + ` for each row execute function %[1]s.poisoned%[2]d()`
		}
		_, err := pgtest.SharedPool(t).Exec(t.Context(), fmt.Sprintf(sql, schema, bad[i].ID))
		must(t, err)
	}
	since := time.Now()
	for i, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			p := &poisonedJob{s, st, bad[i], since}
			for told := tt.told == nil; !told; told = tt.told(p, t) {
				if time.Since(since) > 2*time.Minute {
					t.Fatalf("nothing is said of the job: troubles %v, ready %v", p.Troubles(), p.Ready())
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	for _, job := range good { // for as long as it takes a busy machine
		p, n := &poisonedJob{s, st, job, since}, 0
		for ; n < 4 && time.Since(since) < 4*time.Minute; time.Sleep(100 * time.Millisecond) {
			n = 0
			p.anyRun(t, func(r xxljob.Run) bool {
				n += stage.One(r.State == xxljob.StateSucceeded)
				return false
			})
		}
		if n < 4 {
			t.Errorf("%s has had %d runs in %v", job.Name, n, time.Since(since))
		}
	}
}

// startPoisoned starts a scheduler that does all that it can do for each run.
func startPoisoned(t *testing.T) (s xxljob.Scheduler, st *postgres.Store, schema string) {
	t.Helper()
	schema = pgtest.Schema(t)
	st, err := postgres.New(t.Context(), pgtest.SharedPool(t), postgres.Config{Schema: schema, AutoMigrate: true, Logger: stage.QuietLog()})
	must(t, err)
	t.Cleanup(st.Close)
	s, err = xxljob.New(st, xxljob.Config{
		App: "app", Logger: stage.QuietLog(), Logs: xxljob.LogConfig{InStore: true},
		Cluster: xxljob.ClusterConfig{LeaseTTL: 3 * time.Second},
		Alarms:  []alarm.Rule{{Name: "nobody", To: nobody{}}},
	})
	must(t, err)
	for name, result := range map[string]error{"good": nil, "bad": errors.New("said")} {
		must(t, s.Handle(name, func(_ context.Context, task *xxljob.Task) error {
			task.Log().Info("a line")
			task.Progress(50, "half")
			time.Sleep(1500 * time.Millisecond)
			return result
		}))
	}
	must(t, s.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Second)
		defer cancel()
		_ = s.Stop(ctx) // results are refused for ever
	})
	return s, st, schema
}

// nobody is told of alarms.
type nobody struct{}

func (nobody) Alarm(context.Context, alarm.Message) error { return nil }
