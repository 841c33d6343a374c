package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestBootIDsCostNothingWhereThereAreNone: a run that was started for no known
// process, as all attached ones are, has null for it and not a text.
func TestBootIDsCostNothingWhereThereAreNone(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "boot"), 1)
	stored := func(run store.Run) string {
		return ask[string](t, pgtest.SharedPool(t), fmt.Sprintf(`select coalesce(executor_boot_id, 'null') from %q.xxl_job_log where id = $1`, postgres.SchemaOf(s)), run.ID)
	}
	check := func(what string, run store.Run, want string) {
		t.Helper()
		if got := stored(run); got != want {
			t.Errorf("%s: the column is %q, want %q", what, got, want)
		}
	}
	remote := func(boot string, targets, boots []string) store.Started {
		job := a.job()
		st := a.startOf(a.planned(job), job.Version)
		st.Address, st.BootID, st.Targets, st.TargetBoots = "http://10.0.0.1", boot, targets, boots
		answers, err := a.Start(a.ctx, nil, []store.Start{st})
		must(t, err)
		if answers[0].Status != store.StartOK {
			t.Fatalf("start: status %d", answers[0].Status)
		}
		return answers[0]
	}
	check("an attached run", a.started(a.job()), "null")
	check("a remote run", remote("", nil, nil).Run, "null")
	run := remote("one", nil, nil).Run
	check("a run for a process", run, "one")
	parts := remote("one", []string{"http://10.0.0.1", "http://10.0.0.2", "http://10.0.0.3"}, []string{"one", "", "three"})
	check("the part before", parts.Run, "one")
	check("a part for no process", parts.Siblings[0], "null")
	check("a part for a process", parts.Siblings[1], "three")
	moved, err := a.Readdress(a.ctx, store.Readdress{RunID: run.ID, Shard: run.Shard, Epoch: a.epoch(run.Shard), Owner: run.Owner, Token: run.Token, Address: "http://10.0.0.2"})
	must(t, err)
	check(fmt.Sprintf("a run that was moved (%v)", moved), run, "null")
	back, err := a.Settle(a.ctx, []store.Verdict{{RunID: parts.Run.ID, Shard: parts.Run.Shard, Epoch: a.epoch(parts.Run.Shard), Owner: parts.Run.Owner, Token: parts.Run.Token, To: store.StatePlanned}})
	must(t, err)
	check(fmt.Sprintf("a run that was put back (%d)", len(back)), parts.Run, "null")
}

// TestOwnersResultsPassByLockedRows: what an owner concludes is held up by a lock as
// any result is, and holds up no other. The fence is the same where the store passes
// by locks.
func TestOwnersResultsPassByLockedRows(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "locked"), 1)
	var list []store.Result
	for range 3 {
		run := a.started(a.job())
		list = append(list, store.Result{RunID: run.ID, Owner: run.Owner, Token: run.Token, State: store.StateFailed})
	}
	wrong := list[2]
	wrong.Token++
	blocker := lockRow(t, s, "xxl_job_log", "id = $1", list[1].RunID)
	runs, err := s.Finish(t.Context(), nil, []store.Result{list[0], list[1], wrong})
	if !errors.Is(err, store.ErrLocked) || len(runs) != 1 || runs[0].ID != list[0].RunID {
		t.Errorf("while a row is locked: %d runs, %v; want the first, and ErrLocked", len(runs), err)
	}
	must(t, blocker.Rollback(t.Context()))
	runs, err = s.Finish(t.Context(), nil, list)
	if err != nil || len(runs) != 2 || runs[0].ID != list[1].RunID || runs[1].ID != list[2].RunID {
		t.Errorf("after it: %d runs, %v; want the two that were left", len(runs), err)
	}
}
