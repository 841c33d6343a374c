package xxljob_test

// Releases of one program side by side: whose list of jobs applies, and what becomes of
// jobs that only one of them has.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
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
func startRelease(t *testing.T, st xxljob.Store, name string, r release, tune ...func(*xxljob.Config)) (*node, []xxljob.Ensured) {
	t.Helper()
	n := &node{name: name, faults: storetest.Wrap(st)}
	cfg := xxljob.Config{App: "app", Node: name, Logger: quietLog()}
	for _, f := range tune {
		f(&cfg)
	}
	s, err := xxljob.New(n.faults, cfg)
	must(t, err)
	n.Scheduler = s
	must(t, s.Handle("work", nothingToDo))
	done, err := s.EnsureJobs(t.Context(), "", r.jobs, r.opts)
	must(t, err)
	must(t, s.Start(context.Background()))
	return n, done
}

// requireJobs checks which of the jobs that the app has are running, and what they are
// given.
func requireJobs(t *testing.T, st xxljob.Store, what string, want ...string) {
	t.Helper()
	jobs, err := st.Jobs(t.Context(), xxljob.JobFilter{App: "app", Enabled: true})
	must(t, err)
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
	for _, generations := range [][2]int64{{0, 0}, {1, 2}} {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			v1, v2 := releaseOf(generations[0], "a"), releaseOf(generations[1], "a", "b")
			old, _ := startRelease(t, st, "old", v1)
			fresh, _ := startRelease(t, st, "new", v2)
			stop(t, old)
			old, _ = startRelease(t, st, "old", v1)
			for range 6 {
				time.Sleep(pruneAfter)
				b, err := st.JobByKey(t.Context(), "app", "b")
				must(t, err)
				if b.Stopped {
					t.Fatalf("the job that the new release has added is stopped: %q", b.StopReason)
				}
			}
			stop(t, old, fresh)
		})
	}
}

// TestFormerReleaseOfTheGenerationGoes: releases without a generation, of which the former
// has ensured its list last. When it is gone, the later one's applies, and prunes at once
// what it has seen to be gone all the time.
func TestFormerReleaseOfTheGenerationGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		v1, v2 := releaseOf(0, "a", "b"), releaseOf(0, "a")
		v2.jobs[0].Param = "later"
		fresh, _ := startRelease(t, st, "new", v2)
		old, _ := startRelease(t, st, "old", v1)
		time.Sleep(time.Hour)
		requireJobs(t, st, "side by side", "a v0", "b v0")
		stop(t, old)
		time.Sleep(pruneAfter - time.Minute)
		requireJobs(t, st, "shortly after", "a v0", "b v0")
		time.Sleep(4 * time.Minute)
		requireJobs(t, st, "in the end", "a later")
		stop(t, fresh)
	})
}

// TestDeploySideBySideRollback: two releases run side by side for an hour, while replicas
// of both restart; then the new one goes, and what it brought goes with it.
func TestDeploySideBySideRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		v1, v2 := releaseOf(1, "both", "only one"), releaseOf(2, "both", "only two")
		a, done := startRelease(t, st, "a", v1)
		if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{xxljob.Created, xxljob.Created}) {
			t.Errorf("first release: %v", got)
		}
		b, _ := startRelease(t, st, "b", v1)
		time.Sleep(time.Minute)
		stop(t, b)
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
			stop(t, *again)
			*again, done = startRelease(t, st, (*again).name, r)
			want := xxljob.Superseded
			if i%2 == 1 {
				want = xxljob.Unchanged
			}
			if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{want, want}) {
				t.Errorf("restart %d of %s: %v", i, (*again).name, got)
			}
		}

		stop(t, b) // rolled back, and the former release still lives
		time.Sleep(pruneAfter - time.Minute)
		requireJobs(t, st, "a while after the rollback", "both v2", "only one v1", "only two v2")
		time.Sleep(3 * time.Minute)
		requireJobs(t, st, "when the former list applies again", "both v1", "only one v1", "only two v2")
		time.Sleep(pruneAfter + 2*time.Minute)
		requireJobs(t, st, "at the end", "both v1", "only one v1")
		two, err := st.JobByKey(t.Context(), "app", "only two")
		must(t, err)
		if two.StopReason != xxljob.StopPruned {
			t.Errorf("the job of the release that is gone: stopped %v, %q", two.Stopped, two.StopReason)
		}

		c, done := startRelease(t, st, "c", v2) // and deployed again
		if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{xxljob.Changed, xxljob.Changed}) {
			t.Errorf("the second release again: %v", got)
		}
		requireJobs(t, st, "deployed again", "both v2", "only one v1", "only two v2")
		stop(t, a)
		time.Sleep(pruneAfter + 2*time.Minute)
		requireJobs(t, st, "the former release is gone", "both v2", "only two v2")
		stop(t, c)
	})
}

// TestRollbackAtOnce: with Rollback a lesser generation applies while the greater one
// still lives. The jobs of that go with it.
func TestRollbackAtOnce(t *testing.T) {
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
		stop(t, two)
		time.Sleep(pruneAfter + 2*time.Minute)
		requireJobs(t, st, "when it is gone", "both v1")
		stop(t, one)
	})
}

// TestScaledToZero: nobody prunes the jobs of an app that no node has a list of, however
// long, nor a neighbour in the same cluster with a list of another app.
func TestScaledToZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, _ := startRelease(t, st, "a", releaseOf(1, "x", "y"))
		other, _ := startRelease(t, st, "other", releaseOf(9, "z"), func(c *xxljob.Config) { c.App = "neighbour" })
		time.Sleep(time.Minute)
		stop(t, a)
		time.Sleep(24 * time.Hour)
		requireJobs(t, st, "scaled to zero", "x v1", "y v1")

		a, _ = startRelease(t, st, "a", releaseOf(2, "x")) // and back, with a job less
		time.Sleep(pruneAfter - time.Minute)
		requireJobs(t, st, "scaled up", "x v2", "y v1")
		stop(t, a)
		time.Sleep(time.Hour)
		a, _ = startRelease(t, st, "a", releaseOf(2, "x"))
		time.Sleep(pruneAfter - time.Minute)
		requireJobs(t, st, "scaled up again: nobody has looked meanwhile", "x v2", "y v1")
		time.Sleep(3 * time.Minute)
		requireJobs(t, st, "throughout PruneAfter", "x v2")
		stop(t, a, other)
	})
}

// TestSupersededAndReleased: a lesser generation changes nothing and says so, for as long
// as a node with the greater one lives and PruneAfter beyond.
func TestSupersededAndReleased(t *testing.T) {
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
					two.pause()
				} else {
					stop(t, two)
				}
				time.Sleep(pruneAfter - time.Minute)
				requireJobs(t, st, "shortly after", "both v2", "new v2")
				time.Sleep(3 * time.Minute)
				requireJobs(t, st, "released", "both v1", "new v2", "old v1")
				time.Sleep(pruneAfter + 2*time.Minute)
				requireJobs(t, st, "in the end", "both v1", "old v1")
				if dies {
					two.resume()
					stop(t, two)
				}
				stop(t, one)
			})
		})
	}
}

// TestListOfAProcessThatDoesNotStart: a release that ensures its jobs and never comes up
// holds the former one off for PruneAfter, and no longer.
func TestListOfAProcessThatDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		one, _ := startRelease(t, st, "one", releaseOf(1, "both"))
		time.Sleep(time.Hour)
		s, err := xxljob.New(st, xxljob.Config{App: "app", Node: "two", Logger: quietLog()})
		must(t, err)
		v2 := releaseOf(2, "both", "new")
		_, err = s.EnsureJobs(t.Context(), "", v2.jobs, v2.opts)
		must(t, err)
		requireJobs(t, st, "ensured", "both v2", "new v2")
		time.Sleep(2*pruneAfter + 5*time.Minute)
		requireJobs(t, st, "in the end", "both v1")
		stop(t, one)
	})
}

// TestListsOfOneGeneration: of two different lists of one generation the later call
// decides about definitions, what either names stays, and a warning has both nodes.
func TestListsOfOneGeneration(t *testing.T) {
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
		warned := lines.with("lists of one generation differ")
		for _, want := range []string{"node=node-a", "other=node-a", "node=node-b", "other=node-b"} {
			if !strings.Contains(strings.Join(warned, "\n"), want) {
				t.Errorf("no warning has %s:\n%s", want, strings.Join(warned, "\n"))
			}
		}
		if len(warned) != 2 {
			t.Errorf("%d warnings, want one of each node:\n%s", len(warned), strings.Join(warned, "\n"))
		}
		stop(t, b)
		time.Sleep(3 * pruneAfter)
		requireJobs(t, st, "one lives", "both v7", "one v7")
		stop(t, a)
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
	type lag struct {
		method   string
		old, new time.Duration
	}
	for _, lag := range []lag{{storetest.All, 0, time.Second}, {storetest.All, time.Second, 0}, {storetest.All, time.Second, time.Second},
		{"PutList", time.Second, 0}, {"NameJobs", time.Second, 0}, {"AddJobs", time.Second, 0}, {"EditJob", time.Second, 0}} {
		t.Run(fmt.Sprint(lag), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				first, _ := startRelease(t, st, "first", releaseOf(0, "both"))
				stop(t, first)
				var wg sync.WaitGroup
				nodes := make([]*node, 2)
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
					must(t, err)
					two, err := st.JobByKey(t.Context(), "app", "only 2")
					if err != nil || both.Param != "v2" || two.Stopped {
						t.Errorf("%s: %q, the job of the later release stopped %v, %v", when, both.Param, two.Stopped, err)
					}
				}
				check("when both have started")
				time.Sleep(3 * pruneAfter)
				check("later")
				stop(t, nodes...)
			})
		})
	}
}

// TestListsOfOneGenerationAtOnce: two processes ensure different lists of one generation
// at the same time, and calls of the one whose list is put first take long. The list that
// is put last has the last word, and the other one says that it has not.
func TestListsOfOneGenerationAtOnce(t *testing.T) {
	for _, slow := range []struct {
		method string
		last   string // whose list is put last
	}{{"NameJobs", "later"}, {"AddJobs", "later"}, {"EditJob", "later"}, {"EnsureGroup", "later"},
		{"PutList", "former"}} { // when the other one is done
		t.Run(slow.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				first, _ := startRelease(t, st, "first", releaseOf(0, "both"))
				stop(t, first)
				faults := storetest.Wrap(st)
				faults.Inject(slow.method, storetest.Fault{Delay: time.Second})
				var wg sync.WaitGroup
				nodes, done := map[string]*node{}, map[string][]xxljob.Ensured{}
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
					must(t, err)
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
				stop(t, nodes["former"], nodes["later"])
			})
		})
	}
}

// TestListAtTheLastMoment: a list comes after a node has seen that it may prune a job, or
// that it may apply its own list again, and before the store has heard of it.
func TestListAtTheLastMoment(t *testing.T) {
	const late = 4 * time.Second
	await := func(t *testing.T, n *node, method string) {
		t.Helper()
		for was, i := n.faults.Calls(method), 0; n.faults.Calls(method) == was; i++ {
			if i > 3600 {
				t.Fatalf("no call of %s", method)
			}
			time.Sleep(time.Second)
		}
	}
	t.Run("prune", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			old, _ := startRelease(t, st, "old", releaseOf(1, "x", "y"))
			stop(t, old)
			a, _ := startRelease(t, st, "a", releaseOf(1, "x"))
			a.faults.Inject("EditJob", storetest.Fault{Delay: late})
			await(t, a, "EditJob")
			b, _ := startRelease(t, st, "b", releaseOf(1, "x", "y"))
			time.Sleep(time.Hour)
			y, err := st.JobByKey(t.Context(), "app", "y")
			must(t, err)
			if y.Stopped || y.Version != 1 {
				t.Errorf("the job of the list that came between: stopped %v, version %d", y.Stopped, y.Version)
			}
			stop(t, a, b)
		})
	})
	t.Run("apply again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New()
			two, _ := startRelease(t, st, "two", releaseOf(2, "x"))
			one, _ := startRelease(t, st, "one", releaseOf(1, "x"))
			time.Sleep(time.Minute)
			stop(t, two)
			one.faults.Inject("PutList", storetest.Fault{Delay: late})
			await(t, one, "PutList")
			three, _ := startRelease(t, st, "three", releaseOf(3, "x"))
			time.Sleep(time.Hour)
			requireJobs(t, st, "with a third release", "x v3")
			stop(t, one, three)
		})
	})
}

// TestApplyAgainAtAStoreThatHangs: while a list is applied again, the store does not answer
// one call, of whatever kind. It is given up, and the whole list applies all the same; a
// call of EnsureJobs meanwhile waits for no longer than a call of the store may take.
func TestApplyAgainAtAStoreThatHangs(t *testing.T) {
	for _, method := range []string{"PutList", "NameJobs", "EditJob", "EnsureGroup", "AddJobs"} {
		for _, f := range []storetest.Fault{{Delay: 24 * time.Hour, Calls: 1}, {Late: 24 * time.Hour, Calls: 1}} {
			t.Run(fmt.Sprint(method, " after ", f.Late > 0), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := memory.New()
					two, _ := startRelease(t, st, "two", releaseOf(2, "x", "y"))
					one, _ := startRelease(t, st, "one", releaseOf(1, "x", "y", "z"))
					time.Sleep(time.Minute)
					stop(t, two)
					one.faults.Inject(method, f)
					for calls := one.faults.Calls(method); one.faults.Calls(method) == calls; time.Sleep(time.Second) {
					}
					asked := time.Now()
					_, err := one.EnsureJobs(t.Context(), "other", nil, xxljob.EnsureOptions{})
					must(t, err)
					if waited := time.Since(asked); waited > 10*time.Second {
						t.Errorf("EnsureJobs waited %v", waited)
					}
					time.Sleep(time.Minute)
					requireJobs(t, st, "applied again", "x v1", "y v1", "z v1")
					stop(t, one)
				})
			})
		}
	}
}

// TestEnsureJobsIsFinished: where the store fails in the middle of EnsureJobs, which says
// so, a started node applies the rest of its list by itself.
func TestEnsureJobsIsFinished(t *testing.T) {
	for _, method := range []string{"NameJobs", "EditJob", "EnsureGroup", "AddJobs"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				n, _ := startRelease(t, st, "n", releaseOf(1, "x", "y"))
				time.Sleep(time.Minute)
				n.faults.Inject(method, storetest.Fault{Before: true, Calls: 1})
				r := releaseOf(2, "x", "y", "z")
				if _, err := n.EnsureJobs(t.Context(), "", r.jobs, r.opts); !errors.Is(err, storetest.ErrInjected) {
					t.Errorf("EnsureJobs: %v", err)
				}
				time.Sleep(time.Minute)
				requireJobs(t, st, "a minute later", "x v2", "y v2", "z v2")
				calls := n.faults.Calls("NameJobs")
				time.Sleep(time.Hour)
				if more := n.faults.Calls("NameJobs") - calls; more > 0 {
					t.Errorf("%d calls of NameJobs after that", more)
				}
				stop(t, n)
			})
		})
	}
}

// TestPruneNeedsLooks: what a node has seen before its looks failed for a while counts for
// nothing: somebody may have named the job meanwhile.
func TestPruneNeedsLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		old, _ := startRelease(t, st, "old", releaseOf(1, "x", "y"))
		stop(t, old)
		a, _ := startRelease(t, st, "a", releaseOf(1, "x"))
		time.Sleep(pruneAfter / 2)
		a.faults.Inject("Lists", storetest.Fault{Before: true})
		time.Sleep(time.Hour)
		a.faults.Clear()
		time.Sleep(pruneAfter - time.Minute)
		requireJobs(t, st, "shortly after it looks again", "x v1", "y v1")
		time.Sleep(3 * time.Minute)
		requireJobs(t, st, "after PruneAfter of looks", "x v1")
		stop(t, a)
	})
}

// TestListComesBetween: a list that comes while jobs of it are about to be pruned wins:
// also when its node has ensured it before it starts. Meanwhile it applies, and no other
// list of its generation prunes; one that is ensured once more does, and what it has
// pruned by then is brought back.
func TestListComesBetween(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("the other is ensured again: ", again), func(t *testing.T) { listComesBetween(t, again) })
	}
}

func listComesBetween(t *testing.T, again bool) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, _ := startRelease(t, st, "a", releaseOf(0, "x", "y"))
		_, err := a.EnsureJobs(t.Context(), "", releaseOf(0, "x").jobs, xxljob.EnsureOptions{Prune: true})
		must(t, err)
		time.Sleep(pruneAfter - time.Second)
		requireJobs(t, st, "before", "x v0", "y v0")
		n := &node{name: "b", faults: storetest.Wrap(st)}
		s, err := xxljob.New(n.faults, xxljob.Config{App: "app", Node: "b", Logger: quietLog()})
		must(t, err)
		n.Scheduler = s
		r := releaseOf(0, "x", "y")
		_, err = s.EnsureJobs(t.Context(), "", r.jobs, r.opts)
		must(t, err)
		meanwhile := []string{"x v0", "y v0"}
		if again {
			_, err := a.EnsureJobs(t.Context(), "", releaseOf(0, "x").jobs, xxljob.EnsureOptions{Prune: true})
			must(t, err)
			meanwhile = meanwhile[:1]
		}
		time.Sleep(2 * time.Minute) // it is slow to start
		requireJobs(t, st, "meanwhile", meanwhile...)
		must(t, s.Start(context.Background()))
		time.Sleep(time.Second)
		requireJobs(t, st, "started", "x v0", "y v0")
		time.Sleep(3 * pruneAfter)
		requireJobs(t, st, "later", "x v0", "y v0")
		stop(t, a, n)
	})
}

// TestBuriedNodeIsBack: a node that was paused for so long that the others have buried it
// puts its lists again.
func TestBuriedNodeIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, _ := startRelease(t, st, "a", releaseOf(0, "x", "y"))
		b, _ := startRelease(t, st, "b", releaseOf(0, "x"))
		time.Sleep(time.Minute)
		a.pause()
		time.Sleep(5 * time.Minute)
		a.resume()
		time.Sleep(time.Hour)
		requireJobs(t, st, "back", "x v0", "y v0")
		a.pause()
		time.Sleep(20 * time.Minute)
		requireJobs(t, st, "away for long", "x v0")
		a.resume()
		time.Sleep(2 * time.Minute)
		requireJobs(t, st, "back again", "x v0", "y v0")
		stop(t, a, b)
	})
}

// TestPruneLeavesOthersAlone: jobs that no list has named are not pruned.
func TestPruneLeavesOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, _ := startRelease(t, st, "a", releaseOf(1, "x"))
		_, err := a.EnsureJob(t.Context(), xxljob.Job{Name: "single", Handler: "work", Schedule: xxljob.FixedRate(time.Minute)})
		must(t, err)
		_, err = a.AddJob(t.Context(), xxljob.Job{Name: "added", Handler: "work", Schedule: xxljob.FixedRate(time.Minute)})
		must(t, err)
		time.Sleep(3 * pruneAfter)
		requireJobs(t, st, "in the end", "added ", "single ", "x v1")
		stop(t, a)
	})
}

// TestManyJobsWithoutHandlers: a list of jobs that nobody has handlers for is one
// warning, and asks the store about addresses once.
func TestManyJobsWithoutHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := &lockedLines{}
		faults := storetest.Wrap(memory.New())
		s, err := xxljob.New(faults, xxljob.Config{App: "app", Logger: slog.New(slog.NewTextHandler(lines, nil))})
		must(t, err)
		var jobs []xxljob.Job
		for i := range 2000 {
			jobs = append(jobs, xxljob.Job{Name: fmt.Sprint("job ", i), Handler: fmt.Sprint("handler", i%100)})
		}
		done, err := s.EnsureJobs(t.Context(), "", jobs, xxljob.EnsureOptions{})
		must(t, err)
		if len(done) != len(jobs) || done[1999].Outcome != xxljob.Created || done[1999].Job.Name != "job 1999" {
			t.Errorf("%d results", len(done))
		}
		warned := lines.with("level=WARN")
		if len(warned) != 1 || !strings.Contains(warned[0], "jobs=2000") || !strings.Contains(warned[0], "handlers=100") {
			t.Errorf("%d warnings: %s", len(warned), strings.Join(warned, "\n"))
		}
		if calls := faults.Calls(storetest.All); calls > 20 {
			t.Errorf("%d calls of the store", calls)
		}
		must(t, s.Stop(t.Context()))
	})
}

// TestEnsureJobsUnchangedWritesNothing: the same list again reads, and writes nothing.
func TestEnsureJobsUnchangedWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, _ := startRelease(t, st, "a", releaseOf(1, "x", "y"))
		before := contentsOf(t, st)
		done, err := a.EnsureJobs(t.Context(), "", releaseOf(1, "y", "x").jobs, xxljob.EnsureOptions{Prune: true, Generation: 1})
		must(t, err)
		if got := outcomes(done); !slices.Equal(got, []xxljob.Outcome{xxljob.Unchanged, xxljob.Unchanged}) || done[0].Job.Key != "y" {
			t.Errorf("%v, first %s", got, done[0].Job.Key)
		}
		requireSame(t, "the same list in another order", before, contentsOf(t, st))
		stop(t, a)
	})
}

// TestEnsureJobsWithFaultyStore: an error of the store is returned, and the same call
// again comes to its end.
func TestEnsureJobsWithFaultyStore(t *testing.T) {
	for _, method := range []string{"PutList", "NameJobs", "AddJobs", "EnsureGroup"} {
		for _, f := range []storetest.Fault{{Before: true, Calls: 1}, {After: true, Calls: 1}} {
			synctest.Test(t, func(t *testing.T) {
				faults := storetest.Wrap(memory.New())
				s, err := xxljob.New(faults, xxljob.Config{App: "app", Logger: quietLog()})
				must(t, err)
				r := releaseOf(3, "x", "y")
				faults.Inject(method, f)
				if _, err := s.EnsureJobs(t.Context(), "", r.jobs, r.opts); !errors.Is(err, storetest.ErrInjected) {
					t.Errorf("%s: %v", method, err)
				}
				done, err := s.EnsureJobs(t.Context(), "", r.jobs, r.opts)
				if err != nil || len(done) != 2 || done[1].Job.ID == 0 {
					t.Errorf("%s, again: %+v, %v", method, done, err)
				}
				must(t, s.Stop(t.Context()))
			})
		}
	}
}

// TestAListThatIsEnsuredAgain: a host that ensures its list again and again, and not at its
// start only, has what is gone from it pruned all the same.
func TestAListThatIsEnsuredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n, _ := startRelease(t, st, "n", releaseOf(1, "a", "b"))
		time.Sleep(time.Minute)
		v2 := releaseOf(2, "a")
		for range 6 {
			_, err := n.EnsureJobs(t.Context(), "", v2.jobs, v2.opts)
			must(t, err)
			time.Sleep(5 * time.Minute)
		}
		requireJobs(t, st, "after half an hour", "a v2")
		stop(t, n)
	})
}
