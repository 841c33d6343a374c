package browser

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// standing is a site at which nothing moves: runs in each state, a broadcast, a run that was tried again, jobs
// that are stopped for each reason, and eighty that are as jobs are. No scheduler is started: a node that
// the test plays has made the runs.
func standing(t *testing.T) *site {
	x := idle(t)
	x.ordinary()
	n := x.node("ledger-7f9c6-x2x4q")
	n.states()
	n.stopped()
	n.broadcast()
	n.retried()
	id := x.jobs["Stopped by its schedule"]
	must1(x.store.PutMute(xxljob.WithActor(context.Background(), "li.na"), store.Mute{Key: store.MuteOfJob(id), JobID: id, Until: time.Now().Add(4 * time.Hour), Note: "the new calendar comes with the release of tonight"}))
	return x
}

// idle is a site whose scheduler is not started, with a user and nothing else.
func idle(t *testing.T) *site {
	x := &site{T: t, store: memory.New(), jobs: map[string]int64{}, runs: map[string]int64{}}
	s, err := xxljob.New(x.store, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	x.s, x.faults = s, storetest.WrapWhole(x.store)
	must(t, x.store.SetShards(context.Background(), 32)) // as the scheduler would
	x.serve(s, console.Accounts())
	x.user("root")
	return x
}

// ordinary adds eighty jobs of five apps, with names in several scripts and of several lengths.
func (x *site) ordinary() {
	x.Helper()
	names := []string{"Nightly ledger export", "ODS 增量同步", "汇率同步", "Send reminders", "Purge expired carts", "對帳單產生", "Refresh search index", "库存快照",
		"quarterly-reconciliation-of-all-ledgers-and-sub-ledgers-of-each-country-and-currency", "Heartbeat", "Tarifs journaliers", "결제 정산", "Rebuild recommendations", "日次バックアップ", "Close open invoices", "GC"}
	schedules := []xxljob.Schedule{xxljob.Cron("0 0 3 * * ?").In("Asia/Shanghai"), xxljob.FixedRate(45 * time.Second), xxljob.Crontab("*/5 * * * *"), xxljob.FixedDelay(12 * time.Hour),
		xxljob.Cron("0 30 18 L 3,6,9,12 ?").In("Europe/Berlin"), xxljob.Manual()}
	apps := []string{"billing", "marketplace", "warehouse", "search", "数据平台"}
	for i := range 80 {
		j := xxljob.Job{App: apps[i%len(apps)], Name: names[i%len(names)], Handler: fmt.Sprintf("com.example.job.Handler%d", i%20), Schedule: schedules[i%len(schedules)], Author: []string{"wang", "李雷", ""}[i%3]}
		if i >= len(names) {
			j.Name += fmt.Sprintf(" %d", i/len(names)+1)
		}
		if i%4 == 0 {
			j.Tags = []string{"ledger", "夜间"}
		}
		x.job(j)
	}
}

// node is a node of the cluster that owns all shards.
type node struct {
	*site
	id, incarnation string
	epochs          map[int]int64
	token           int64
}

// node joins one, whose leases last as long as the test does not say anything else.
func (x *site) node(id string) *node {
	x.Helper()
	ctx := context.Background()
	n := &node{site: x, id: id, incarnation: id + "-1", epochs: map[int]int64{}}
	view, err := x.store.Join(ctx, store.Node{ID: id, Incarnation: n.incarnation})
	must(x.T, err)
	taken, err := x.store.TakeShards(ctx, n.incarnation, view.Shards)
	must(x.T, err)
	for _, s := range taken {
		n.epochs[s.ID] = s.Epoch
	}
	return n
}

// plan claims a run of a job, in a state, for a time, and stops the job for a reason where there is one.
func (n *node) plan(id int64, at time.Time, state store.State, stop string) (runs []store.Run) {
	n.Helper()
	j := must1(n.store.Job(context.Background(), id))
	r := store.NewRun{At: at, Type: store.TriggerCron, State: state}
	if state == store.StateSkipped {
		r.First, r.Last, r.Count, r.Reason = at, at.Add(10*time.Minute), 3, store.ReasonMisfire
	}
	p := store.Plan{JobID: j.ID, Shard: j.Shard, Epoch: n.epochs[j.Shard], Version: j.Version, Due: j.Next, Next: j.Next.Add(time.Hour), Stop: stop}
	if stop == "" {
		p.Runs = []store.NewRun{r}
	}
	runs, err := n.store.Claim(context.Background(), nil, []store.Plan{p})
	must(n.T, err)
	if len(runs) != len(p.Runs) {
		n.Fatalf("%d runs of %s", len(runs), j.Name)
	}
	return runs
}

// start starts a planned run at an address.
func (n *node) start(r store.Run, address string) store.Run {
	n.Helper()
	n.token++
	j := must1(n.store.Job(context.Background(), r.JobID))
	out, err := n.store.Start(context.Background(), nil, []store.Start{{RunID: r.ID, JobID: r.JobID, Shard: r.Shard, Epoch: n.epochs[r.Shard], JobVersion: j.Version, State: store.StateStarted,
		Owner: n.incarnation, Token: n.token, Address: address, Handler: j.Handler, Block: j.Block, Retries: j.Retries, Param: `{"part":"all","dry":false}`}})
	must(n.T, err)
	if len(out) != 1 || out[0].Status != store.StartOK {
		n.Fatalf("%s is not started: %+v", j.Name, out)
	}
	return out[0].Run
}

// states makes a run in each state, each of a job of its own but for those that have ended badly.
func (n *node) states() {
	n.Helper()
	ctx, remote, own := context.Background(), "http://10.4.17.203:9999", store.LocalAddress(n.incarnation)
	job := func(name string) int64 {
		j := n.job(xxljob.Job{App: "ledger", Name: name, Handler: "work", Schedule: xxljob.Cron("0 0 * * * ?")})
		return j.ID
	}
	failing := job("Rates")
	for state := store.StatePlanned; state <= store.StateSnoozed; state++ {
		name := strings.ReplaceAll(state.String(), " ", "_")
		id := failing
		if state != store.StateFailed && state != store.StateTimedOut && state != store.StateLost {
			id = job("A run that is " + state.String())
		}
		at := time.Now().Add(-time.Duration(20-int(state)) * time.Minute)
		if state == store.StateSkipped {
			n.runs[name] = n.plan(id, at, state, "")[0].ID
			continue
		}
		r := n.plan(id, at, store.StatePlanned, "")[0]
		n.runs[name] = r.ID
		switch state {
		case store.StatePlanned:
		case store.StateCancelled:
			must(n.T, n.s.Kill(xxljob.WithActor(ctx, "wang"), r.ID))
		case store.StateStarted:
			n.start(r, own)
		case store.StateDispatched:
			r = n.start(r, remote)
			must1(n.store.Dispatched(ctx, []store.Dispatch{{RunID: r.ID, Owner: r.Owner, Token: r.Token, Msg: "accepted"}}))
		default:
			r = n.start(r, remote)
			result := store.Result{RunID: r.ID, Owner: r.Owner, Token: r.Token, State: state, HandleMsg: map[store.State]string{
				store.StateSucceeded: `{"rows":1204}`, store.StateFailed: "dial tcp 10.4.17.203:5432: i/o timeout", store.StateTimedOut: "timed out after 30s", store.StateLost: "the node is gone",
				store.StateRefused: "no executor has the handler work", store.StateDiscarded: "run 4919 was still running"}[state]}
			must1(n.store.Finish(ctx, nil, []store.Result{result}))
		}
		if got := must1(n.store.Run(ctx, r.ID)); got.State != state {
			n.Fatalf("run %d is %s, want %s", r.ID, got.State, state)
		}
	}
}

// parts is how many parts the broadcast has, of which the second fails.
const parts = 5

// broadcast makes one at executors elsewhere: a part of it runs, one has failed, and the others are well.
func (n *node) broadcast() {
	n.Helper()
	ctx := context.Background()
	j := n.job(xxljob.Job{App: "ledger", Name: "Warm the caches", Handler: "warm", Route: xxljob.RouteShardingBroadcast, Schedule: xxljob.Cron("0 0 * * * ?")})
	r := n.plan(j.ID, time.Now().Add(-3*time.Minute), store.StatePlanned, "")[0]
	var targets []string
	for i := range parts {
		targets = append(targets, fmt.Sprintf("http://10.4.17.%d:9999", 203+i))
	}
	n.token++
	now := must1(n.store.Job(ctx, j.ID))
	out := must1(n.store.Start(ctx, nil, []store.Start{{RunID: r.ID, JobID: r.JobID, Shard: r.Shard, Epoch: n.epochs[r.Shard], JobVersion: now.Version, State: store.StateStarted,
		Owner: n.incarnation, Token: n.token, Address: targets[0], Targets: targets, Handler: j.Handler}}))[0]
	if out.Status != store.StartOK || len(out.Siblings) != parts-1 {
		n.Fatalf("a broadcast of %d parts: %+v", parts, out)
	}
	n.runs["part"] = out.Siblings[0].ID
	for i, part := range out.Siblings {
		result := store.Result{RunID: part.ID, Owner: part.Owner, Token: part.Token, State: store.StateSucceeded, HandleMsg: `{"entries":120400}`}
		if i == 0 {
			result.State, result.HandleMsg = store.StateFailed, "write /var/cache/ledger: no space left on device"
		}
		must1(n.store.Finish(ctx, nil, []store.Result{result}))
	}
}

// retried makes a run that fails, and fails again when it is tried again.
func (n *node) retried() {
	n.Helper()
	ctx := context.Background()
	j := n.job(xxljob.Job{App: "ledger", Name: "Close the books", Handler: "work", Retries: 2, Schedule: xxljob.Cron("0 0 4 * * ?")})
	r := n.plan(j.ID, time.Now().Add(-4*time.Minute), store.StatePlanned, "")[0]
	for _, said := range []string{"2 of 1,204 accounts do not add up", "1 of 1,204 accounts does not add up: 汇兑差额 0.01"} {
		r = n.start(r, "http://10.4.17.203:9999")
		must1(n.store.Finish(ctx, nil, []store.Result{{RunID: r.ID, Owner: r.Owner, Token: r.Token, State: store.StateFailed, HandleMsg: said}}))
		n.runs["retried"] = r.ID
		open := must1(n.store.Runs(ctx, store.RunFilter{TriggerID: r.TriggerID, States: []store.State{store.StatePlanned}}))
		if len(open) != 1 {
			n.Fatalf("%d runs follow", len(open))
		}
		r = open[0]
	}
}

// lengthy is a site with jobs and runs whose names are about as long as people make them, or as long as they
// may be, in Latin and in Chinese, with and without places at which they could be broken.
func lengthy(t *testing.T) *site {
	x := idle(t)
	n := x.node("ledger-7f9c6-x2x4q")
	for i, part := range []string{"billing-and-invoicing of all the countries ", "QuarterlyReconciliation", "季度对账与发票汇总服务", "ods.增量同步-"} {
		long := func(most int) string { return store.Cut(strings.Repeat(part, 20), most) }
		j := x.job(xxljob.Job{App: strings.TrimSpace(strings.ReplaceAll(long(64), " ", "-")), Key: long(80), Name: strings.TrimSpace(long(80 * (1 + i/2*2))), Handler: "com.example." + long(80), Author: strings.TrimSpace(long(64)),
			Tags: []string{"ledger", "夜间"}, Schedule: xxljob.Cron("0 30 18 L 3,6,9,12 ?").In("America/Argentina/Buenos_Aires")})
		r := n.start(n.plan(j.ID, time.Now().Add(-time.Duration(i+1)*time.Minute), store.StatePlanned, "")[0], "http://orders-7c9d-x2v4.orders.prod.svc.cluster.local:9999/")
		must1(x.store.Finish(context.Background(), nil, []store.Result{{RunID: r.ID, Owner: r.Owner, Token: r.Token, State: store.StateFailed, HandleMsg: long(400)}}))
		x.jobs["lengthy"], x.runs["lengthy"] = j.ID, r.ID
	}
	return x
}

// mostName is how many bytes the name of a job has at most.
const mostName = 255

// extreme is a site at which whatever has a name has the longest that it may have, in several scripts and
// without a place at which it could be broken.
func extreme(t *testing.T) *site {
	x := idle(t)
	n := x.node(strings.Repeat("N", 200))
	longest := func(part string, most int) string { return strings.Repeat(part, most/len(part)) }
	for i, part := range []string{"W", "汇", "ж", "क्षि", "ﷺ", "สวัสดี", "\U0001f469\U0001f467", "e\u0301\u0323", "한글", "i-i_i.i"} {
		app := longest(part, 64)
		j := x.job(xxljob.Job{App: app, Name: longest(part, mostName), Handler: longest(part, mostName), Author: longest(part, 64), Tags: []string{strings.Repeat("t", 64)}, Schedule: xxljob.Cron("0 0 * * * ?")})
		r := n.start(n.plan(j.ID, time.Now().Add(-time.Minute), store.StatePlanned, "")[0], "http://"+strings.Repeat("a", 200)+":9999")
		result := store.Result{RunID: r.ID, Owner: r.Owner, Token: r.Token, State: store.StateFailed, HandleMsg: longest(part, 4000)}
		if i%2 == 0 {
			must1(x.store.Finish(context.Background(), nil, []store.Result{result}))
			x.jobs["longest"], x.runs["longest"], x.app = j.ID, r.ID, app
		}
	}
	return x
}

// stopped stops a job for each reason.
func (n *node) stopped() {
	n.Helper()
	for name, reason := range map[string]string{"by hand": "", "at its end": store.StopFinished, "by a bound": store.StopFinished + ": NotAfter", "gone from lists": store.StopPruned,
		"by its schedule": "schedule: unknown time zone Asia/Shanghai: this process has no data of time zones"} {
		j := n.job(xxljob.Job{App: "ledger", Name: "Stopped " + name, Handler: "work", Schedule: xxljob.Cron("0 0 4 * * ?")})
		if reason == "" {
			must(n.T, n.s.StopJob(xxljob.WithActor(context.Background(), "wang"), j.ID))
		} else {
			n.plan(j.ID, time.Time{}, store.StatePlanned, reason)
		}
		if now := must1(n.store.Job(context.Background(), j.ID)); !now.Stopped || now.StopReason != reason {
			n.Fatalf("%s: stopped %v, %q", name, now.Stopped, now.StopReason)
		}
	}
}

// TestSignsOfStates: each state has a sign that is drawn and a word, also where the system has a few
// colors of its own, and no two have the same sign.
func TestSignsOfStates(t *testing.T) {
	browser(t)
	t.Parallel()
	x := standing(t)
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1440}, map[string]string{"xxljob_session": x.session("root")})
	for _, forced := range []string{"none", "active"} {
		b.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: forced}}}))
		b.open(mount + "runs")
		for _, fault := range eval[[]string](b, undrawn) {
			b.Error(fault)
		}
		seen := eval[[]string](b, `[...document.querySelectorAll("#live td .state")].map(s => s.querySelector("use").getAttribute("href") + " " + s.innerText.trim())`)
		signs := map[string]string{}
		for _, one := range seen {
			sign, word, _ := strings.Cut(one, " ")
			if word == "" || signs[sign] != "" && signs[sign] != word {
				b.Errorf("the sign %s is of %q and %q", sign, signs[sign], word)
			}
			signs[sign] = word
		}
		if len(signs) != int(store.StateSnoozed)+1 {
			b.Errorf("%d states are shown: %q", len(signs), signs)
		}
		if pale := eval[[]string](b, `[...document.querySelectorAll("#live svg.sign")].filter(s => getComputedStyle(s).stroke === getComputedStyle(document.body).backgroundColor).map(s => s.parentElement.innerText)`); len(pale) > 0 {
			b.Errorf("forced colors %s: not seen: %q", forced, pale)
		}
	}
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}

// TestRowsOnAScreen: so many rows of a list are seen at once, none of their words is broken, no text
// has a column of less than 160 px, and what ends in dots is told where the pointer is.
func TestRowsOnAScreen(t *testing.T) {
	browser(t)
	t.Parallel()
	x := standing(t)
	b := newTab(t, x.origin)
	const rows = `[...document.querySelectorAll("#live tbody tr[id]")]`
	for _, screen := range []struct{ width, height, least int64 }{{1440, 900, 18}, {1280, 800, 15}, {1024, 768, 12}, {768, 1024, 12}, {390, 844, 6}, {360, 740, 5}} {
		for _, language := range []string{"en", "zh-CN"} {
			b.looks(combination{language, "light", screen.width}, map[string]string{"xxljob_session": x.session("root")})
			b.do(chromedp.EmulateViewport(screen.width, screen.height))
			for _, list := range []string{"jobs", "runs"} {
				b.open(mount + list)
				b.until("rows", rows+".length > 10")
				// What lies over the end of the screen, as the rail does on a small one, hides rows.
				seen := eval[int64](b, `(() => {
					const rail = document.querySelector(".rail").getBoundingClientRect(), end = rail.top > 100 ? rail.top : innerHeight
					return `+rows+`.filter(r => r.getBoundingClientRect().bottom <= end).length
				})()`)
				if least := min(screen.least, eval[int64](b, rows+".length")); seen < least {
					b.Errorf("%s in %s at %d x %d: %d rows, want %d", list, language, screen.width, screen.height, seen, least)
				}
				for _, row := range eval[[]string](b, rows+`.filter(r => r.getBoundingClientRect().height > (innerWidth < 840 ? 60 : 40)).map(r => r.innerText)`) {
					b.Errorf("%s at %d px: of more lines than it should be: %q", list, screen.width, row)
				}
				for _, cell := range eval[[]string](b, `[...document.querySelectorAll("#live :is(td.c-name, td.c-job, td.c-schedule, td.c-result)")].filter(td => td.checkVisibility() && td.getBoundingClientRect().width < 160).map(td => td.className + " of " + td.getBoundingClientRect().width)`) {
					b.Errorf("%s at %d px: a narrow column: %s", list, screen.width, cell)
				}
			}
		}
	}
	long := `[...document.querySelectorAll("td.c-name")].find(td => td.scrollWidth > td.clientWidth)`
	b.open(mount + "jobs?text=quarterly")
	b.until("a name that is too long", long)
	at := eval[[]float64](b, `(r => [r.left + 20, r.top + 8])(`+long+`.getBoundingClientRect())`)
	b.point(at[0], at[1])
	b.until("the whole name", long+`.title.startsWith("quarterly-reconciliation-of-all-ledgers-and-sub-ledgers-of-each-country-and-currency")`)
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}
