package finding_test

import (
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// TestWhyJob: why job 1 runs, or does not, the gravest first.
func TestWhyJob(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(w *finding.World)
		want []finding.Cause
		says string // the first of them
	}{
		{"all is well", func(*finding.World) {}, []finding.Cause{finding.NextIs}, `job 1 "mail" of app shop: is due 2026-03-02T09:00:30Z`},
		{"removed", func(w *finding.World) { w.Jobs = w.Jobs[1:] }, []finding.Cause{finding.Removed}, ``},
		{"stopped by somebody", func(w *finding.World) { w.Jobs[0].Stopped, w.Jobs[0].Next = true, time.Time{} }, []finding.Cause{finding.Halted}, `job 1 "mail" of app shop: is stopped`},
		{"it has come to its end", func(w *finding.World) {
			w.Jobs[0].Stopped, w.Jobs[0].StopReason = true, "finished: MaxRuns"
		}, []finding.Cause{finding.Halted}, `job 1 "mail" of app shop: is stopped (finished: MaxRuns)`},
		{"stopped by itself", func(w *finding.World) { w.Jobs[0].Stopped, w.Jobs[0].StopReason = true, "minute 61" }, []finding.Cause{finding.Stopped}, `job 1 "mail" of app shop: has stopped by itself: minute 61`},
		{"by hand alone", func(w *finding.World) { w.Jobs[0].Schedule = schedule.Manual() }, []finding.Cause{finding.NoSchedule}, `job 1 "mail" of app shop: has no schedule`},
		{"behind others", func(w *finding.World) { w.Jobs[0].Schedule, w.Jobs[0].After = schedule.Manual(), []int64{2, 3} }, []finding.Cause{finding.NoSchedule},
			`job 1 "mail" of app shop: has no schedule (runs behind other jobs: 2)`},
		{"a delay that waits for its run", func(w *finding.World) {
			w.Jobs[0].Schedule, w.Jobs[0].Next, w.Jobs[0].WaitRun = schedule.FixedDelay(time.Minute), time.Time{}, 9
		}, []finding.Cause{finding.WaitsForRun}, `job 1 "mail" of app shop: waits for the end of a run`},
		{"nobody, and it is run by hand", func(w *finding.World) {
			w.Jobs[0].Schedule, w.Nodes[0].Attached, w.Counts = schedule.Manual(), nil, nil
			w.Waiting = nil
		}, []finding.Cause{finding.NoExecutor, finding.NoSchedule}, `app shop: no live executor`},
		{"its shard has no node, and it fails", func(w *finding.World) {
			w.Shards[0].Owner, w.Ended = "", fails(1, 3, "no")
		}, []finding.Cause{finding.ShardUnowned, finding.Failing, finding.NextIs}, `the cluster: shards that no live node has (shards 0)`},
		{"another shard has no node, another job fails, another node is silent", func(w *finding.World) {
			w.Shards[1].Owner, w.Ended = "", fails(2, 3, "no")
			w.Nodes = append(w.Nodes, store.Node{ID: "b", Incarnation: "b-1", Away: true})
			w.Troubles = []store.Trouble{{Cause: store.TroubleUnknownZone, JobID: 2}, {Cause: store.TroubleStuckRuns, App: "other"}}
		}, []finding.Cause{finding.NextIs}, `job 1 "mail" of app shop: is due 2026-03-02T09:00:30Z`},
		{"a handler that nobody has, with others", func(w *finding.World) {
			w.Jobs[0].Handler = "mial"
			w.Waiting = append(w.Waiting, store.Run{ID: 78, JobID: 1, App: "shop", Scheduled: now.Add(-time.Hour)})
		}, []finding.Cause{finding.NoHandler, finding.NextIs}, `job 1 "mail" of app shop: no executor has the handler (mial)`},
		{"instants that were not run", func(w *finding.World) {
			w.Skipped = []store.Run{{ID: 8, JobID: 1, Reason: store.ReasonMisfire, Created: now.Add(-time.Hour), First: now.Add(-2 * time.Hour), Count: 60},
				{ID: 7, JobID: 1, Reason: store.ReasonMisfire, Created: now.Add(-30 * time.Hour), Count: 5}}
		}, []finding.Cause{finding.Missed, finding.NextIs}, `job 1 "mail" of app shop: instants were not run (misfire), 60 of the last 60, since 2026-03-02T07:00:00Z`},
		{"a trouble of the job", func(w *finding.World) {
			w.Troubles = []store.Trouble{{Cause: store.TroubleUnknownZone, JobID: 1, App: "shop", Detail: "no data of Mars/Olympus"}}
		}, []finding.Cause{finding.Cause(store.TroubleUnknownZone), finding.NextIs}, `unknown-zone app shop job 1: no data of Mars/Olympus`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := well()
			c.do(&w)
			all := finding.WhyJob(w, 1)
			if got := causesOf(all); !slices.Equal(got, c.want) {
				t.Fatalf("%v, want %v: %v", got, c.want, all)
			}
			if c.says != "" && all[0].String() != c.says {
				t.Errorf("says\n%s, want\n%s", all[0], c.says)
			}
		})
	}
}

func causesOf(all []finding.Finding) (causes []finding.Cause) {
	for _, f := range all {
		causes = append(causes, f.Cause)
	}
	return causes
}

// TestWhyRun: why a run of job 1 is where it is.
func TestWhyRun(t *testing.T) {
	late := store.Run{ID: 80, JobID: 1, App: "shop", JobName: "mail", Scheduled: now.Add(-time.Minute)}
	for _, c := range []struct {
		name string
		do   func(w *finding.World, r *store.Run)
		want []finding.Cause
		says string
	}{
		{"its time has not come", func(_ *finding.World, r *store.Run) { r.Scheduled = now.Add(time.Hour) }, []finding.Cause{finding.NotDue}, `job 1 "mail" of app shop: is not due before 2026-03-02T10:00:00Z`},
		{"another one runs", func(w *finding.World, _ *store.Run) {
			w.Running = []store.Run{{ID: 79, JobID: 1, State: store.StateDispatched}}
		}, []finding.Cause{finding.WaitsForRun}, `job 1 "mail" of app shop: waits for the end of a run`},
		{"another one runs beside it", func(w *finding.World, _ *store.Run) {
			w.Jobs[0].Block, w.Running = "CONCURRENT", []store.Run{{ID: 79, JobID: 1, State: store.StateDispatched}}
		}, []finding.Cause{finding.Unsaid}, ``},
		{"nobody is there", func(w *finding.World, _ *store.Run) { w.Nodes[0].Attached = nil }, []finding.Cause{finding.NoExecutor}, ``},
		{"its shard has no node", func(w *finding.World, _ *store.Run) { w.Shards[0].Owner = "" }, []finding.Cause{finding.ShardUnowned}, ``},
		{"it is due just now", func(_ *finding.World, r *store.Run) { r.Scheduled = now.Add(-time.Second) }, []finding.Cause{finding.NotDue}, ``},
		{"its job is removed", func(w *finding.World, _ *store.Run) { w.Jobs = nil }, []finding.Cause{finding.Removed}, ``},
		{"it is under way", func(_ *finding.World, r *store.Run) {
			r.State, r.Started, r.Address = store.StateDispatched, now.Add(-time.Hour), "http://10.0.0.1:9999"
		}, []finding.Cause{finding.Runs}, `job 1 "mail" of app shop: is under way (http://10.0.0.1:9999)`},
		{"it is under way in a process that is silent", func(w *finding.World, r *store.Run) {
			w.Nodes = append(w.Nodes, store.Node{ID: "b", Incarnation: "b-1", Away: true})
			r.State, r.Started, r.Owner, r.Address = store.StateStarted, now.Add(-time.Hour), "a-1", store.LocalAddress("b-1")
		}, []finding.Cause{finding.NodeSilent, finding.Runs}, `the cluster: a node is silent (b)`},
		{"it has failed", func(_ *finding.World, r *store.Run) {
			r.State, r.Ended, r.HandleMsg = store.StateFailed, now, "disk full"
		}, []finding.Cause{finding.Ended}, `job 1 "mail" of app shop: has ended (failed): disk full`},
		{"it was cancelled", func(_ *finding.World, r *store.Run) { r.State, r.Reason = store.StateCancelled, "edit" }, []finding.Cause{finding.Ended}, `job 1 "mail" of app shop: has ended (cancelled): edit`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, r := well(), late
			c.do(&w, &r)
			all := finding.WhyRun(w, r)
			if got := causesOf(all); !slices.Equal(got, c.want) {
				t.Fatalf("%v, want %v: %v", got, c.want, all)
			}
			if c.says != "" && all[0].String() != c.says {
				t.Errorf("says\n%s, want\n%s", all[0], c.says)
			}
		})
	}
}
