package mutant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// alarmMutants break rules about alarms.
func alarmMutants() []Mutant {
	read := func(change func(b *bentAlarms, list []store.Alarm) []store.Alarm) func(whole) any {
		return func(s whole) any { return &bentAlarms{st: s, read: change} }
	}
	row := func(change func(a *store.Alarm)) func(whole) any {
		return read(func(_ *bentAlarms, list []store.Alarm) []store.Alarm {
			for i := range list {
				change(&list[i])
			}
			return list
		})
	}
	mark := func(change func(m *store.AlarmMarks)) func(whole) any {
		return func(s whole) any { return &bentAlarms{st: s, mark: change} }
	}
	keep := func(change func(k *store.RuleKeeper)) func(whole) any {
		return func(s whole) any { return &bentAlarms{st: s, keep: change} }
	}
	hold := func(change func(b *bentAlarms, h store.RuleHold) store.RuleHold) func(whole) any {
		return func(s whole) any { return &bentAlarms{st: s, hold: change} }
	}
	late := func(change func(b *bentAlarms, q store.LateQuery) store.LateQuery) func(whole) any {
		return func(s whole) any { return &bentAlarms{st: s, late: change} }
	}
	open := func(change func(b *bentAlarms, list []store.JobTold, open int) ([]store.JobTold, int)) func(whole) any {
		return func(s whole) any { return &bentAlarms{st: s, open: change} }
	}
	behind := func(change func(t store.JobTold) store.JobTold) func(whole) any {
		return func(s whole) any { return &bentAlarms{st: s, after: change} }
	}
	told := func(change func(list []store.JobTold) []store.JobTold) func(whole) any {
		return func(s whole) any { return &bentAlarms{st: s, told: change} }
	}
	return []Mutant{
		{"NoRuleIsKept", keep(func(k *store.RuleKeeper) { k.Rules = nil }),
			[]string{"Alarms/EachEndInsertsItsCause", "Alarms/AJobThatStopsByItself", "Alarms/RecordsOfAClaim", "Alarms/TheRecordOfAnEdit", "Alarms/AlarmsAreSignalled"}},
		{"EachRuleWantsAll", keep(func(k *store.RuleKeeper) {
			for i := range k.Rules {
				k.Rules[i].Apps, k.Rules[i].Jobs, k.Rules[i].Causes = nil, nil, store.NewAlarmRule(alarm.Rule{Causes: []alarm.Cause{"attempt", "failed", "lost", "skipped", "stopped", "late"}}).Causes
			}
		}), []string{"Alarms/NoneBeforeTheyAreAskedFor", "Alarms/EndsOnly", "Alarms/AttemptsOnly", "Alarms/ARuleIsAboutAppsAndJobs"}},
		{"AttemptsAreNotHeardOf", keep(func(k *store.RuleKeeper) {
			for i := range k.Rules {
				k.Rules[i].Causes = slices.DeleteFunc(k.Rules[i].Causes, func(c string) bool { return c == "attempt" })
			}
		}), []string{"Alarms/AttemptsOnly", "Alarms/WhatAnyAsksForHolds", "Alarms/WhatIsFollowedIsAnAttempt", "Alarms/WhatWasToBeKilledIsAnAttempt"}},
		{"EverybodyHolds", hold(func(_ *bentAlarms, h store.RuleHold) store.RuleHold { h.Held = true; return h }), []string{"Alarms/OneHoldsARule"}},
		{"NobodyHoldsAnew", hold(func(_ *bentAlarms, h store.RuleHold) store.RuleHold { h.Anew = false; return h }), []string{"Alarms/OneHoldsARule"}},
		{"EachAttemptHasFailed", row(func(a *store.Alarm) { a.Cause = strings.Replace(a.Cause, "attempt", "failed", 1) }),
			[]string{"Alarms/WhatIsFollowedIsAnAttempt", "Alarms/EachOfABatchHasItsOwn"}},
		{"LostHasFailed", row(func(a *store.Alarm) { a.Cause = strings.Replace(a.Cause, "lost", "failed", 1) }), []string{"Alarms/EachEndInsertsItsCause", "Alarms/OfARunAndACauseThereIsOne"}},
		{"AlarmsTwice", read(func(_ *bentAlarms, list []store.Alarm) []store.Alarm { return append(list, list...) }),
			[]string{"Alarms/OfARunAndACauseThereIsOne", "Alarms/OfConcurrentResultsThereIsOne", "Alarms/AlarmsAreRead"}},
		{"AlarmsUpsideDown", read(func(_ *bentAlarms, list []store.Alarm) []store.Alarm { slices.Reverse(list); return list }), []string{"Alarms/AlarmsAreRead", "Alarms/LateRunsOldestFirst"}},
		{"NamesOfToday", read(func(b *bentAlarms, list []store.Alarm) []store.Alarm {
			for i := range list {
				job, _ := b.st.Job(context.Background(), list[i].JobID)
				list[i].JobName, list[i].JobKey, list[i].Email = job.Name, job.Key, job.AlarmEmail
			}
			return list
		}), []string{"Alarms/TheRowSaysWhatTheJobWasThen"}},
		{"TextsInFull", read(func(b *bentAlarms, list []store.Alarm) []store.Alarm {
			for i := range list {
				if run, err := b.st.Run(context.Background(), list[i].RunID); err == nil && run.HandleMsg != "" {
					list[i].Text = run.HandleMsg
				}
			}
			return list
		}), []string{"Alarms/TextsAreCut"}},
		{"AlarmsSayWhatIsSecret", row(func(a *store.Alarm) { a.Text = strings.Replace(a.Text, store.SecretText, "boom", 1) }), []string{"Alarms/OfASecretJobNoResult"}},
		{"TextsAreForgotten", row(func(a *store.Alarm) { a.Text = "" }), []string{"Alarms/TextsAreCut", "Alarms/RecordsOfAClaim", "Alarms/RunsOfEachStateAreLate"}},
		{"RetriesStandForThemselves", read(func(b *bentAlarms, list []store.Alarm) []store.Alarm {
			for i := range list {
				if run, err := b.st.Run(context.Background(), list[i].RunID); err == nil {
					list[i].Instant = run.Scheduled
				}
			}
			return list
		}), []string{"Alarms/RetriesGoByTheirInstant"}},
		{"TheFirstVersion", row(func(a *store.Alarm) { a.JobVersion = 1 }), []string{"Alarms/AJobThatStopsByItself", "Alarms/TheRowSaysWhatTheJobWasThen"}},
		{"ToldIsShared", func(s whole) any {
			shared := map[string][]string{}
			return &bentAlarms{st: s, read: func(_ *bentAlarms, list []store.Alarm) []store.Alarm {
				for i := range list {
					key := fmt.Sprint(list[i].ID, len(list[i].Told))
					if shared[key] == nil {
						shared[key] = list[i].Told
					}
					list[i].Told = shared[key]
				}
				return list
			}}
		}, []string{"Alarms/AlarmsAreCopied"}},
		{"ToldAgain", row(func(a *store.Alarm) { a.Told = append(a.Told, a.Told...) }), []string{"Alarms/ARuleIsToldOnce", "Alarms/RulesMarkedAtOnceAreAllKept"}},
		{"NothingIsTold", mark(func(m *store.AlarmMarks) { m.Told = nil }), []string{"Alarms/ARuleIsToldOnce", "Alarms/RulesMarkedAtOnceAreAllKept", "Faults/MarkAlarms"}},
		{"NobodyGivesUp", mark(func(m *store.AlarmMarks) {
			for i := range m.Told {
				m.Told[i].GaveUp = false
			}
		}), []string{"Alarms/ARuleHasGivenUp"}},
		{"OneTeller", mark(func(m *store.AlarmMarks) {
			for _, t := range m.Told {
				m.Done = append(m.Done, store.AlarmDone{ID: t.ID, Status: store.AlarmSent})
			}
		}), []string{"Alarms/WhatAllHaveToldIsDone", "Alarms/ARuleReadsWhatItWants"}},
		{"RulesReadEverything", func(s whole) any { return readsAll{s} }, []string{"Alarms/ARuleReadsWhatItWants", "Alarms/OpenOfRules"}},
		{"NothingIsDone", mark(func(m *store.AlarmMarks) { m.Done = nil }), []string{"Alarms/WhatIsDoneStaysDone", "Alarms/TheRunGetsTheStatus", "Alarms/WhatIsNotThereIsLeftOut", "Faults/MarkAlarms"}},
		{"EverythingIsSent", mark(func(m *store.AlarmMarks) {
			for i := range m.Done {
				m.Done[i].Status = store.AlarmSent
			}
		}), []string{"Alarms/TheRunGetsTheStatus"}},
		{"JobsAreForgotten", mark(func(m *store.AlarmMarks) { m.Jobs = nil }), []string{"Alarms/JobsAreReplaced", "Faults/MarkAlarms"}},
		{"TheFirstStays", mark(func(m *store.AlarmMarks) { slices.Reverse(m.Jobs) }), []string{"Alarms/JobsAreReplaced"}},
		{"NobodyWaitsForRecovery", mark(func(m *store.AlarmMarks) {
			for i := range m.Jobs {
				m.Jobs[i].Open = false
			}
		}), []string{"Alarms/RecoveredByALaterTrigger", "Alarms/RecoveredByARetry", "Alarms/OpenAtMost", "Alarms/OpenOfShards"}},
		{"EveryRunRecovers", mark(func(m *store.AlarmMarks) {
			for i := range m.Jobs {
				m.Jobs[i].RunID, m.Jobs[i].TriggerID, m.Jobs[i].At = 1, 0, time.Time{}
			}
		}), []string{"Alarms/NotRecoveredByAnEarlierOne", "Alarms/NotRecoveredByAnotherPart"}},
		{"NoRetryRecovers", mark(func(m *store.AlarmMarks) {
			for i := range m.Jobs {
				m.Jobs[i].RunID++
			}
		}), []string{"Alarms/RecoveredByARetry", "Alarms/RecoveredByThatVeryRun"}},
		{"ToldOutOfOrder", told(func(list []store.JobTold) []store.JobTold { slices.Reverse(list); return list }), []string{"Alarms/JobsAreToldInOrder"}},
		{"ToldOfOtherShards", told(func(list []store.JobTold) []store.JobTold {
			for i := range list {
				list[i].Shard++
			}
			return list
		}), []string{"Alarms/JobsAreReplaced"}},
		{"OpenCountsWhatIsListed", open(func(_ *bentAlarms, list []store.JobTold, _ int) ([]store.JobTold, int) { return list, len(list) }),
			[]string{"Alarms/OpenAtMost", "Alarms/RecoveredByALaterTrigger"}},
		{"RecoveredNow", open(func(_ *bentAlarms, list []store.JobTold, open int) ([]store.JobTold, int) {
			for i := range list {
				list[i].Recovered = time.Now().UTC().Add(time.Hour)
			}
			return list, open
		}), []string{"Alarms/RecoveredByTheFirstSuccess", "Alarms/RecoveredByARetry"}},
		{"OpenFromTheFirstOn", behind(func(store.JobTold) store.JobTold { return store.JobTold{} }), []string{"Alarms/OpenBehindOne"}},
		{"OpenBehindTheJob", behind(func(t store.JobTold) store.JobTold {
			if t.JobID > 0 {
				t.Rule = "~"
			}
			return t
		}), []string{"Alarms/OpenBehindOne"}},
		{"LateIgnoresTheEpoch", late(func(b *bentAlarms, q store.LateQuery) store.LateQuery {
			q.Shards = slices.Clone(q.Shards)
			for i := range q.Shards {
				q.Shards[i].Epoch = epoch(context.Background(), b.st, q.Shards[i].ID)
			}
			return q
		}), []string{"Alarms/LateRunsNeedTheEpoch"}},
		{"LateIgnoresTheLimit", late(func(_ *bentAlarms, q store.LateQuery) store.LateQuery { q.Limit = 1000; return q }), []string{"Alarms/LateRunsOldestFirst"}},
		{"LateIsEarly", late(func(_ *bentAlarms, q store.LateQuery) store.LateQuery { q.Now = q.Now.Add(time.Second); return q }), []string{"Alarms/RunsOfEachStateAreLate", "Alarms/RetriesGoByTheirInstant"}},
		{"NothingIsLate", late(func(_ *bentAlarms, q store.LateQuery) store.LateQuery { q.Now = time.Time{}; return q }), []string{"Alarms/RunsOfEachStateAreLate", "Alarms/AnEditOfLateAfterCounts", "Faults/AddLate"}},
		{"AlarmsAreNotSignalled", func(s whole) any { return quietAlarms{s} }, []string{"Alarms/AlarmsAreSignalled"}},
	}
}

// bentAlarms changes alarms on their way in and out.
type bentAlarms struct {
	st    whole
	keep  func(*store.RuleKeeper)
	hold  func(*bentAlarms, store.RuleHold) store.RuleHold
	read  func(*bentAlarms, []store.Alarm) []store.Alarm
	mark  func(*store.AlarmMarks)
	told  func([]store.JobTold) []store.JobTold
	open  func(*bentAlarms, []store.JobTold, int) ([]store.JobTold, int)
	after func(store.JobTold) store.JobTold
	late  func(*bentAlarms, store.LateQuery) store.LateQuery
}

func (b *bentAlarms) KeepRules(ctx context.Context, k store.RuleKeeper) ([]store.RuleKeeper, error) {
	if b.keep != nil {
		k.Rules = slices.Clone(k.Rules)
		for i := range k.Rules {
			k.Rules[i].Causes = slices.Clone(k.Rules[i].Causes)
		}
		b.keep(&k)
	}
	return b.st.KeepRules(ctx, k)
}

func (b *bentAlarms) HoldRule(ctx context.Context, rule, incarnation string, d time.Duration) (store.RuleHold, error) {
	h, err := b.st.HoldRule(ctx, rule, incarnation, d)
	if b.hold != nil && err == nil {
		h = b.hold(b, h)
	}
	return h, err
}

func (b *bentAlarms) Alarms(ctx context.Context, shards []store.Shard, rules []string, after int64, limit int) ([]store.Alarm, error) {
	list, err := b.st.Alarms(ctx, shards, rules, after, limit)
	if b.read != nil && len(list) > 0 {
		list = b.read(b, list)
	}
	return list, err
}

func (b *bentAlarms) MarkAlarms(ctx context.Context, m store.AlarmMarks) error {
	if b.mark != nil {
		m.Told, m.Done, m.Jobs = slices.Clone(m.Told), slices.Clone(m.Done), slices.Clone(m.Jobs)
		b.mark(&m)
	}
	return b.st.MarkAlarms(ctx, m)
}

func (b *bentAlarms) ToldJobs(ctx context.Context, jobs []int64) ([]store.JobTold, error) {
	list, err := b.st.ToldJobs(ctx, jobs)
	if b.told != nil {
		list = b.told(list)
	}
	return list, err
}

func (b *bentAlarms) OpenAlarms(ctx context.Context, shards []store.Shard, rules []string, after store.JobTold, limit int) ([]store.JobTold, int, error) {
	if b.after != nil {
		after = b.after(after)
	}
	list, open, err := b.st.OpenAlarms(ctx, shards, rules, after, limit)
	if b.open != nil {
		list, open = b.open(b, list, open)
	}
	return list, open, err
}

func (b *bentAlarms) AddLate(ctx context.Context, q store.LateQuery) (store.Late, error) {
	if b.late != nil {
		q = b.late(b, q)
	}
	return b.st.AddLate(ctx, q)
}

// readsAll reads for all rules.
type readsAll struct{ st whole }

func (r readsAll) Alarms(ctx context.Context, shards []store.Shard, _ []string, after int64, limit int) ([]store.Alarm, error) {
	return r.st.Alarms(ctx, shards, nil, after, limit)
}

func (r readsAll) OpenAlarms(ctx context.Context, shards []store.Shard, _ []string, after store.JobTold, limit int) ([]store.JobTold, int, error) {
	return r.st.OpenAlarms(ctx, shards, nil, after, limit)
}

// quietAlarms signals all but alarms.
type quietAlarms struct{ st whole }

func (q quietAlarms) Watch(ctx context.Context, incarnation string) store.Signals {
	s := q.st.Watch(ctx, incarnation)
	s.Alarms = make(chan struct{})
	return s
}
