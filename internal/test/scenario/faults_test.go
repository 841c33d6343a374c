package scenario_test

// Stores that fail or hang for a while.

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestStoreFails injects each kind of fault into each method for a while: one
// node, whether it knows that it is alone or not, keeps what it holds, loses
// nothing, and logs a streak once.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Beat", "Scan", "Claim", "Start", "Finish", "Jobs", "Group", "Addresses", storetest.All} {
		for kind, fault := range map[string]storetest.Fault{
			"before": {Before: true}, "after": {After: true}, "hang": {Hang: make(chan struct{})},
		} {
			for name, st := range map[string]func() xxljob.Store{
				"alone":     func() xxljob.Store { return memory.New() },
				"not alone": func() xxljob.Store { return stage.NeverAlone{Store: memory.New()} },
			} {
				t.Run(method+"/"+kind+"/"+name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { storeFails(t, st(), method, fault) })
				})
			}
		}
	}
}

func storeFails(t *testing.T, st xxljob.Store, method string, fault storetest.Fault) {
	if fault.Hang != nil {
		fault.Hang = make(chan struct{}) // of this bubble
	}
	j, log := &stage.Journal{}, &stage.LogLines{}
	n := stage.StartNode(t, st, "a", j, log.LogTo)
	time.Sleep(time.Second)
	jobs := stage.AddSeconds(t, n, 5)
	byHand, err := n.AddJob(t.Context(), xxljob.Job{Name: "by hand", Handler: "work"})
	stage.Must(t, err)
	from := time.Now()
	time.Sleep(10 * time.Second)
	before := n.Faults.Calls(method)
	remove := n.Faults.Inject(method, fault)
	time.Sleep(4 * time.Second)
	// By somebody else, so that the job has to be read.
	run, err := st.AddRun(t.Context(), byHand.ID, xxljob.Trigger{})
	stage.Must(t, err)
	time.Sleep(5 * time.Second)
	remove()
	_, beatless := st.(*memory.Store)
	if n.Faults.Calls(method) == before && !(method == "Beat" && beatless) {
		t.Errorf("%s was not called in the outage", method)
	}
	time.Sleep(20 * time.Second)
	to := time.Now()
	time.Sleep(5 * time.Second)
	stage.Stop(t, n)
	got := stage.AuditSeconds(t, st, j, jobs, from, to)
	if got != (stage.Audit{}) {
		t.Errorf("audit: %+v", got)
	}
	if run, err = st.Run(t.Context(), run.ID); err != nil || run.State != xxljob.StateSucceeded {
		t.Errorf("the run by hand: %v %v", run.State, err)
	}
	requireOneStreak(t, strings.Join(log.With(), ""))
}

var streakBegins = regexp.MustCompile(`level=ERROR msg="(.*) failed; retrying"`)

// requireOneStreak checks that no loop logged the beginning of a streak of
// errors more than once, and nothing else as an error.
func requireOneStreak(t *testing.T, log string) {
	t.Helper()
	streaks := map[string]int{}
	for _, m := range streakBegins.FindAllStringSubmatch(log, -1) {
		if streaks[m[1]]++; streaks[m[1]] == 2 {
			t.Errorf("%q was logged more than once in one outage:\n%s", m[0], log)
		}
	}
	if all, known := strings.Count(log, "level=ERROR"), len(streakBegins.FindAllString(log, -1)); all != known {
		t.Errorf("%d errors were logged, %d of them as streaks:\n%s", all, known, log)
	}
}

// TestStopWhileStoreHangs returns soon after its context has ended.
func TestStopWhileStoreHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{})
		stage.AddSeconds(t, n, 1)
		time.Sleep(3 * time.Second)
		n.Faults.Pause(true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		if err := n.Stop(ctx); err == nil {
			t.Error("Stop says that all is well")
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Stop took %v", took)
		}
		n.Faults.Resume()
		time.Sleep(time.Minute)
	})
}
