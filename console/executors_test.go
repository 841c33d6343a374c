package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
)

// TestExecutors: who lives, since when, what it has and does, and which apps have enabled jobs and nobody
// who runs them, first, with what to do, until that is done. Each user is told of his apps alone.
func TestExecutors(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		root.get("executors").is(http.StatusOK).has("There are no apps here yet")
		held := make(chan struct{})
		must(t, x.s.Handle("work", func(ctx context.Context, _ *xxljob.Task) error {
			select {
			case <-held:
			case <-ctx.Done():
			}
			return nil
		}))
		must(t, x.s.Start(t.Context()))
		t.Cleanup(func() { _ = x.s.Stop(context.WithoutCancel(t.Context())) })
		node, incarnation := x.s.Stats().Node, x.s.Stats().Incarnation
		x.ends(x.job("orders", "nightly"), xxljob.StateStarted)
		defer close(held)
		dark, at := "dark <app>", time.Now().Add(time.Hour)
		must1(x.store.AddJob(t.Context(), xxljob.Job{App: dark, Name: "lonely", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?"), Next: at}, nil))
		must1(x.store.AddJob(t.Context(), xxljob.Job{App: "billing", Name: "bills", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?"), Next: at}, nil))
		must(t, x.store.PutAddresses(t.Context(), []store.Registration{{App: "billing", Address: "http://10.0.0.7:9999/", BootID: "b1"}}))
		must1(x.store.AddJob(t.Context(), xxljob.Job{App: "quiet", Name: "by hand", Handler: "work", Schedule: xxljob.Manual()}, nil))

		root.get("executors").is(http.StatusOK).has("No executor dark <app>", "Start an executor of the app", "no executor dark <app> there never was one", "served billing 1 address", "served orders 1 node work 1", "nobody needed quiet").lacks("Shards without")
		if !root.before("no executor dark <app>", "served billing") {
			t.Error("an app without executors is not the first")
		}
		root.get("executors?app=orders").is(http.StatusOK).has("alive "+node+" in a node joined", "1 of 1 jobs enabled", "1 running", "Running now", "nightly", "work")
		if link := "runs?state=open&amp;address=local%3a%2f%2f" + incarnation; !strings.Contains(root.body, link) {
			t.Errorf("no link %s: %s", link, root.body)
		}
		root.get("runs?state=open&address=local%3A%2F%2F" + incarnation).is(http.StatusOK).has("nightly")
		root.get("executors?app=billing").is(http.StatusOK).has("alive http://10.0.0.7:9999/ registered itself heartbeat")
		root.get("executors?app=dark+%3Capp%3E").is(http.StatusOK).has("No executor", "Start an executor of the app", "1 of 1 jobs enabled")
		root.get("executors?tab=nodes").is(http.StatusOK).has("alive "+node+" this node "+incarnation, "orders", "knows time zones", "clock", "release ")
		root.get("executors?tab=shards").is(http.StatusOK).has("owned " + node).lacks("nobody has it")
		root.get("executors?tab=shards&text=no-such-node").is(http.StatusOK).lacks("owned")
		root.get("executors?text=BILL").is(http.StatusOK).has("served billing").lacks(`executors?app=orders"`)

		viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"billing": console.Viewer}})
		for _, page := range []string{"executors", "executors?app=billing", "executors?tab=nodes", "executors?tab=shards"} {
			viewer.get(page).is(http.StatusOK).lacks("dark &lt;", "quiet<", "orders", "lonely", "nightly", "Needs attention")
		}
		viewer.get("executors").has("served billing")
		for _, app := range []string{"orders", "no+such+app"} {
			viewer.get("executors?app=" + app).is(http.StatusNotFound)
		}
		none := x.user(console.User{Name: "none", Apps: map[string]console.Role{"elsewhere": console.Viewer}})
		for _, page := range []string{"executors", "executors?tab=nodes", "executors?tab=shards"} {
			none.get(page).is(http.StatusOK).has("There are no apps here yet").lacks(node, "10.0.0.7")
		}
		for _, bad := range []string{"tab=elsewhere", "from=-1", "from=x", "from=99999999999999999999", "text=a%00"} {
			root.get("executors?" + bad).is(http.StatusBadRequest)
		}
		root.get("executors?from=4711").is(http.StatusOK)

		// The remedy is followed.
		must(t, x.store.PutAddresses(t.Context(), []store.Registration{{App: dark, Address: "http://10.0.0.8:9999/"}}))
		root.get("executors").has("served dark <app> 1 address").lacks("Needs attention")
	})
}

// TestExecutorsFallSilent: an address that nobody refreshes any more does not count, and neither does a node
// that stops; what they served is dark from then on. A store that does not answer for a while changes none
// of that.
func TestExecutorsFallSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		must(t, x.s.Handle("work", func(_ context.Context, _ *xxljob.Task) error { time.Sleep(time.Minute); return nil }))
		must(t, x.s.Start(t.Context()))
		nightly := x.job("orders", "nightly")
		must1(x.store.AddJob(t.Context(), xxljob.Job{App: "billing", Name: "bills", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?"), Next: time.Now().Add(time.Hour)}, nil))
		must(t, x.store.PutAddresses(t.Context(), []store.Registration{{App: "billing", Address: "http://10.0.0.7:9999/"}}))
		time.Sleep(80 * time.Second)
		root.get("executors").has("served billing 1 address", "served orders 1 node").lacks("Needs attention")
		time.Sleep(11 * time.Second)
		root.get("executors").has("no executor billing", "1 address without heartbeat", "No executor billing")
		root.get("executors?app=billing").has("silent http://10.0.0.7:9999/")

		must1(x.s.Trigger(t.Context(), nightly.ID, xxljob.Trigger{}))
		time.Sleep(time.Second)
		go func() { _ = x.s.Stop(context.WithoutCancel(t.Context())) }()
		time.Sleep(10 * time.Second)
		root.get("executors?tab=nodes").has("stopping")
		root.get("executors").has("No executor × 2", "no executor orders")
		time.Sleep(2 * time.Minute)
		root.get("executors?tab=nodes").lacks("stopping")
		root.get("executors?tab=shards").has("nobody has it", "Shards without a scheduler")
	})
}

// TestExecutorsOfManyApps: of a thousand apps with long names, and of two hundred nodes that serve all of
// them, a page has so many lines, and so many bytes.
func TestExecutorsOfManyApps(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		long := strings.Repeat("汇", 18)
		var all []store.Attachment
		for i := range 1010 {
			app := fmt.Sprintf("app %04d %s", i, long)
			must1(x.s.AddJob(t.Context(), xxljob.Job{App: app, Name: "j", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")}))
			if i > 970 {
				all = append(all, store.Attachment{App: app, Handlers: []string{strings.Repeat("h", 255), "second", "third", "4", "5", "6", "7", "8"}})
			}
		}
		for i := range 200 {
			n := store.Node{ID: fmt.Sprint("node-", i), Incarnation: fmt.Sprint("node-", i, "-1"), Attached: all}
			must1(x.store.Join(t.Context(), n))
		}
		root := x.admin()
		for _, page := range []string{"executors", "executors?from=600", "executors?tab=nodes", "executors?tab=shards", "executors?app=app+1000+" + long} {
			if n := len(root.get(page).is(http.StatusOK).body); n > 128<<10 {
				t.Errorf("%s has %d bytes", page, n)
			}
		}
		root.get("executors").has("No executor × 971", "app 0000", "and 968 more", "1,010 in all", "app 0049").lacks("app 0050")
		root.get("executors?from=50").has("app 0050", "app 0099").lacks("app 0100 ")
		root.get("executors?from=1000").has("app 1009", "Previous")
		root.get("executors?tab=nodes").has("200 in all", "node-0", "and 36 more")
		root.get("executors?app=app+1000+"+long).has("200 in all", "node-14")
	})
}

// TestProcessesOfOtherNodes: the page of nodes says of which release each is, and how far its clock is from the
// store's, as it has said itself.
func TestProcessesOfOtherNodes(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		ctx := t.Context()
		x.job("orders", "any")
		for name, p := range map[string]store.Process{"late": {Version: "v9.8.7", ClockOffset: 90 * time.Second}, "early": {Version: "v9.8.6", ClockOffset: -3 * time.Second}, "exact": {Version: "v9.8.5"}, "silent": {}} {
			must1(x.store.Join(ctx, store.Node{ID: name, Incarnation: name + "-1"}))
			if p.Version != "" {
				must(t, x.store.(store.ProcessNoter).NoteProcess(ctx, name+"-1", p))
			}
			must1(x.store.Beat(ctx, name+"-1", nil))
		}
		said := map[string]string{"late": "release v9.8.7 · its clock is 1 min 30 s behind the store's", "early": "release v9.8.6 · its clock is 3 s ahead of the store's", "exact": "release v9.8.5 · it goes by the store's clock"}
		for name, words := range said {
			root.get("executors?tab=nodes&text=" + name).is(http.StatusOK).has(words)
		}
		root.get("executors?tab=nodes&text=silent").is(http.StatusOK).has("silent").lacks("release ", "clock is", "store's clock")
		root.post("look", url.Values{"language": {"zh-CN"}})
		root.get("executors?tab=nodes&text=late").has("版本 v9.8.7 · 时钟比存储慢 1 分 30 秒")
	})
}
