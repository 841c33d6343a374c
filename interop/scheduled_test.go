package interop_test

import (
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestScheduled has every kind of peer work for the scheduler: what is recorded of
// each run has to be right, and each handler started as often as it should.
func TestScheduled(t *testing.T) {
	t.Parallel()
	all := kinds(t)
	newest := javaVersions(t)
	onPostgres := newest[len(newest)-1]
	onPostgres.name += " on Postgres"
	all = append(all, onPostgres)
	sums := make([]summary, len(all))
	t.Cleanup(func() {
		for i, k := range all {
			t.Log(sums[i].of(k, len(performances)))
		}
	})
	for i, k := range all {
		sum := &sums[i]
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			var store xxljob.Store = memory.New()
			if k.name == onPostgres.name {
				store = inPostgres(t)
			}
			s := newStage(t, k, store, 2)
			for _, p := range performances {
				sum.run(t, p.name, func(t *testing.T) {
					p.run(t, s)
					s.counted(t)
				})
			}
		})
	}
}

func inPostgres(t *testing.T) xxljob.Store {
	t.Helper()
	schema := pgtest.Schema(t)
	store, err := postgres.New(t.Context(), pgtest.Pool(t), postgres.Config{Schema: schema, AutoMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// performances are in the order in which they run: the last ones end the peers.
var performances = []struct {
	name string
	run  func(t *testing.T, s *stage)
}{
	{"registered", isRegistered},
	{"parameters and results", echoes},
	{"empty parameters", quotes},
	{"unknown handler", hasNoHandler},
	{"beat", failsOver},
	{"idle beat", busiesOver},
	{"broadcast", broadcasts},
	{"jobs run in parallel", runsBeside},
	{"serial", runsBehind},
	{"begin in order", beginInOrder},
	{"discard later", discards},
	{"cover early", covers},
	{"the first of two is slow", firstIsSlow},
	{"timeout", timesOut},
	{"kill running", killsRunning},
	{"kill queued", killsQueued},
	{"failing handler", fails},
	{"rolling log", follows},
	{"caught up in order", caughtUpInOrder}, // before longer outages: the next one waits for beats
	{"scheduler away for 20 s", hostAway},
	{"another scheduler takes over", takesOver},
	{"killed and restarted", killedAndRestarted},
	{"leaves", leave},
}

func isRegistered(t *testing.T, s *stage) {
	regs := s.registrations(t)
	if len(regs) != 2 {
		t.Fatalf("registered are %+v, want two", regs)
	}
	boots := map[string]bool{}
	for i, r := range regs {
		if r.Address != s.peers[i].registers() {
			t.Errorf("%d: %q is registered, want %q", i, r.Address, s.peers[i].registers())
		}
		boots[r.BootID] = true
	}
	// Only executors of ours tell that they are another process.
	if s.once != (len(boots) == 2 && !boots[""]) {
		t.Errorf("boot ids are %v", boots)
	}
	if group, err := s.store.Group(t.Context(), theApp); err == nil && group.Manual {
		t.Errorf("the group is %+v, want one whose addresses are registered", group)
	}
}

func echoes(t *testing.T, s *stage) {
	for _, param := range []string{awkward, "", long} {
		s.wellEnded(t, s.trigger(t, s.job(t, "echo", param), 1), param)
	}
}

// quotes has no handler see null, whoever has said that there is no parameter.
func quotes(t *testing.T, s *stage) {
	job := s.job(t, "quote", "")
	s.wellEnded(t, s.trigger(t, job, 1), `""`)
	s.wellEnded(t, s.trigger(t, job, 1, "x"), `"x"`)
	s.wellEnded(t, s.trigger(t, s.job(t, "quote", "own"), 1, ""), `""`)
}

func hasNoHandler(t *testing.T, s *stage) {
	s.turnedAway(t, s.trigger(t, s.job(t, "nobody", ""), 0), xxljob.StateRefused, s.noHandler)
}
