package router

import (
	"strings"
	"testing"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// TestRouteWords: what is said of a route is made once for runs of the same kind that go by the
// same strategies to the same addresses, and anew for any other.
func TestRouteWords(t *testing.T) {
	job := func(by, policy string) *store.Job { return &store.Job{Route: by, Block: policy} }
	plain := job(route.Round, block.SerialExecution)
	here, there := []string{"http://a/", "http://b/"}, []string{"http://b/", "http://c/"}
	var w RouteWords
	for i, c := range []struct {
		kind  store.TriggerType
		job   *store.Job
		addrs []string
		want  string
	}{
		{store.TriggerCron, plain, here, "CRON ROUND SERIAL_EXECUTION http://a/, http://b/"},
		{store.TriggerCron, job(route.Round, block.SerialExecution), here, "CRON ROUND SERIAL_EXECUTION http://a/, http://b/"},
		{store.TriggerManual, plain, here, "MANUAL ROUND SERIAL_EXECUTION http://a/, http://b/"},
		{store.TriggerManual, job(route.First, block.SerialExecution), here, "MANUAL FIRST SERIAL_EXECUTION http://a/, http://b/"},
		{store.TriggerManual, job(route.First, block.DiscardLater), here, "MANUAL FIRST DISCARD_LATER http://a/, http://b/"},
		{store.TriggerManual, job(route.First, block.DiscardLater), there, "MANUAL FIRST DISCARD_LATER http://b/, http://c/"},
		{store.TriggerManual, job(route.First, block.DiscardLater), there[:1], "MANUAL FIRST DISCARD_LATER http://b/"},
		{store.TriggerManual, job(route.First, block.DiscardLater), nil, "MANUAL FIRST DISCARD_LATER "},
	} {
		got := strings.NewReplacer("type: ", "", "\nnode: n\nroute:", "", ", block:", "", "\naddresses:", "").Replace(w.Of(c.kind, "n", c.job, c.addrs))
		if got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
	w.Of(store.TriggerCron, "n", plain, here)
	if n := testing.AllocsPerRun(10, func() { w.Of(store.TriggerCron, "n", plain, here) }); n != 0 {
		t.Errorf("the same again is made anew: %v objects", n)
	}
}
