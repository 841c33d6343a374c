package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// The bounds of what is sent of a list, as a browser counts it, with its head.
const (
	mostOfAList   = 30_000  // bytes
	mostOfAMinute = 200_000 // bytes, while it is open and each reading of it has news
)

// long100k is a site with 100,000 runs of some jobs, of which the newest have failed with long errors that
// have nothing in common.
func long100k(t *testing.T) (x *site, more func()) {
	x = idle(t)
	ctx, n := context.Background(), x.node("ledger-7f9c6-x2x4q")
	const each = 500
	var jobs []xxljob.Job
	for i := range 12 { // of one job no more than 10,000 are kept
		jobs = append(jobs, x.job(xxljob.Job{App: "ledger", Name: fmt.Sprintf("Reconcile the ledger of region %d", i), Handler: "work", Schedule: xxljob.Cron("0 0 * * * ?")}))
	}
	begin := time.Now().Add(-48 * time.Hour)
	for i := range 100_000 / each {
		j := must1(x.store.Job(ctx, jobs[i%len(jobs)].ID))
		p := store.Plan{JobID: j.ID, Shard: j.Shard, Epoch: n.epochs[j.Shard], Version: j.Version, Due: j.Next, Next: j.Next.Add(time.Hour)}
		for k := range each {
			at := begin.Add(time.Duration(i*each+k) * time.Second)
			p.Runs = append(p.Runs, store.NewRun{At: at, First: at, Last: at, Count: 1, Type: store.TriggerCron, State: store.StateSkipped, Reason: store.ReasonMisfire})
		}
		if runs := must1(x.store.Claim(ctx, nil, []store.Plan{p})); len(runs) != each {
			t.Fatalf("%d runs", len(runs))
		}
	}
	noise := uint64(1)
	more = func() {
		var said strings.Builder
		for said.Len() < 200 {
			noise = noise*6364136223846793005 + 1442695040888963407
			fmt.Fprintf(&said, "%x ", noise>>20)
		}
		r := n.start(n.plan(jobs[0].ID, time.Now(), store.StatePlanned, "")[0], "http://10.4.17.203:9999")
		must1(x.store.Finish(ctx, nil, []store.Result{{RunID: r.ID, Owner: r.Owner, Token: r.Token, State: store.StateFailed, HandleMsg: said.String()}}))
	}
	for range 60 {
		more()
	}
	return x, more
}

// TestBytesOfALongList: the list of 100,000 runs comes in few bytes, however it is filtered, and so does what is
// sent of it in a minute in which each reading has news.
func TestBytesOfALongList(t *testing.T) {
	browser(t)
	t.Parallel()
	x, more := long100k(t)
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1440}, map[string]string{"xxljob_session": x.session("root")})
	for _, list := range []string{"runs?state=skipped", "runs?state=bad", fmt.Sprint("runs?job=", x.jobs["Reconcile the ledger of region 7"]), "runs"} {
		b.open(mount + list)
		b.until("a page of it", `document.readyState === "complete" && document.querySelectorAll("#live tbody tr[id]").length >= 50`)
		if n := eval[int](b, `performance.getEntriesByType("navigation")[0].transferSize`); n < 2000 || n > mostOfAList {
			b.Errorf("%s comes in %d bytes, and %d are allowed", list, n, mostOfAList)
		}
	}
	// Of the last one, which nobody has a hand in.
	const seconds = 12
	begin := eval[float64](b, `performance.now()`)
	for eval[float64](b, `performance.now()`) < begin+1000*seconds {
		more()
		time.Sleep(500 * time.Millisecond)
	}
	polls := eval[[]int](b, `performance.getEntriesByType("resource").filter(e => e.initiatorType === "fetch").map(e => e.transferSize)`)
	sum := 0
	for _, n := range polls {
		sum += n
	}
	if len(polls) < 2 || sum < 2000 || sum*60/seconds > mostOfAMinute {
		b.Errorf("in %d seconds %d readings have %d bytes, which are more than %d a minute, or none: %v", seconds, len(polls), sum, mostOfAMinute, polls)
	}
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}
