package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestNobodyIsThereAfterADeath: two services share a schema. The only node of one dies and cannot say so,
// and an executor that has registered falls silent. What is triggered then waits or is refused as each
// job says, by the node of the other service; what waits is run when a node is there again.
func TestNobodyIsThereAfterADeath(t *testing.T) {
	t.Parallel()
	st := openOn(t, nil, postgres.Config{})
	start := func(app string, st store.Store) xxljob.Scheduler {
		t.Helper()
		s, err := xxljob.New(st, xxljob.Config{App: app, Node: app, Logger: stage.QuietLog(), Cluster: xxljob.ClusterConfig{
			Shards: 4, LeaseTTL: time.Second, LostAfter: 2 * time.Second, Beat: time.Second, Dead: 2 * time.Second,
		}})
		must(t, err)
		must(t, s.Handle("h", func(context.Context, *xxljob.Task) error { return nil }))
		must(t, s.Start(t.Context()))
		await.Until(t, app+" is ready", func() bool { return s.Ready() == nil })
		return s
	}
	orders := start("orders", st)
	dies := pgtest.Pool(t, pgtest.MaxConns(8))
	own, err := postgres.New(t.Context(), dies, postgres.Config{Schema: postgres.SchemaOf(st), NoReserve: true})
	must(t, err)
	t.Cleanup(own.Close)
	billing := start("billing", own)
	must(t, orders.SaveGroup(t.Context(), xxljob.Group{App: "java"}))

	type policy struct {
		app string
		on  xxljob.OnNoExecutor
	}
	jobs, refused := map[policy]xxljob.Job{}, map[policy]bool{}
	for _, app := range []string{"billing", "java"} {
		for _, on := range []xxljob.OnNoExecutor{"", xxljob.OnNoExecutorWait, xxljob.OnNoExecutorRefuse} {
			p := policy{app, on}
			jobs[p], err = orders.AddJob(t.Context(), xxljob.Job{App: app, Key: "k" + string(on), Name: "n", Handler: "h", OnNoExecutor: on})
			must(t, err)
			refused[p] = on == xxljob.OnNoExecutorRefuse || on == "" && app == "java"
		}
	}
	trigger := func(p policy) int64 {
		t.Helper()
		ids, err := orders.Trigger(t.Context(), jobs[p].ID, xxljob.Trigger{})
		must(t, err)
		return ids[0]
	}
	for p := range jobs { // while somebody is there
		if p.app != "billing" {
			continue
		}
		if run, err := orders.Wait(t.Context(), trigger(p)); err != nil || run.State != store.StateSucceeded {
			t.Fatalf("before it, a run with %q is %v (%v): %s", p.on, run.State, err, run.HandleMsg)
		}
	}
	must(t, st.PutAddresses(t.Context(), []store.Registration{{App: "java", Address: "http://127.0.0.1:9"}}))
	must(t, st.NoteServed(t.Context(), []store.Served{{App: "java", By: store.ServedRegistered}}))
	dies.Close()
	await.Until(t, "the registration is over", func() bool {
		all, err := st.Addresses(t.Context(), "java", 2*time.Second)
		must(t, err)
		return len(all) == 0
	})
	runs := map[policy]int64{}
	for p := range jobs {
		runs[p] = trigger(p)
	}
	for p, id := range runs {
		if !refused[p] {
			continue
		}
		if run, err := orders.Wait(t.Context(), id); err != nil || run.State != store.StateRefused {
			t.Errorf("%s, %q: the run is %v (%v): %s", p.app, p.on, run.State, err, run.HandleMsg)
		}
	}
	for p, id := range runs {
		if run, err := st.Run(t.Context(), id); !refused[p] && (err != nil || run.State != store.StatePlanned) {
			t.Errorf("%s, %q: the run is %v (%v): %s", p.app, p.on, run.State, err, run.HandleMsg)
		}
	}
	again, err := postgres.New(t.Context(), pgtest.SharedPool(t), postgres.Config{Schema: postgres.SchemaOf(st)})
	must(t, err)
	t.Cleanup(again.Close)
	back := start("billing", again)
	for p, id := range runs {
		if p.app != "billing" || refused[p] {
			continue
		}
		if run, err := orders.Wait(t.Context(), id); err != nil || run.State != store.StateSucceeded {
			t.Errorf("%q: when a node is back the run is %v (%v): %s", p.on, run.State, err, run.HandleMsg)
		}
	}
	must(t, back.Stop(t.Context()))
	_ = billing.Stop(t.Context()) // it cannot say that it leaves
	must(t, orders.Stop(t.Context()))
}
