package console_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/await"
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
			root.get("runs/"+itoa(p.ID)).is(200).has("Broadcast of 4 parts 1 failed, 1 running, 2 succeeded · slowest: part", "disk <full>")
		}
		viewer.get("runs/" + itoa(parts[0].ID)).has("disk <full>")
		j = must1(x.store.Job(ctx, j.ID))
		j.Secret = true
		must1(x.s.UpdateJob(ctx, j))
		viewer.get("runs/" + itoa(parts[0].ID)).is(200).has("1 failed").lacks("disk &lt;full")
		root.get("runs/" + itoa(x.run(x.job("orders", "alone")).ID)).is(200).lacks("Broadcast of")
	})
}

// TestAttemptsAreToldAsAWhole: the head of each attempt says which of how many it is, and how the others have
// ended, with their errors and links.
func TestAttemptsAreToldAsAWhole(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		var tries atomic.Int64
		must(t, x.s.Handle("work", func(context.Context, *xxljob.Task) error { return fmt.Errorf("not today, %d", tries.Add(1)) }))
		must(t, x.s.Start(t.Context()))
		t.Cleanup(func() { _ = x.s.Stop(context.Background()) })
		j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "retried", Handler: "work", Retries: 2}))
		id := must1(x.s.Trigger(t.Context(), j.ID, xxljob.Trigger{}))[0]
		var tree []xxljob.Run
		await.Until(t, "the end of the last of three attempts", func() bool {
			tree = must1(x.store.Tree(t.Context(), id))
			return len(tree) == 3 && tree[2].State.Ended()
		})
		for i, r := range tree {
			_, head, _ := strings.Cut(root.get("runs/"+itoa(r.ID)).is(200).has(fmt.Sprintf("Attempt %d of 3", i+1)).body, `class="note attempts"`)
			head, _, _ = strings.Cut(head, "</p>")
			for k, other := range tree {
				link := fmt.Sprintf(`<a href="../runs/%d">attempt %d</a>`, other.ID, k+1)
				if strings.Contains(head, link) != (k != i) || strings.Contains(head, fmt.Sprintf("not today, %d", k+1)) != (k != i) {
					t.Errorf("attempt %d: of attempt %d there is %q", i+1, k+1, head)
				}
			}
		}
		root.post("look", url.Values{"language": {"zh-CN"}})
		root.get("runs/"+itoa(tree[1].ID)).has("第 2 次执行，共 3 次", "第 1 次", "第 3 次")
		once := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "once", Handler: "work"}))
		root.get("runs/" + itoa(x.ends(once, xxljob.StateFailed).ID)).is(200).lacks("次执行，共")
	})
}

// TestAttemptsOfAJobThatWasEdited: of how many attempts a run is one goes by the newest of them.
func TestAttemptsOfAJobThatWasEdited(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		must(t, x.s.Handle("work", func(ctx context.Context, task *xxljob.Task) error {
			j, err := x.store.Job(ctx, task.JobID)
			if err == nil && j.Retries != 1 {
				j.Retries = 1
				_, err = x.s.UpdateJob(ctx, j)
			}
			return fmt.Errorf("not today, %v", err)
		}))
		must(t, x.s.Start(t.Context()))
		t.Cleanup(func() { _ = x.s.Stop(context.Background()) })
		j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "retried", Handler: "work", Retries: 5}))
		id := must1(x.s.Trigger(t.Context(), j.ID, xxljob.Trigger{}))[0]
		var tree []xxljob.Run
		await.Until(t, "the end of the last of two attempts", func() bool {
			tree = must1(x.store.Tree(t.Context(), id))
			return len(tree) == 2 && tree[1].State.Ended()
		})
		for i, r := range tree {
			root.get("runs/" + itoa(r.ID)).is(200).has(fmt.Sprintf("Attempt %d of 2", i+1))
		}
	})
}
