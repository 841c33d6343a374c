package console_test

import (
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
)

// TestABroadcastIsToldAsAWhole: the page of each part says how all of them have gone, with the error of
// each, the failed first; where the job has become secret, no error of another part is told either.
func TestABroadcastIsToldAsAWhole(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root, viewer := x.admin(), x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})
		ctx := t.Context()
		j := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Name: "all", Handler: "work", Route: xxljob.RouteShardingBroadcast}))
		parts := x.parts(j, 4, "")
		var results []store.Result
		for i, said := range []string{"disk <full>", "done", "done"} {
			state := store.StateSucceeded
			if i == 0 {
				state = store.StateFailed
			}
			results = append(results, store.Result{RunID: parts[i+1].ID, State: state, HandleMsg: said})
		}
		must1(x.store.Finish(ctx, nil, results))
		for _, p := range parts {
			root.get("runs/"+itoa(p.ID)).is(200).has("Broadcast of 4 parts 1 failed, 1 started, 2 succeeded · slowest: part", "disk <full>")
		}
		viewer.get("runs/" + itoa(parts[0].ID)).has("disk <full>")
		j = must1(x.store.Job(ctx, j.ID))
		j.Secret = true
		must1(x.s.UpdateJob(ctx, j))
		viewer.get("runs/" + itoa(parts[0].ID)).is(200).has("1 failed").lacks("disk &lt;full")
		root.get("runs/" + itoa(x.run(x.job("orders", "alone")).ID)).is(200).lacks("Broadcast of")
	})
}
