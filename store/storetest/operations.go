package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// Short names for the table's function types.
type (
	callFunc = func(context.Context, store.Store) error
	doneFunc = func() bool
)

// operations has one entry for each method of a store that can fail.
func operations() []operation {
	return slices.Concat(jobOperations(), listOperations(), groupOperations(), runOperations(), planOperations(),
		startOperations(), owedOperations(), alarmOperations(), logOperations(), nodeOperations(), registryOperations(), readOperations())
}

// verb reports whether the newest change of the job is the given one.
func verb(o *owner, id int64, v string) bool {
	changes := o.mustChanges(id)
	return len(changes) > 0 && changes[0].Verb == v
}

func jobOperations() []operation {
	return []operation{
		{"AddJob", func(o *owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error {
					_, err := s.AddJob(ctx, store.Job{App: "app", Key: "new", Name: "new"}, nil)
					return err
				}, func() bool {
					job, err := o.JobByKey(o.ctx, "app", "new")
					return err == nil && verb(o, job.ID, "add")
				}
		}},
		{"EditJob", func(o *owner) (callFunc, doneFunc) {
			run := o.planned(o.newJob())
			return func(ctx context.Context, s store.Store) error {
					_, err := s.EditJob(ctx, run.JobID, replan("stop", time.Time{}, stopped))
					return err
				}, func() bool {
					job := o.mustJob(run.JobID)
					return job.Stopped && job.Next.IsZero() && verb(o, run.JobID, "stop") && o.mustRun(run.ID).State == store.StateCancelled
				}
		}},
		{"RemoveJob", func(o *owner) (callFunc, doneFunc) {
			run := o.planned(o.newJob())
			return func(ctx context.Context, s store.Store) error { return s.RemoveJob(ctx, run.JobID) },
				func() bool {
					_, err := o.Job(o.ctx, run.JobID)
					return absent(err) && verb(o, run.JobID, "remove") && o.mustRun(run.ID).State == store.StateCancelled
				}
		}},
	}
}

func listOperations() []operation {
	named := func(o *owner) store.Job {
		o.putList("a", list(1), store.ApplyNewer)
		return o.keyed("k")[0]
	}
	return []operation{
		{"PutList", func(o *owner) (callFunc, doneFunc) {
			put := store.ListPut{JobList: list(3, "k"), Incarnation: "a", Apply: store.ApplyNewer}
			return func(ctx context.Context, s store.Store) error { _, err := s.PutList(ctx, put); return err },
				func() bool {
					v := o.mustLists("a")
					return v.Head.Generation == 3 && len(v.Nodes) == 1
				}
		}},
		{"Lists", func(o *owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error { _, err := s.Lists(ctx, "app", "a"); return err }, nil
		}},
		{"NameJobs", func(o *owner) (callFunc, doneFunc) {
			job := named(o)
			return func(ctx context.Context, s store.Store) error {
				_, err := s.NameJobs(ctx, list(1).ID(), []string{"k"})
				return err
			}, func() bool { return slices.Equal(o.mustLists("a").Surplus, []int64{job.ID}) }
		}},
		{"UnnameJob", func(o *owner) (callFunc, doneFunc) {
			named(o)
			o.mustName(1, "k")
			return func(ctx context.Context, s store.Store) error { _, err := s.UnnameJob(ctx, "app", "k"); return err },
				func() bool { return len(o.mustLists("a").Surplus) == 0 }
		}},
		{"AddJobs", func(o *owner) (callFunc, doneFunc) {
			named(o)
			return func(ctx context.Context, s store.Store) error {
					_, err := s.AddJobs(ctx, list(1).ID(), []store.Job{{App: "app", Key: "new", Name: "new", Schedule: schedule.FixedRate(time.Hour), Next: o.at(600)}}, nil)
					return err
				}, func() bool {
					job, err := o.JobByKey(o.ctx, "app", "new")
					return err == nil && verb(o, job.ID, "add") && slices.Contains(o.mustLists("a").Surplus, job.ID)
				}
		}},
	}
}

func groupOperations() []operation {
	has := func(o *owner) bool { _, err := o.Group(o.ctx, "app"); return err == nil }
	return []operation{
		{"SaveGroup", func(o *owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error { return s.SaveGroup(ctx, store.Group{App: "app"}) },
				func() bool { return has(o) }
		}},
		{"EnsureGroup", func(o *owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error { return s.EnsureGroup(ctx, "app") },
				func() bool { return has(o) }
		}},
		{"RemoveGroup", func(o *owner) (callFunc, doneFunc) {
			o.must(o.EnsureGroup(o.ctx, "app"))
			return func(ctx context.Context, s store.Store) error { return s.RemoveGroup(ctx, "app") },
				func() bool { return !has(o) }
		}},
	}
}

func runOperations() []operation {
	return []operation{
		{"AddRun", func(o *owner) (callFunc, doneFunc) {
			job := o.newJob()
			return func(ctx context.Context, s store.Store) error {
				_, err := s.AddRun(ctx, job.ID, store.Trigger{Key: "k"})
				return err
			}, func() bool { return len(o.runsOf(job.ID)) == 1 }
		}},
		{"AddAhead", func(o *owner) (callFunc, doneFunc) {
			job := o.newJob()
			at, move := o.far(0)
			return func(ctx context.Context, s store.Store) error {
				_, err := s.AddAhead(ctx, job.ID, store.Trigger{At: at, Key: "k"}, move)
				return err
			}, func() bool { return len(o.runsOf(job.ID)) == 1 }
		}},
		{"Finish", func(o *owner) (callFunc, doneFunc) {
			one, two := o.started(o.waited(o.newJob(delayed(time.Minute)))), o.started(o.last(o.newJob()))
			return func(ctx context.Context, s store.Store) error {
					_, err := s.Finish(ctx, nil, []store.Result{success(one), success(two)})
					return err
				}, func() bool {
					return o.mustRun(one.ID).State == store.StateSucceeded && !o.mustJob(one.JobID).Next.IsZero() &&
						o.mustRun(two.ID).State == store.StateSucceeded && o.mustJob(two.JobID).Stopped
				}
		}},
		{"SetProgress", func(o *owner) (callFunc, doneFunc) {
			one, two := o.running(), o.dispatched()
			return func(ctx context.Context, s store.Store) error {
					return s.SetProgress(ctx, []store.Progress{progressOf(one, 1, "one"), progressOf(two, 2, "two")})
				}, func() bool {
					return o.mustRun(one.ID).ProgressText == "one" && o.mustRun(two.ID).ProgressText == "two"
				}
		}},
		{"Kill", func(o *owner) (callFunc, doneFunc) {
			run := o.waited(o.newJob(delayed(time.Minute)))
			return func(ctx context.Context, s store.Store) error { _, err := s.Kill(ctx, run.ID, "x"); return err },
				func() bool {
					return o.mustRun(run.ID).State == store.StateCancelled && !o.mustJob(run.JobID).Next.IsZero()
				}
		}},
	}
}

func planOperations() []operation {
	return []operation{
		{"Claim", func(o *owner) (callFunc, doneFunc) {
			plans := []store.Plan{o.plan(o.newJob(), o.at(0), o.at(1)), o.plan(o.newJob(), o.at(0))}
			return func(ctx context.Context, s store.Store) error { _, err := s.Claim(ctx, nil, plans); return err },
				func() bool {
					return len(o.mustRuns(store.RunFilter{})) == 3 &&
						!o.mustJob(plans[0].JobID).Last.IsZero() && !o.mustJob(plans[1].JobID).Last.IsZero()
				}
		}},
		{"MoveAhead", func(o *owner) (callFunc, doneFunc) {
			one, _ := o.ahead(o.newJob().ID, 0)
			two, move := o.ahead(o.newJob().ID, 1)
			return func(ctx context.Context, s store.Store) error {
					_, err := s.MoveAhead(ctx, store.AheadQuery{Shards: o.shards, Before: move, Limit: 9})
					return err
				}, func() bool {
					return slices.Equal(ids(o.plannedEver()), []int64{one.ID, two.ID})
				}
		}},
		{"Sweep", func(o *owner) (callFunc, doneFunc) {
			job := o.newJob(noNext)
			return func(ctx context.Context, s store.Store) error { return s.Sweep(ctx, o.shards) },
				func() bool { return o.mustJob(job.ID).Stopped }
		}},
		{"SetShards", func(o *owner) (callFunc, doneFunc) { // the number is set already: it writes nothing
			return func(ctx context.Context, s store.Store) error { return s.SetShards(ctx, numShards) }, nil
		}},
	}
}

func startOperations() []operation {
	return []operation{
		{"Start", func(o *owner) (callFunc, doneFunc) {
			o.there("b")
			run := o.planned(o.newJob())
			start := o.startOf(run, func(s *store.Start) { s.Targets = []string{s.Address, remote, store.LocalAddress("b")} })
			return func(ctx context.Context, s store.Store) error {
					_, err := s.Start(ctx, nil, []store.Start{start})
					return err
				}, func() bool {
					return o.mustRun(run.ID).State == store.StateStarted && len(o.runsOf(run.JobID)) == 3
				}
		}},
		{"Readdress", func(o *owner) (callFunc, doneFunc) {
			run := o.handedOver()
			return func(ctx context.Context, s store.Store) error {
				_, err := s.Readdress(ctx, o.readdress(run, remote))
				return err
			}, func() bool { return o.mustRun(run.ID).Address == remote }
		}},
		{"Dispatched", func(o *owner) (callFunc, doneFunc) {
			run, two := o.running(to(remote)), o.running(to(remote))
			return func(ctx context.Context, s store.Store) error {
					_, err := s.Dispatched(ctx, []store.Dispatch{accepted(run), accepted(two)})
					return err
				}, func() bool {
					return o.mustRun(run.ID).State == store.StateDispatched && o.mustRun(two.ID).State == store.StateDispatched
				}
		}},
		{"Settle", func(o *owner) (callFunc, doneFunc) {
			run := o.started(o.waited(o.newJob(delayed(time.Minute))))
			return func(ctx context.Context, s store.Store) error {
					_, err := s.Settle(ctx, []store.Verdict{o.verdict(run, store.StateLost)})
					return err
				}, func() bool {
					return o.mustRun(run.ID).State == store.StateLost && !o.mustJob(run.JobID).Next.IsZero()
				}
		}},
		{"Take", func(o *owner) (callFunc, doneFunc) {
			run := o.handedOver()
			return func(ctx context.Context, s store.Store) error {
				_, err := s.Take(ctx, "b", []int64{run.ID})
				return err
			}, func() bool { return !o.mustRun(run.ID).Taken.IsZero() }
		}},
	}
}

func owedOperations() []operation {
	return []operation{
		{"PayOwed", func(o *owner) (callFunc, doneFunc) {
			one, two := o.newJob(), o.newJob()
			o.succeeds(o.newJob(leading(one.ID, two.ID)).ID)
			return func(ctx context.Context, s store.Store) error {
				_, err := s.PayOwed(ctx, store.OwedQuery{Shards: o.shards, Limit: 9})
				return err
			}, func() bool { return len(o.runsOf(one.ID)) == 1 && len(o.runsOf(two.ID)) == 1 }
		}},
		{"ExpireWindows", func(o *owner) (callFunc, doneFunc) {
			one, _, _ := o.opens()
			two, _, _ := o.opens()
			later := o.later()
			return func(ctx context.Context, s store.Store) error {
				_, err := s.ExpireWindows(ctx, store.WindowQuery{Shards: o.shards, Before: later, Limit: 9})
				return err
			}, func() bool { return len(o.runsOf(one.ID)) == 1 && len(o.runsOf(two.ID)) == 1 }
		}},
	}
}

func alarmOperations() []operation {
	return []operation{
		{"KeepRules", func(o *owner) (callFunc, doneFunc) {
			rule := store.NewAlarmRule(everyRule())
			return func(ctx context.Context, s store.Store) error {
				_, err := s.KeepRules(ctx, store.RuleKeeper{App: "app", Node: "a", Incarnation: "a-1", Rules: []store.AlarmRule{rule}})
				return err
			}, func() bool { return len(o.mustRules()) == 1 }
		}},
		{"HoldRule", func(o *owner) (callFunc, doneFunc) {
			rule := o.mustKeep("a", everyRule())[0].Key
			return func(ctx context.Context, s store.Store) error {
				_, err := s.HoldRule(ctx, rule, "one", time.Minute)
				return err
			}, func() bool { return o.hold(rule, "two", 0).Left > 0 }
		}},
		{"Rules", func(*owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error {
				_, err := s.Rules(ctx)
				return err
			}, nil
		}},
		{"DropRules", func(o *owner) (callFunc, doneFunc) {
			o.everyAlarm()
			return func(ctx context.Context, s store.Store) error {
				_, err := s.DropRules(ctx, o.at(24*3600*365))
				return err
			}, func() bool { return len(o.mustRules()) == 0 || !o.mustRules()[0].Gone.IsZero() }
		}},
		{"Alarms", func(*owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error {
				_, err := s.Alarms(ctx, everyShard(), nil, 0, 9)
				return err
			}, nil
		}},
		{"MarkAlarms", func(o *owner) (callFunc, doneFunc) {
			o.everyAlarm()
			one, two := o.failed(o.running()), o.failed(o.running())
			list := o.mustAlarms()
			marks := store.AlarmMarks{
				Told: []store.AlarmTold{{ID: list[0].ID, Rule: "r"}}, Done: []store.AlarmDone{{ID: list[1].ID, Status: store.AlarmSent}},
				Jobs: []store.JobTold{{JobID: one.JobID, Shard: one.Shard, Rule: "r", At: o.now}},
			}
			return func(ctx context.Context, s store.Store) error { return s.MarkAlarms(ctx, marks) },
				func() bool {
					now := o.mustAlarms()
					return len(now) == 1 && len(now[0].Told) == 1 && o.mustRun(two.ID).AlarmStatus == store.AlarmSent && len(o.mustTold(one.JobID)) == 1
				}
		}},
		{"ToldJobs", func(o *owner) (callFunc, doneFunc) {
			job := o.newJob()
			return func(ctx context.Context, s store.Store) error {
				_, err := s.ToldJobs(ctx, []int64{job.ID})
				return err
			}, nil
		}},
		{"OpenAlarms", func(*owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error {
				_, _, err := s.OpenAlarms(ctx, everyShard(), nil, store.JobTold{}, 9)
				return err
			}, nil
		}},
		{"AddLate", func(o *owner) (callFunc, doneFunc) {
			o.everyAlarm()
			one, two := o.planned(o.newJob(lateAfter(time.Second))), o.running()
			return func(ctx context.Context, s store.Store) error {
					_, err := s.AddLate(ctx, store.LateQuery{Shards: o.shards, Now: o.at(1), Limit: 9})
					return err
				}, func() bool {
					return len(o.alarmsOf(one.ID)) == 1 && len(o.alarmsOf(two.ID)) == 0
				}
		}},
	}
}

func logOperations() []operation {
	return []operation{
		{"AskLog", func(o *owner) (callFunc, doneFunc) {
			ask := store.Ask{Incarnation: "b", Run: o.handedOver(), FromLine: 7}
			return func(ctx context.Context, s store.Store) error { _, err := s.AskLog(ctx, ask); return err },
				func() bool {
					asks := o.mustInbox("b").Asks
					return len(asks) == 1 && asks[0].Run.ID == ask.Run.ID && asks[0].FromLine == 7
				}
		}},
		{"AnswerLog", func(o *owner) (callFunc, doneFunc) {
			ask := o.mustAsk("b", o.handedOver(), 1)
			answer := store.Answer{ToLine: 1, Content: "one\n"}
			return func(ctx context.Context, s store.Store) error { return s.AnswerLog(ctx, ask.ID, answer) },
				func() bool {
					got, answered := o.mustLogAnswer(ask.ID)
					return answered && got == answer && len(o.mustInbox("b").Asks) == 0
				}
		}},
	}
}

func nodeOperations() []operation {
	see := func(o *owner, incarnation string) *store.Node { return o.node(o.mustBeat(observer), incarnation) }
	return []operation{
		{"Join", func(o *owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error {
				_, err := s.Join(ctx, store.Node{ID: "b", Incarnation: "b"})
				return err
			}, func() bool { return see(o, "b") != nil }
		}},
		{"Beat", func(o *owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error {
				_, err := s.Beat(ctx, "a", []store.Attachment{{App: "app"}})
				return err
			}, func() bool { n := see(o, "a"); return n != nil && n.Beats == 2 && len(n.Attached) == 1 }
		}},
		{"SetFailing", func(o *owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error { return s.SetFailing(ctx, "a", true) },
				func() bool { n := see(o, "a"); return n != nil && n.Failing }
		}},
		{"Leave", func(o *owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error { return s.Leave(ctx, "a") },
				func() bool {
					n := see(o, "a")
					return n != nil && n.Left && !slices.ContainsFunc(o.shardsNow(), func(s store.Shard) bool { return s.Owner != "" })
				}
		}},
		{"Bury", func(o *owner) (callFunc, doneFunc) {
			o.join("b")
			return func(ctx context.Context, s store.Store) error { return s.Bury(ctx, "b", 1) },
				func() bool { return see(o, "b") == nil }
		}},
		{"TakeShards", func(o *owner) (callFunc, doneFunc) {
			o.join("b")
			return func(ctx context.Context, s store.Store) error {
					_, err := s.TakeShards(ctx, "b", o.shards[:2])
					return err
				}, func() bool {
					now := o.shardsNow()
					return now[0].Owner == "b" && now[1].Owner == "b" && now[0].Epoch > o.epoch(0)
				}
		}},
		{"ReleaseShards", func(o *owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error { return s.ReleaseShards(ctx, "a", o.shards[:2]) },
				func() bool { now := o.shardsNow(); return now[0].Owner == "" && now[1].Owner == "" }
		}},
	}
}

func registryOperations() []operation {
	regs := []store.Registration{registered("app", remote), registered("other", remote)}
	count := func(o *owner) int { return len(o.mustRegistrations(store.RegistrationFilter{})) }
	return []operation{
		{"PutAddresses", func(o *owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error { return s.PutAddresses(ctx, regs) },
				func() bool { return count(o) == 2 }
		}},
		{"DropAddresses", func(o *owner) (callFunc, doneFunc) {
			o.put(regs...)
			return func(ctx context.Context, s store.Store) error { return s.DropAddresses(ctx, regs) },
				func() bool { return count(o) == 0 }
		}},
		{"NoteServed", func(o *owner) (callFunc, doneFunc) {
			return func(ctx context.Context, s store.Store) error {
					return s.NoteServed(ctx, []store.Served{{App: "app", By: store.ServedAttached}})
				},
				func() bool { return len(o.mustServed("app")) == 1 }
		}},
		{"ForgetAddresses", func(o *owner) (callFunc, doneFunc) {
			o.put(regs...)
			return func(ctx context.Context, s store.Store) error { return s.ForgetAddresses(ctx, -time.Hour) },
				func() bool { return count(o) == 0 }
		}},
	}
}

// readOperations are calls that change nothing, whatever happens to them.
func readOperations() []operation {
	read := func(method string, do func(ctx context.Context, s store.Store, run store.Run) error) operation {
		return operation{method, func(o *owner) (callFunc, doneFunc) {
			run := o.planned(o.newJob(func(j *store.Job) { j.Key = "k" }))
			o.must(o.EnsureGroup(o.ctx, "app"))
			return func(ctx context.Context, s store.Store) error { return do(ctx, s, run) }, nil
		}}
	}
	all := []store.Shard{{ID: 0}, {ID: 1}, {ID: 2}, {ID: 3}}
	later := time.Now().Add(time.Hour)
	return []operation{
		read("Served", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Served(ctx, []string{"app"})
			return err
		}),
		read("Job", func(ctx context.Context, s store.Store, run store.Run) error {
			_, err := s.Job(ctx, run.JobID)
			return err
		}),
		read("JobByKey", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.JobByKey(ctx, "app", "k")
			return err
		}),
		read("Jobs", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Jobs(ctx, store.JobFilter{})
			return err
		}),
		read("Changes", func(ctx context.Context, s store.Store, run store.Run) error {
			_, err := s.Changes(ctx, run.JobID, 10)
			return err
		}),
		read("Group", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Group(ctx, "app")
			return err
		}),
		read("Groups", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Groups(ctx)
			return err
		}),
		read("Links", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Links(ctx)
			return err
		}),
		read("Run", func(ctx context.Context, s store.Store, run store.Run) error {
			_, err := s.Run(ctx, run.ID)
			return err
		}),
		read("Tree", func(ctx context.Context, s store.Store, run store.Run) error {
			_, err := s.Tree(ctx, run.ID)
			return err
		}),
		read("RunsByID", func(ctx context.Context, s store.Store, run store.Run) error {
			_, err := s.RunsByID(ctx, []int64{run.ID})
			return err
		}),
		read("Runs", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Runs(ctx, store.RunFilter{})
			return err
		}),
		read("Scan", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Scan(ctx, store.ScanResult{}, store.ScanQuery{Shards: all, Before: later, Jobs: 9, Runs: 9})
			return err
		}),
		read("Planned", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Planned(ctx, nil, store.PlannedQuery{Shards: all, Before: later, Limit: 9})
			return err
		}),
		read("StartedBy", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.StartedBy(ctx, all, []string{"a"}, 0, 9)
			return err
		}),
		read("DispatchedRuns", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.DispatchedRuns(ctx, all, 0, 9)
			return err
		}),
		read("Now", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Now(ctx)
			return err
		}),
		read("Inbox", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Inbox(ctx, "a", 0, 9)
			return err
		}),
		{"LogAnswer", func(o *owner) (callFunc, doneFunc) {
			ask := o.mustAsk("b", o.handedOver(), 1)
			return func(ctx context.Context, s store.Store) error { _, _, err := s.LogAnswer(ctx, ask.ID); return err }, nil
		}},
		read("Addresses", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Addresses(ctx, "app", time.Hour)
			return err
		}),
		read("Registrations", func(ctx context.Context, s store.Store, _ store.Run) error {
			_, err := s.Registrations(ctx, store.RegistrationFilter{})
			return err
		}),
	}
}
