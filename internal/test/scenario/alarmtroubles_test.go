package scenario_test

// Troubles of an app that nodes of another service see.

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// eventsOf is how often each job was named in the events of messages of a cause.
func eventsOf(messages []alarm.Message, cause alarm.Cause, jobs ...string) map[string]int {
	of := map[string]int{}
	for _, m := range messages {
		for _, e := range m.Events {
			for _, job := range jobs {
				if e.Cause == cause && strings.Contains(e.Text, "app/"+job) {
					of[job]++
				}
			}
		}
	}
	return of
}

// lacking are jobs of an app with a strategy that nobody has yet, in shards of all nodes.
func lacking(t *testing.T, n *stage.Node, jobs int) (keys []string) {
	t.Helper()
	for i := range jobs {
		key := fmt.Sprint("j", i)
		_, err := n.AddJob(t.Context(), xxljob.Job{App: "app", Key: key, Name: key, Handler: "work", Route: "CANARY", Schedule: xxljob.FixedRate(10 * time.Second), Misfire: xxljob.MisfireFireOnceNow})
		stage.Must(t, err)
		keys = append(keys, key)
	}
	return keys
}

// lastAddress is a strategy.
type lastAddress struct{}

func (lastAddress) Route(_ context.Context, _ int64, addrs []string) ([]string, error) {
	return addrs[len(addrs)-1:], nil
}

func knows(c *xxljob.Config) { c.Routers = map[string]xxljob.Router{"CANARY": lastAddress{}} }

// TestTroublesThatAnotherServiceSees: each of them is told once as it begins and once when it is over, by
// the rule of the app that it is about, whichever service's node has seen it, and by no other's; shards that
// move are no end.
func TestTroublesThatAnotherServiceSees(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, own, others := memory.New(), &sink{began: time.Now()}, &sink{began: time.Now()}
		author := stage.StartNode(t, st, "author", &stage.Journal{}, ofApp("app", own), knows)
		var seen []*stage.Node
		for _, name := range []string{"b1", "b2", "b3"} {
			seen = append(seen, stage.StartNode(t, st, name, &stage.Journal{}, ofApp("other", others)))
		}
		time.Sleep(time.Minute)
		keys := lacking(t, author, 6)
		stage.Stop(t, author)
		a := stage.StartNode(t, st, "a", &stage.Journal{}, ofApp("app", own))
		time.Sleep(20 * time.Minute)
		for _, key := range keys {
			if n := eventsOf(own.messages(), alarm.Trouble, keys...)[key]; n != 1 {
				t.Errorf("that the trouble of %s has begun was told %d times: %+v", key, n, own.messages())
			}
		}
		fromOthers := 0
		for _, m := range own.messages() {
			for _, e := range m.Events {
				fromOthers += stage.One(m.App == "app" && m.Trouble == string(xxljob.TroubleUnknownRouter) && m.Node == "a" && strings.Contains(e.Text, "seen by node b"))
			}
		}
		if fromOthers == 0 {
			t.Errorf("told nothing that the nodes of the other service have seen: %+v", own.messages())
		}
		late := stage.StartNode(t, st, "b4", &stage.Journal{}, ofApp("other", others)) // shards move, and no trouble is over
		time.Sleep(20 * time.Minute)
		back := stage.StartNode(t, st, "back", &stage.Journal{}, ofApp("app", own), knows)
		time.Sleep(20 * time.Minute)
		for _, key := range keys {
			if begun, over := eventsOf(own.messages(), alarm.Trouble, keys...)[key], eventsOf(own.messages(), alarm.TroubleOver, keys...)[key]; begun != 1 || over != 1 {
				t.Errorf("the trouble of %s has begun %d times and was over %d times: %+v", key, begun, over, own.messages())
			}
		}
		if all := others.messages(); len(all) != 0 {
			t.Errorf("the other service was told %+v", all)
		}
		requireNoAlarms(t, st)
		stage.Stop(t, append(seen, a, late, back)...)
	})
}

// TestTroublesOfAnAppThatIsDown: the only node of an app dies with something due, and comes back after an
// hour. A rule of a third service tells of that as it begins and when it is over, once each; the app's own
// says once that it was so. No note is left.
func TestTroublesOfAnAppThatIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, own, ops := memory.New(), &sink{began: time.Now()}, &sink{began: time.Now()}
		down := stage.StartNode(t, st, "down", &stage.Journal{}, ofApp("app", own))
		nodes := []*stage.Node{stage.StartNode(t, st, "other", &stage.Journal{}, func(c *xxljob.Config) { c.App = "other" }), stage.StartNode(t, st, "ops", &stage.Journal{}, func(c *xxljob.Config) {
			c.App, c.Alarms = "ops", []alarm.Rule{{Name: "apps", To: ops, Apps: []string{"app"}, Causes: []alarm.Cause{alarm.Trouble}}}
		})}
		for i := range 4 {
			key := fmt.Sprint("j", i)
			_, err := down.AddJob(t.Context(), xxljob.Job{Key: key, Name: key, Handler: "work", Schedule: xxljob.FixedRate(time.Minute), Misfire: xxljob.MisfireFireOnceNow})
			stage.Must(t, err)
		}
		time.Sleep(150 * time.Second) // between two instants: a run that it has begun is lost with it
		down.Pause()
		time.Sleep(time.Hour)
		own.require(t, "while it is down")
		requireCauses(t, "ops, while it is down", ops, "trouble")
		back := stage.StartNode(t, st, "back", &stage.Journal{}, ofApp("app", own))
		time.Sleep(30 * time.Minute)
		requireCauses(t, "ops", ops, "trouble", "trouble-over")
		requireCauses(t, "the app", own, "trouble-over")
		requireNoAlarms(t, st)
		down.Resume()
		stage.StopShort(down)
		stage.Stop(t, append(nodes, back)...)
	})
}

// TestARuleThatComesWhileATroubleLasts: a node whose rule is kept when a trouble has been told to others
// long before tells of it, once, and so does one that comes after that, by the rule's causes and apps; none
// of what is muted before the mute is over. Others hear no more of it, and all of its end.
func TestARuleThatComesWhileATroubleLasts(t *testing.T) {
	t.Parallel()
	for _, muted := range []bool{false, true} {
		t.Run(fmt.Sprint("muted ", muted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				first, second, third, own, others := &sink{began: time.Now()}, &sink{began: time.Now()}, &sink{began: time.Now()}, &sink{began: time.Now()}, &sink{began: time.Now()}
				node := func(name string, s *sink, apps ...string) *stage.Node {
					return stage.StartNode(t, st, name, &stage.Journal{}, func(c *xxljob.Config) {
						c.App, c.Alarms = name, []alarm.Rule{{Name: "of-" + name, To: s, Apps: apps, Causes: []alarm.Cause{alarm.Trouble}}}
					})
				}
				nodes := []*stage.Node{node("one", first, "far"), stage.StartNode(t, st, "sees", &stage.Journal{}, func(c *xxljob.Config) { c.App = "sees" }), node("own", own)}
				_, err := nodes[0].AddJob(t.Context(), xxljob.Job{App: "far", Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(10 * time.Second), OnNoExecutor: xxljob.OnNoExecutorWait, Misfire: xxljob.MisfireFireOnceNow})
				stage.Must(t, err)
				time.Sleep(time.Hour)
				requireCauses(t, "the first, as it lasts", first, "trouble")
				requireCauses(t, "one of all apps", own, "trouble")
				if muted {
					_, err := st.PutMute(t.Context(), store.Mute{Key: "no-executor/far", App: "far", Until: time.Now().Add(time.Hour)})
					stage.Must(t, err)
				}
				nodes = append(nodes, node("two", second, "far"), node("else", others, "near"))
				time.Sleep(30 * time.Minute)
				if muted {
					requireCauses(t, "the second, while it is muted", second)
					time.Sleep(40 * time.Minute)
				}
				requireCauses(t, "the second", second, "trouble")
				if all := second.messages(); len(all) > 0 && !strings.Contains(all[0].Events[0].Text, "since ") && all[0].Node != "two" {
					t.Errorf("told %+v", all)
				}
				nodes = append(nodes, node("three", third, "far"))
				time.Sleep(2 * time.Hour)
				requireCauses(t, "the third", third, "trouble")
				far := stage.StartNode(t, st, "far", &stage.Journal{}, func(c *xxljob.Config) { c.App = "far" })
				time.Sleep(20 * time.Minute)
				for name, s := range map[string]*sink{"the first": first, "the second": second, "the third": third, "one of all apps": own} {
					requireCauses(t, name, s, "trouble", "trouble-over")
				}
				requireCauses(t, "one of another app", others)
				requireNoAlarms(t, st)
				stage.Stop(t, append(nodes, far)...)
			})
		})
	}
}

// countsNotes counts the calls that note troubles.
type countsNotes struct {
	st           *memory.Store
	calls, notes atomic.Int64
}

func (c *countsNotes) NoteTroubles(ctx context.Context, n store.TroubleNotes) ([]bool, error) {
	c.calls.Add(1)
	c.notes.Add(int64(len(n.List)))
	return c.st.NoteTroubles(ctx, n)
}

// TestTroublesOfManyAppsAreNotedTogether: what lasts of many apps is noted again in one call in a window.
func TestTroublesOfManyAppsAreNotedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counted, s := &countsNotes{st: memory.New()}, &sink{began: time.Now()}
		st := bent.AllOf(counted.st, counted)
		const apps = 20
		sees := stage.StartNode(t, st, "sees", &stage.Journal{}, func(c *xxljob.Config) { c.App = "sees" })
		ops := stage.StartNode(t, st, "ops", &stage.Journal{}, func(c *xxljob.Config) {
			c.App, c.Alarms = "ops", []alarm.Rule{{Name: "all", To: s, Causes: []alarm.Cause{alarm.Trouble}}}
		})
		for i := range apps {
			app := fmt.Sprint("far", i)
			_, err := sees.AddJob(t.Context(), xxljob.Job{App: app, Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(10 * time.Second), OnNoExecutor: xxljob.OnNoExecutorWait, Misfire: xxljob.MisfireFireOnceNow})
			stage.Must(t, err)
		}
		time.Sleep(time.Hour)
		if told := s.messages(); len(told) < apps {
			t.Errorf("told %d messages of %d apps", len(told), apps)
		}
		calls, notes := counted.calls.Load(), counted.notes.Load()
		time.Sleep(time.Hour)
		calls, notes = counted.calls.Load()-calls, counted.notes.Load()-notes
		if most := int64(2 * 13); notes < apps*11 || calls > most {
			t.Errorf("in an hour %d notes were made in %d calls, want %d or more in up to %d", notes, calls, apps*11, most)
		}
		stage.Stop(t, sees, ops)
	})
}

// requireCauses compares the causes of what was told.
func requireCauses(t *testing.T, what string, s *sink, want ...string) {
	t.Helper()
	var got []string
	for _, m := range s.messages() {
		got = append(got, string(m.Cause))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: told %q, want %q: %+v", what, got, want, s.messages())
	}
}

// TestATroubleThatFlaps: comes and goes every few minutes for two hours: a message of a rule elsewhere is
// told in each window at most, and the store has no more notes than that.
func TestATroubleThatFlaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, ops := memory.New(), &sink{began: time.Now()}
		n := stage.StartNode(t, st, "node", &stage.Journal{}, func(c *xxljob.Config) { c.App = "app" })
		o := stage.StartNode(t, st, "ops", &stage.Journal{}, func(c *xxljob.Config) {
			c.App, c.Alarms = "ops", []alarm.Rule{{Name: "all", To: ops, Apps: []string{"far"}}}
		})
		_, err := n.AddJob(t.Context(), xxljob.Job{App: "far", Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(10 * time.Second), OnNoExecutor: xxljob.OnNoExecutorWait, Misfire: xxljob.MisfireFireOnceNow})
		stage.Must(t, err)
		const long = 2 * time.Hour
		for began := time.Now(); time.Since(began) < long; {
			time.Sleep(100 * time.Second)
			far := stage.StartNode(t, st, "far", &stage.Journal{}, func(c *xxljob.Config) { c.App = "far" })
			time.Sleep(80 * time.Second)
			stage.Stop(t, far)
		}
		if told := len(ops.messages()); told == 0 || told > int(long/(5*time.Minute))+1 {
			t.Errorf("told %d messages in %v", told, long)
		}
		stage.Stop(t, n, o)
	})
}

// TestMutedTroubles: that a trouble has begun is not told while its cause is muted, by the rule of the
// node that sees it or by one elsewhere; it is told when the mute is over, if it lasts. What was noted
// before it was muted is told once more, and says so.
func TestMutedTroubles(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		t.Run(fmt.Sprint("elsewhere ", elsewhere), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, s := memory.New(), &sink{began: time.Now()}
				rule := func(c *xxljob.Config) { c.Alarms = []alarm.Rule{{Name: "far", To: s, Apps: []string{"far"}}} }
				n := stage.StartNode(t, st, "node", &stage.Journal{}, func(c *xxljob.Config) {
					if c.App = "app"; !elsewhere {
						rule(c)
					}
				})
				nodes := []*stage.Node{n}
				if elsewhere {
					nodes = append(nodes, stage.StartNode(t, st, "ops", &stage.Journal{}, rule, func(c *xxljob.Config) { c.App = "ops" }))
				}
				mute := store.Mute{Key: "no-executor/far", App: "far", Until: time.Now().Add(2 * time.Hour)}
				_, err := st.PutMute(t.Context(), mute)
				stage.Must(t, err)
				_, err = n.AddJob(t.Context(), xxljob.Job{App: "far", Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(10 * time.Second), OnNoExecutor: xxljob.OnNoExecutorWait, Misfire: xxljob.MisfireFireOnceNow})
				stage.Must(t, err)
				time.Sleep(time.Hour)
				requireCauses(t, "while it is muted", s)
				time.Sleep(time.Hour + 10*time.Minute)
				requireCauses(t, "the mute is over", s, "trouble")
				stage.Stop(t, nodes...)
			})
		})
	}
	t.Run("noted before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st, s := memory.New(), &sink{began: time.Now()}
			ops := func() *stage.Node {
				return stage.StartNode(t, st, "ops", &stage.Journal{}, ofApp("app", s), func(c *xxljob.Config) { c.App = "ops" })
			}
			author := stage.StartNode(t, st, "author", &stage.Journal{}, func(c *xxljob.Config) { c.App = "app" }, knows)
			away := ops()
			time.Sleep(time.Minute)
			lacking(t, author, 1)
			stage.Stop(t, author, away)
			n := stage.StartNode(t, st, "node", &stage.Journal{}, func(c *xxljob.Config) { c.App = "app" })
			time.Sleep(10 * time.Minute)
			_, err := st.PutMute(t.Context(), store.Mute{Key: "unknown-router/app", App: "app", Until: time.Now().Add(5 * time.Hour)})
			stage.Must(t, err)
			job, err := st.JobByKey(t.Context(), "app", "j0")
			stage.Must(t, err)
			_, err = st.PutMute(t.Context(), store.Mute{Key: store.MuteOfJob(job.ID), JobID: job.ID, Until: time.Now().Add(5 * time.Hour)})
			stage.Must(t, err)
			back := ops()
			time.Sleep(30 * time.Minute)
			requireCauses(t, "the last", s, "trouble")
			if all := s.messages(); len(all) > 0 && !strings.Contains(all[0].Events[0].Text, "no more of this is sent until then") {
				t.Errorf("told %+v", all)
			}
			stage.Stop(t, n, back)
		})
	})
}
