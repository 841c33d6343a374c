package scenario_test

// Releases of one program side by side: whose list of jobs applies, and what becomes of
// jobs that only one of them has.

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// release is what a release of the program says at its start.
type release struct {
	jobs []xxljob.Job
	opts xxljob.EnsureOptions
}

func releaseOf(generation int64, names ...string) release {
	r := release{opts: xxljob.EnsureOptions{Prune: true, Generation: generation}}
	for _, name := range names {
		r.jobs = append(r.jobs, xxljob.Job{Name: name, Handler: "work", Param: fmt.Sprint("v", generation), Schedule: xxljob.FixedRate(time.Minute)})
	}
	return r
}

// startRelease starts a node as a program does: it ensures its list, and starts. An option
// says otherwise.
func startRelease(t *testing.T, st xxljob.Store, name string, r release, tune ...func(*xxljob.Config)) (*stage.Node, []xxljob.Ensured) {
	t.Helper()
	n := &stage.Node{Name: name, Faults: storetest.Wrap(st)}
	cfg := xxljob.Config{App: "app", Node: name, Logger: stage.QuietLog()}
	for _, f := range tune {
		f(&cfg)
	}
	s, err := xxljob.New(n.Faults, cfg)
	stage.Must(t, err)
	n.Scheduler = s
	stage.Must(t, s.Handle("work", stage.NothingToDo))
	done, err := s.EnsureJobs(t.Context(), "", r.jobs, r.opts)
	stage.Must(t, err)
	stage.Must(t, s.Start(context.Background()))
	return n, done
}

// requireJobs checks which of the jobs that the app has are running, and what they are
// given, when all is done that nodes do at this instant.
func requireJobs(t *testing.T, st xxljob.Store, what string, want ...string) {
	t.Helper()
	synctest.Wait()
	jobs, err := st.Jobs(t.Context(), xxljob.JobFilter{App: "app", Stopped: new(false)})
	stage.Must(t, err)
	var got []string
	for _, j := range jobs {
		got = append(got, j.Key+" "+j.Param)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s: enabled are %q, want %q", what, got, want)
	}
}

func outcomes(done []xxljob.Ensured) (list []xxljob.Outcome) {
	for _, e := range done {
		list = append(list, e.Outcome)
	}
	return list
}

const pruneAfter = 10 * time.Minute

// TestRestartOfTheFormerRelease: a replica of the former release that restarts during a
// deploy stops nothing of the new one.
func TestRestartOfTheFormerRelease(t *testing.T) {
	t.Parallel()
	for _, generations := range [][2]int64{{0, 0}, {1, 2}} {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			v1, v2 := releaseOf(generations[0], "a"), releaseOf(generations[1], "a", "b")
			old, _ := startRelease(t, st, "old", v1)
			fresh, _ := startRelease(t, st, "new", v2)
			stage.Stop(t, old)
			old, _ = startRelease(t, st, "old", v1)
			for range 6 {
				time.Sleep(pruneAfter)
				b, err := st.JobByKey(t.Context(), "app", "b")
				stage.Must(t, err)
				if b.Stopped {
					t.Fatalf("the job that the new release has added is stopped: %q", b.StopReason)
				}
			}
			stage.Stop(t, old, fresh)
		})
	}
}

// TestFormerReleaseOfTheGenerationGoes: releases without a generation, of which the former
// has ensured its list last. When it is gone, the later one's applies, and prunes at once
// what it has seen to be gone all the time.
func TestFormerReleaseOfTheGenerationGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		v1, v2 := releaseOf(0, "a", "b"), releaseOf(0, "a")
		v2.jobs[0].Param = "later"
		fresh, _ := startRelease(t, st, "new", v2)
		old, _ := startRelease(t, st, "old", v1)
		time.Sleep(time.Hour)
		requireJobs(t, st, "side by side", "a v0", "b v0")
		stage.Stop(t, old)
		time.Sleep(pruneAfter - time.Minute)
		requireJobs(t, st, "shortly after", "a v0", "b v0")
		time.Sleep(4 * time.Minute)
		requireJobs(t, st, "in the end", "a later")
		stage.Stop(t, fresh)
	})
}

// TestDeploySideBySideRollback: two releases run side by side for an hour, while replicas
// of both restart; then the new one goes, and what it brought goes with it.
func TestDeploySideBySideRollback(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		v1, v2 := releaseOf(1, "both", "only one"), releaseOf(2, "both", "only two")
		a, done := startRelease(t, st, "a", v1)
		if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{xxljob.Created, xxljob.Created}) {
			t.Errorf("first release: %v", got)
		}
		b, _ := startRelease(t, st, "b", v1)
		time.Sleep(time.Minute)
		stage.Stop(t, b)
		b, done = startRelease(t, st, "b", v2)
		if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{xxljob.Changed, xxljob.Created}) {
			t.Errorf("second release: %v", got)
		}
		for i := range 12 {
			time.Sleep(5 * time.Minute)
			requireJobs(t, st, fmt.Sprint("side by side ", i), "both v2", "only one v1", "only two v2")
			again, r := &a, v1
			if i%2 == 1 {
				again, r = &b, v2
			}
			stage.Stop(t, *again)
			*again, done = startRelease(t, st, (*again).Name, r)
			want := xxljob.Superseded
			if i%2 == 1 {
				want = xxljob.Unchanged
			}
			if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{want, want}) {
				t.Errorf("restart %d of %s: %v", i, (*again).Name, got)
			}
		}

		stage.Stop(t, b) // rolled back, and the former release still lives
		time.Sleep(pruneAfter - time.Minute)
		requireJobs(t, st, "a while after the rollback", "both v2", "only one v1", "only two v2")
		time.Sleep(3 * time.Minute)
		requireJobs(t, st, "when the former list applies again", "both v1", "only one v1", "only two v2")
		time.Sleep(pruneAfter + 2*time.Minute)
		requireJobs(t, st, "at the end", "both v1", "only one v1")
		two, err := st.JobByKey(t.Context(), "app", "only two")
		stage.Must(t, err)
		if two.StopReason != xxljob.StopPruned {
			t.Errorf("the job of the release that is gone: stopped %v, %q", two.Stopped, two.StopReason)
		}

		c, done := startRelease(t, st, "c", v2) // and deployed again
		if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{xxljob.Changed, xxljob.Changed}) {
			t.Errorf("the second release again: %v", got)
		}
		requireJobs(t, st, "deployed again", "both v2", "only one v1", "only two v2")
		stage.Stop(t, a)
		time.Sleep(pruneAfter + 2*time.Minute)
		requireJobs(t, st, "the former release is gone", "both v2", "only two v2")
		stage.Stop(t, c)
	})
}

// TestRollbackAtOnce: with Rollback a lesser generation applies while the greater one
// still lives. The jobs of that go with it.
func TestRollbackAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		v1, v2 := releaseOf(1, "both"), releaseOf(2, "both", "new")
		two, _ := startRelease(t, st, "two", v2)
		v1.opts.Rollback = true
		one, done := startRelease(t, st, "one", v1)
		if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{xxljob.Changed}) {
			t.Errorf("rollback: %v", got)
		}
		time.Sleep(2 * pruneAfter)
		requireJobs(t, st, "while the new release lives", "both v1", "new v2")
		stage.Stop(t, two)
		time.Sleep(pruneAfter + 2*time.Minute)
		requireJobs(t, st, "when it is gone", "both v1")
		stage.Stop(t, one)
	})
}

// TestScaledToZero: nobody prunes the jobs of an app that no node has a list of, however
// long, nor a neighbour in the same cluster with a list of another app.
func TestScaledToZero(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, _ := startRelease(t, st, "a", releaseOf(1, "x", "y"))
		other, _ := startRelease(t, st, "other", releaseOf(9, "z"), func(c *xxljob.Config) { c.App = "neighbour" })
		time.Sleep(time.Minute)
		stage.Stop(t, a)
		away := 24 * time.Hour
		if stage.Detector {
			away = time.Hour // one neighbour is there, for whom each hour is as the one before
		}
		time.Sleep(away)
		requireJobs(t, st, "scaled to zero", "x v1", "y v1")

		a, _ = startRelease(t, st, "a", releaseOf(2, "x")) // and back, with a job less
		time.Sleep(pruneAfter - time.Minute)
		requireJobs(t, st, "scaled up", "x v2", "y v1")
		stage.Stop(t, a)
		time.Sleep(time.Hour)
		a, _ = startRelease(t, st, "a", releaseOf(2, "x"))
		time.Sleep(pruneAfter - time.Minute)
		requireJobs(t, st, "scaled up again: nobody has looked meanwhile", "x v2", "y v1")
		time.Sleep(3 * time.Minute)
		requireJobs(t, st, "throughout PruneAfter", "x v2")
		stage.Stop(t, a, other)
	})
}

// TestSupersededAndReleased: a lesser generation changes nothing and says so, for as long
// as a node with the greater one lives and PruneAfter beyond.
func TestSupersededAndReleased(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("it dies: ", dies), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				two, _ := startRelease(t, st, "two", releaseOf(2, "both", "new"))
				one, done := startRelease(t, st, "one", releaseOf(1, "both", "old"))
				if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{xxljob.Superseded, xxljob.Superseded}) {
					t.Errorf("outcomes %v", got)
				}
				if done[0].Job.ID == 0 || done[0].Job.Param != "v2" || done[1].Job.ID != 0 || done[1].Job.Key != "old" {
					t.Errorf("jobs: %+v", done)
				}
				time.Sleep(3 * pruneAfter)
				requireJobs(t, st, "superseded", "both v2", "new v2")
				if dies {
					two.Pause()
				} else {
					stage.Stop(t, two)
				}
				time.Sleep(pruneAfter - time.Minute)
				requireJobs(t, st, "shortly after", "both v2", "new v2")
				time.Sleep(3 * time.Minute)
				requireJobs(t, st, "released", "both v1", "new v2", "old v1")
				time.Sleep(pruneAfter + 2*time.Minute)
				requireJobs(t, st, "in the end", "both v1", "old v1")
				if dies {
					two.Resume()
					stage.Stop(t, two)
				}
				stage.Stop(t, one)
			})
		})
	}
}

// TestListOfAProcessThatDoesNotStart: a release that ensures its jobs and never comes up
// holds the former one off for PruneAfter, and no longer.
func TestListOfAProcessThatDoesNotStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		one, _ := startRelease(t, st, "one", releaseOf(1, "both"))
		time.Sleep(time.Hour)
		s, err := xxljob.New(st, xxljob.Config{App: "app", Node: "two", Logger: stage.QuietLog()})
		stage.Must(t, err)
		v2 := releaseOf(2, "both", "new")
		_, err = s.EnsureJobs(t.Context(), "", v2.jobs, v2.opts)
		stage.Must(t, err)
		requireJobs(t, st, "ensured", "both v2", "new v2")
		time.Sleep(2*pruneAfter + 5*time.Minute)
		requireJobs(t, st, "in the end", "both v1")
		stage.Stop(t, one)
	})
}

// TestListsOfOneGeneration: of two different lists of one generation the later call
// decides about definitions, what either names stays, and a warning has both nodes.
func TestListsOfOneGeneration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, lines := memory.New(), &lockedLines{}
		logged := func(c *xxljob.Config) { c.Logger = slog.New(slog.NewTextHandler(lines, nil)) }
		one, two := releaseOf(7, "both", "one"), releaseOf(7, "both", "two")
		two.jobs[0].Param = "later"
		a, _ := startRelease(t, st, "node-a", one, logged)
		b, done := startRelease(t, st, "node-b", two, logged)
		if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{xxljob.Changed, xxljob.Created}) {
			t.Errorf("the later: %v", got)
		}
		time.Sleep(3 * pruneAfter)
		requireJobs(t, st, "both live", "both later", "one v7", "two v7")
		warned := lines.with("different job lists of the same generation")
		for _, want := range []string{"node=node-a", "other=node-a", "node=node-b", "other=node-b"} {
			if !strings.Contains(strings.Join(warned, "\n"), want) {
				t.Errorf("no warning has %s:\n%s", want, strings.Join(warned, "\n"))
			}
		}
		if len(warned) != 2 {
			t.Errorf("%d warnings, want one of each node:\n%s", len(warned), strings.Join(warned, "\n"))
		}
		stage.Stop(t, b)
		time.Sleep(3 * pruneAfter)
		requireJobs(t, st, "one lives", "both v7", "one v7")
		stage.Stop(t, a)
	})
}

// lockedLines is a log that several nodes write to.
type lockedLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// with returns the lines that have the words.
func (l *lockedLines) with(words string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, words) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// TestGenerationsAtOnce: two releases ensure their lists at the same time, against a store
// that takes its time, for every call of one of them, or for one kind of call of the
// former. Whoever is quicker, the greater generation wins.
func TestGenerationsAtOnce(t *testing.T) {
	t.Parallel()
	type lag struct {
		method   string
		old, new time.Duration
	}
	for _, lag := range []lag{{storetest.All, 0, time.Second}, {storetest.All, time.Second, 0}, {storetest.All, time.Second, time.Second},
		{"PutList", time.Second, 0}, {"NameJobs", time.Second, 0}, {"AddJobs", time.Second, 0}, {"EditJob", time.Second, 0}} {
		t.Run(fmt.Sprint(lag), func(t *testing.T) {
			if stage.Detector && lag.method != storetest.All {
				t.Skip("one of the calls that are slow in the others: the race detector has nothing more to say of it")
			}
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				first, _ := startRelease(t, st, "first", releaseOf(0, "both"))
				stage.Stop(t, first)
				var wg sync.WaitGroup
				nodes := make([]*stage.Node, 2)
				for i, delay := range []time.Duration{lag.old, lag.new} {
					slow := storetest.Wrap(st)
					slow.Inject(lag.method, storetest.Fault{Delay: delay})
					r := releaseOf(int64(i+1), "both", fmt.Sprint("only ", i+1))
					wg.Go(func() {
						if lag.method != storetest.All {
							time.Sleep(time.Duration(i) * time.Millisecond) // the former is on its way
						}
						nodes[i], _ = startRelease(t, slow, fmt.Sprint("n", i), r)
					})
				}
				wg.Wait()
				check := func(when string) {
					both, err := st.JobByKey(t.Context(), "app", "both")
					stage.Must(t, err)
					two, err := st.JobByKey(t.Context(), "app", "only 2")
					if err != nil || both.Param != "v2" || two.Stopped {
						t.Errorf("%s: %q, the job of the later release stopped %v, %v", when, both.Param, two.Stopped, err)
					}
				}
				check("when both have started")
				time.Sleep(3 * pruneAfter)
				check("later")
				stage.Stop(t, nodes...)
			})
		})
	}
}

// TestListsOfOneGenerationAtOnce: two processes ensure different lists of one generation
// at the same time, and calls of the one whose list is put first take long. The list that
// is put last has the last word, and the other one says that it has not.
func TestListsOfOneGenerationAtOnce(t *testing.T) {
	t.Parallel()
	for _, slow := range []struct {
		method string
		last   string // whose list is put last
	}{{"NameJobs", "later"}, {"AddJobs", "later"}, {"EditJob", "later"}, {"EnsureGroup", "later"},
		{"PutList", "former"}} { // when the other one is done
		t.Run(slow.method, func(t *testing.T) {
			if stage.Detector && slow.method != "EditJob" && slow.method != "PutList" {
				t.Skip("the same two processes, which differ in where one waits: the race detector has nothing more to say of it")
			}
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				first, _ := startRelease(t, st, "first", releaseOf(0, "both"))
				stage.Stop(t, first)
				faults := storetest.Wrap(st)
				faults.Inject(slow.method, storetest.Fault{Delay: time.Second})
				var wg sync.WaitGroup
				nodes, done := map[string]*stage.Node{}, map[string][]xxljob.Ensured{}
				var mu sync.Mutex
				for name, st := range map[string]xxljob.Store{"former": faults, "later": st} {
					r := releaseOf(7, "both", "only "+name)
					for i := range r.jobs {
						r.jobs[i].Param = name
					}
					wg.Go(func() {
						if name == "later" {
							time.Sleep(time.Millisecond) // the former is on its way
						}
						n, all := startRelease(t, st, name, r)
						mu.Lock()
						defer mu.Unlock()
						nodes[name], done[name] = n, all
					})
				}
				wg.Wait()
				check := func(when string) {
					t.Helper()
					both, err := st.JobByKey(t.Context(), "app", "both")
					stage.Must(t, err)
					if both.Param != slow.last {
						t.Errorf("%s: the definition is that of %q, want that of %q, whose list was put last", when, both.Param, slow.last)
					}
				}
				check("when both have started")
				for name, all := range done {
					if gaveWay := slices.Contains(outcomes(all), xxljob.Superseded); gaveWay != (name == "former" && slow.last == "later") {
						t.Errorf("outcomes of the %s: %v", name, outcomes(all))
					}
				}
				time.Sleep(3 * pruneAfter)
				check("later")
				stage.Stop(t, nodes["former"], nodes["later"])
			})
		})
	}
}
