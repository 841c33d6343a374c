package interop_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
)

// impatient are bounds that do not keep the tests waiting: Dead is longer than any of the
// peers is between two beats.
func impatient() xxljob.ClusterConfig {
	return xxljob.ClusterConfig{Dead: 45 * time.Second, LostAfter: 15 * time.Second}
}

// slack is what is granted beside a bound, on a machine that does much else.
const slack = 15 * time.Second

// tenSeconds is the parameter of handlers that are killed when half of that is over.
const tenSeconds = "10000"

// TestLost kills peers that have accepted runs: first one that is restarted at its address,
// then one that is not.
func TestLost(t *testing.T) {
	t.Parallel()
	for _, k := range kinds(t) {
		if !slices.Contains([]string{"java-2.5.0", "go", "python", "ours"}, k.name) {
			continue // one Java of several that do the same
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := newStageWithin(t, k, memory.New(), 2, impatient())
			t.Run("restarted", func(t *testing.T) { lostAndRestarted(t, s) })
			t.Run("gone", func(t *testing.T) { lostForGood(t, s) })
		})
	}
}

func retried(n int) func(*xxljob.Job) { return func(j *xxljob.Job) { j.Retries = n } }
func rerun(j *xxljob.Job)             { j.OnLost = xxljob.OnLostRerun }

// halfway waits until a handler that takes ten seconds has taken five.
func (s *stage) halfway(t *testing.T, p *instance, id int64) {
	t.Helper()
	p.hasStarted(t, id)
	began := time.UnixMilli(p.entries(t, id, "start")[0].at)
	time.Sleep(time.Until(began.Add(5 * time.Second)))
}

// becomes waits until the chain of a run is as said, and returns its runs.
func (s *stage) becomes(t *testing.T, what string, patience time.Duration, id int64, want ...string) []xxljob.Run {
	t.Helper()
	var runs []xxljob.Run
	var got []string
	deadline := time.Now().Add(patience)
	for ; ; time.Sleep(200 * time.Millisecond) {
		tree, err := s.store.Tree(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		runs, got = tree, nil
		for _, r := range runs {
			got = append(got, fmt.Sprintf("%d %v", r.Attempt, r.State))
		}
		if slices.Equal(got, want) {
			return runs
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %q, want %q%s\n%s", what, got, want, &stalls, runs[0].TriggerMsg)
		}
	}
}

// lostAndRestarted kills the first peer with a result that it could not report and with a
// handler half way through, and starts it anew at once. Where the result was kept, it counts;
// the other run is lost, and begins again.
func lostAndRestarted(t *testing.T, s *stage) {
	p := s.peers[0]
	half := s.begun(t, s.job(t, "sleep", tenSeconds, rerun))
	kept := s.begun(t, s.job(t, "sleep2", meanwhile, rerun))
	s.isDispatched(t, half)
	s.isDispatched(t, kept)
	s.down()
	p.hasPhase(t, kept, "end")
	s.isKept(t, p)
	s.halfway(t, p, half)
	p.process.kill()
	s.up()
	p.launch(t, s.addr)
	s.there(t, p)

	bounds := impatient()
	bound := bounds.Dead + bounds.LostAfter
	if s.name == ourKind().name {
		bound = bounds.LostAfter // behind the registration of the new process
	}
	began := time.Now()
	again := s.becomes(t, "interrupted", bound+slack, half, "0 lost", "1 dispatched")
	t.Logf("lost %v after the restart: %q", time.Since(began).Round(time.Second), again[0].HandleMsg)
	s.rerunOnce(t, again)
	if s.keeps == "" {
		s.rerunOnce(t, s.becomes(t, "its result was lost", bound+slack, kept, "0 lost", "1 succeeded"))
		return
	}
	s.becomes(t, "its result was kept", redelivery, kept, "0 succeeded")
	if n := len(p.entries(t, kept, "start")); n != 1 {
		t.Errorf("the handler of the run whose result was kept was started %d times", n)
	}
}

// rerunOnce checks the second of two runs of a chain: it ends well, and was run again, and
// not tried again.
func (s *stage) rerunOnce(t *testing.T, runs []xxljob.Run) {
	t.Helper()
	second := s.ended(t, runs[1].ID)
	if second.State != xxljob.StateSucceeded || second.Type != xxljob.TriggerRetry || second.Reruns != 1 {
		t.Errorf("run %d is %v of type %v, run again %d times", second.ID, second.State, second.Type, second.Reruns)
	}
	if n := len(s.at(t, second).entries(t, second.ID, "start")); n != 1 {
		t.Errorf("the handler of run %d was started %d times", second.ID, n)
	}
}

// lostForGood kills the first peer with three handlers half way through. Their runs are lost
// within the bounds: one ends with that, one is tried again elsewhere, one run again.
func lostForGood(t *testing.T, s *stage) {
	p := s.peers[0]
	again := s.begun(t, s.job(t, "sleep", tenSeconds, rerun, routed(route.Failover)))
	tried := s.begun(t, s.job(t, "sleep2", tenSeconds, retried(1), routed(route.Failover)))
	given := s.begun(t, s.job(t, "lines", "40 500", routed(route.Failover)))
	for _, id := range []int64{again, tried, given} {
		s.isDispatched(t, id)
	}
	s.halfway(t, p, again)
	p.process.kill()

	killed, bounds := time.Now(), impatient()
	bound := bounds.Dead + bounds.LostAfter + slack
	for _, c := range []struct {
		id   int64
		want []string
	}{{given, []string{"0 lost"}}, {tried, []string{"0 lost", "1 dispatched"}}, {again, []string{"0 lost", "1 dispatched"}}} {
		runs := s.becomes(t, "killed", time.Until(killed.Add(bound)), c.id, c.want...)
		t.Logf("%q: lost %v after the kill: %q", c.want, runs[0].Ended.Sub(killed).Round(time.Second), runs[0].HandleMsg)
		if len(runs) > 1 && s.at(t, runs[1]) != s.peers[1] {
			t.Errorf("run %d was sent to %s, which nobody is at", runs[1].ID, runs[1].Address)
		}
	}
	s.becomes(t, "tried again", time.Minute, tried, "0 lost", "1 succeeded")
	s.becomes(t, "run again", time.Minute, again, "0 lost", "1 succeeded")
	s.becomes(t, "without retries", 0, given, "0 lost")
}
