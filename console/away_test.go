package console_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store/storetest"
)

// running is a scheduler that says it is cut off, with two runs under way.
type running struct{ xxljob.Scheduler }

func (running) Stats() xxljob.Stats {
	return xxljob.Stats{Node: "node-7", Held: 1204, Due: 31, Shards: 64, LeaseLeft: 7 * time.Second, Running: map[string]int{"orders": 2, "billing": 5}}
}

func (running) Ready() error {
	return &xxljob.NotReadyError{Reasons: []string{"store-away"}, Errs: []error{errors.New("no beat for 12s: host=db.internal")}}
}

// awaySite is a console whose store fails all calls once cut is called, or delays them.
func awaySite(t *testing.T, f storetest.Fault) (x *site, cut func() (mend func())) {
	var faults *storetest.WholeFaults
	x = newSite(t, func(c *console.Config) {
		faults = storetest.WrapWhole(c.Store.(Store))
		c.Store, c.Scheduler = faults, running{c.Scheduler}
	})
	return x, func() func() {
		var list []func()
		for _, method := range storeMethods() {
			list = append(list, faults.Inject(method, f))
		}
		return func() {
			for _, remove := range list {
				remove()
			}
		}
	}
}

// TestStoreAwayKeepsTheFrame: while the store does not answer, who had a session here a moment ago sees
// the frame, since when, and what the process knows by itself, as far as it is theirs; the page asks
// again by itself. Nobody else does, and nobody does anything by it.
func TestStoreAwayKeepsTheFrame(t *testing.T) {
	x, cut := awaySite(t, storetest.Fault{Before: true, Err: errors.New("connect to host=db.internal")})
	root, viewer, gone := x.admin(), x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}}), x.user(console.User{Name: "gone"})
	job := x.job("orders", "nightly")
	root.get("overview").is(200)
	viewer.get("overview").is(200)
	gone.post("logout", nil)
	ended := x.user(console.User{Name: "ended", Admin: true})
	ended.get("overview").is(200)
	must(t, x.store.EndSession(t.Context(), "ended", x.sessionsOf("ended")[0].ID))
	ended.get("overview") // which the store now says
	mend := cut()
	for _, page := range []string{"overview", "jobs", "runs?state=bad", "jobs/" + itoa(job.ID)} {
		root.get(page).is(503).has("The store does not answer.", "host=db.internal", "It last answered this console at", "asks again",
			"node-7", "no beat for 12s", "1,204", "orders: 2", "billing: 5", "7 s", "Overview", "Changes", "Log out").lacks("If you were changing something")
		viewer.get(page).is(503).has("node-7", "orders: 2", "Overview").lacks("billing", "db.internal")
	}
	root.post("jobs/"+itoa(job.ID)+"/stop", nil).is(503).has("If you were changing something", "node-7").lacks("asks again")
	gone.get("overview").is(503).lacks("node-7", "Overview", "Log out", "It last answered")
	ended.get("overview").is(503).lacks("node-7", "Overview", "db.internal")
	x.browser().get("login").is(200).lacks("node-7")
	mend()
	root.get("jobs/" + itoa(job.ID)).is(200)
	if j := must1(x.store.Job(t.Context(), job.ID)); j.Stopped {
		t.Error("a user whom the store has not confirmed has stopped a job")
	}
}

// TestKnownSessionsEnd: who had a session an hour ago is nobody while the store does not answer.
func TestKnownSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, cut := awaySite(t, storetest.Fault{Before: true})
		root := x.admin()
		root.get("overview").is(200)
		cut()
		time.Sleep(time.Hour)
		root.get("overview").is(503).has("node-7")
		time.Sleep(time.Second)
		root.get("overview").is(503).lacks("node-7", "Overview")
	})
}

// TestSlowStore: a store that answers after nine seconds is said to be slow within the time of a page,
// with the frame and what the process knows, and not waited for without end.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, cut := awaySite(t, storetest.Fault{Delay: 9 * time.Second})
		root := x.admin()
		root.get("overview").is(200)
		mend := cut()
		begun := time.Now()
		root.get("overview").is(503).has("The store does not answer.", "node-7", "Overview", "asks again")
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the page took %v", took)
		}
		mend()
		root.get("overview").is(200).has("Overview").lacks("The store does not answer.", "asks again") // what the node says of itself it says on
	})
}

// TestPartsOfTheOverviewFailAlone: what needs attention is shown though figures, next times or mutes
// cannot be read, which is said where they would be.
func TestPartsOfTheOverviewFailAlone(t *testing.T) { onBothStores(t, testPartsOfTheOverviewFailAlone) }

func testPartsOfTheOverviewFailAlone(t *testing.T) {
	x, f := faulty(t)
	root, viewer := x.admin(), x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"*": console.Viewer}})
	x.stocked(2)
	const told = "host=db.internal"
	for _, part := range []struct {
		method, says string
	}{{"Reports", "This could not be read: " + told}, {"SearchChanges", "This could not be read: " + told}, {"Mutes", "so everything is shown: " + told}} {
		remove := f.Inject(part.method, storetest.Fault{Before: true, Err: errors.New(told)})
		root.get("overview").is(200).has(part.says, "Retry", "Running now")
		viewer.get("overview").is(200).has("Request ").lacks(told)
		remove()
	}
	root.get("overview").is(200).lacks("could not be read")
}
