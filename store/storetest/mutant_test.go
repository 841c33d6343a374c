package storetest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// A mutant is a working store with one guard broken, and the cases that have to
// find it.
type mutant struct {
	name  string
	wrap  func(xxljob.Store) xxljob.Store
	cases []string
}

// mutantPatience is short: what a mutant has broken does not come about however long a case
// waits, and what it has left alone comes about in milliseconds.
const mutantPatience = 3 * time.Second

func TestMutants(t *testing.T) {
	for _, m := range slices.Concat(planMutants(), startMutants(), valueMutants(), ruleMutants(), addresseeMutants(), bootMutants(), conclusionMutants(), logMutants(), logPageMutants(), progressMutants(), traceMutants(), registryMutants(), listMutants(), boundedMutants(), aheadMutants(), followMutants(), owedMutants(), unreportedMutants(), alarmMutants(), readMutants(), readJobMutants(), reportMutants(), recordMutants(), dropMutants(), accountMutants()) {
		for _, name := range m.cases {
			t.Run(m.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				if len(storetest.Failures(t, name, memory.New(), storetest.Patience)) != 0 {
					t.Fatalf("case %s fails without the mutant", name)
				}
				if len(storetest.Failures(t, name, m.wrap(memory.New()), mutantPatience)) == 0 {
					t.Errorf("case %s does not find the mutant %s", name, m.name)
				}
			})
		}
	}
}

// broken overrides methods of a store; those left nil are the store's.
type broken struct {
	xxljob.Store
	claim      func(ctx context.Context, p xxljob.Plan) xxljob.Plan
	start      func(ctx context.Context, s xxljob.Start) xxljob.Start
	verdict    func(ctx context.Context, v xxljob.Verdict) xxljob.Verdict
	result     func(ctx context.Context, r xxljob.Result) xxljob.Result
	edit       func(e xxljob.Edit) xxljob.Edit
	trigger    func(t xxljob.Trigger) xxljob.Trigger
	scan       func(q store.ScanQuery, r xxljob.ScanResult) xxljob.ScanResult
	runs       func([]xxljob.Run)
	filter     func(*xxljob.RunFilter)
	jobOut     func(xxljob.Job) xxljob.Job
	planned    func(q store.PlannedQuery) store.PlannedQuery
	first      func(xxljob.FirstInstant) xxljob.FirstInstant
	deafAddJob bool
}

// each applies a change to every member of a batch.
func each[T any](ctx context.Context, list []T, change func(context.Context, T) T) []T {
	if change == nil || ctx == nil || ctx.Err() != nil {
		return list
	}
	out := make([]T, len(list))
	for i, v := range list {
		out[i] = change(ctx, v)
	}
	return out
}

func (b *broken) Claim(ctx context.Context, dst []xxljob.Run, plans []xxljob.Plan) ([]xxljob.Run, error) {
	return b.Store.Claim(ctx, nil, each(ctx, plans, b.claim))
}

func (b *broken) Start(ctx context.Context, dst []xxljob.Started, starts []xxljob.Start) ([]xxljob.Started, error) {
	return b.Store.Start(ctx, nil, each(ctx, starts, b.start))
}

func (b *broken) Settle(ctx context.Context, verdicts []xxljob.Verdict) ([]xxljob.Run, error) {
	return b.Store.Settle(ctx, each(ctx, verdicts, b.verdict))
}

func (b *broken) Finish(ctx context.Context, dst []xxljob.Run, results []xxljob.Result) ([]xxljob.Run, error) {
	return b.Store.Finish(ctx, nil, each(ctx, results, b.result))
}

func (b *broken) EditJob(ctx context.Context, id int64, e xxljob.Edit) (xxljob.Job, error) {
	if b.edit != nil {
		e = b.edit(e)
	}
	return b.Store.EditJob(ctx, id, e)
}

func (b *broken) AddRun(ctx context.Context, id int64, t xxljob.Trigger) (xxljob.Run, error) {
	if b.trigger != nil {
		t = b.trigger(t)
	}
	return b.Store.AddRun(ctx, id, t)
}

func (b *broken) AddJob(ctx context.Context, job xxljob.Job, first xxljob.FirstInstant) (xxljob.Job, error) {
	if b.deafAddJob {
		ctx = context.WithoutCancel(ctx)
	}
	if b.first != nil && first != nil {
		first = b.first(first)
	}
	return b.Store.AddJob(ctx, job, first)
}

func (b *broken) Scan(ctx context.Context, dst xxljob.ScanResult, q store.ScanQuery) (xxljob.ScanResult, error) {
	r, err := b.Store.Scan(ctx, dst, q)
	if b.scan != nil {
		r = b.scan(q, r)
	}
	return r, err
}

func (b *broken) Planned(ctx context.Context, dst []xxljob.Run, q store.PlannedQuery) ([]xxljob.Run, error) {
	if b.planned != nil {
		q = b.planned(q)
	}
	return b.Store.Planned(ctx, dst, q)
}

func (b *broken) Runs(ctx context.Context, f xxljob.RunFilter) ([]xxljob.Run, error) {
	if b.filter != nil {
		b.filter(&f)
	}
	runs, err := b.Store.Runs(ctx, f)
	if b.runs != nil {
		b.runs(runs)
	}
	return runs, err
}

func (b *broken) Job(ctx context.Context, id int64) (xxljob.Job, error) {
	job, err := b.Store.Job(ctx, id)
	if b.jobOut != nil && err == nil {
		job = b.jobOut(job)
	}
	return job, err
}

// epoch returns the epoch that the shard has now.
func epoch(ctx context.Context, s xxljob.Store, shard int) int64 {
	v, _ := s.Beat(ctx, "observer", nil)
	for _, x := range v.Shards {
		if x.ID == shard {
			return x.Epoch
		}
	}
	return 0
}

func planMutants() []mutant {
	claim := func(change func(ctx context.Context, s xxljob.Store, p *xxljob.Plan)) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, claim: func(ctx context.Context, p xxljob.Plan) xxljob.Plan { change(ctx, s, &p); return p }}
		}
	}
	edit := func(change func(e *xxljob.Edit)) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, edit: func(e xxljob.Edit) xxljob.Edit { change(&e); return e }}
		}
	}
	scan := func(change func(q store.ScanQuery, r xxljob.ScanResult) xxljob.ScanResult) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store { return &broken{Store: s, scan: change} }
	}
	// always makes Change ask for a replan, or never.
	always := func(replan bool) func(e *xxljob.Edit) {
		return func(e *xxljob.Edit) {
			change, next := e.Change, e.Next
			e.Change = func(j *xxljob.Job) (bool, error) { _, err := change(j); return replan, err }
			e.Next = func(j xxljob.Job, at, now time.Time) (time.Time, error) {
				if next == nil {
					return j.Next, nil
				}
				return next(j, at, now)
			}
		}
	}
	return []mutant{
		{"ClaimIgnoresTheEpoch", claim(func(ctx context.Context, s xxljob.Store, p *xxljob.Plan) { p.Epoch = epoch(ctx, s, p.Shard) }),
			[]string{"Claim/OldEpochInsertsNone", "Claim/FailedPlansLeaveOthersAlone"}},
		{"ClaimTrustsTheShardOfThePlan", claim(func(ctx context.Context, s xxljob.Store, p *xxljob.Plan) {
			if job, err := s.Job(ctx, p.JobID); err == nil && p.Epoch == epoch(ctx, s, p.Shard) {
				p.Shard, p.Epoch = job.Shard, epoch(ctx, s, job.Shard)
			}
		}), []string{"Claim/ComparesTheEpochOfTheJobsShard"}},
		{"ClaimIgnoresTheVersion", claim(func(ctx context.Context, s xxljob.Store, p *xxljob.Plan) {
			if job, err := s.Job(ctx, p.JobID); err == nil {
				p.Version = job.Version
			}
		}), []string{"Claim/ComparesVersion", "Claim/EditBetweenScanAndClaimDefeatsIt"}},
		{"ClaimIgnoresNext", claim(func(ctx context.Context, s xxljob.Store, p *xxljob.Plan) {
			if job, err := s.Job(ctx, p.JobID); err == nil {
				p.Due = job.Next
			}
		}), []string{"Claim/ComparesNext", "Claim/TwiceWithOneReadInsertsOneSet", "Race/ClaimersWithOneReadInsertOneSet"}},
		{"ClaimForgetsTheWait", claim(func(_ context.Context, _ xxljob.Store, p *xxljob.Plan) { p.Wait = false }),
			[]string{"Claim/WaitMakesTheJobWait", "Arm/EveryEndRearmsAWaitingJob"}},
		{"EditAlwaysReplans", edit(always(true)), []string{"Edit/WithoutReplanKeepsPlannedRuns", "Edit/NoChangeWritesNothing"}},
		{"EditNeverReplans", edit(always(false)), []string{"Edit/ReplanCancelsScheduleBornRunsOnly", "Start/CancelledByAStopNeverStarts", "Race/EditAgainstStart", "Race/EditAgainstClaim"}},
		{"EditIgnoresTheVersion", edit(func(e *xxljob.Edit) { e.Version = 0 }), []string{"Edit/VersionIsCompared", "Race/EditsOfOneVersion"}},
		{"EditHidesWhatWasStarted", edit(func(e *xxljob.Edit) {
			if next := e.Next; next != nil {
				e.Next = func(j xxljob.Job, _, now time.Time) (time.Time, error) { return next(j, time.Time{}, now) }
			}
		}), []string{"Edit/ReplanGivesTheLatestStartedInstant"}},
		{"EditTellsAnOldTime", edit(func(e *xxljob.Edit) {
			if next := e.Next; next != nil {
				e.Next = func(j xxljob.Job, s, now time.Time) (time.Time, error) {
					return next(j, s, now.Add(-200*time.Millisecond))
				}
			}
		}), []string{"Edit/GivesTheTimeOfTheEdit", "Race/EditNearInstants"}},
		{"EditMissesByAnOldTime", edit(func(e *xxljob.Edit) {
			if missed := e.Missed; missed != nil {
				e.Missed = func(j xxljob.Job, now time.Time) (xxljob.NewRun, bool) {
					return missed(j, now.Add(-200*time.Millisecond))
				}
			}
		}), []string{"Edit/GivesTheTimeOfTheEdit", "Race/EditNearInstants"}},
		{"AddTellsAnOldTime", func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, first: func(first xxljob.FirstInstant) xxljob.FirstInstant {
				return func(j xxljob.Job, now time.Time) (time.Time, error) { return first(j, now.Add(-200*time.Millisecond)) }
			}}
		}, []string{"Job/AddAsksForTheFirstInstant"}},
		{"AddForgetsTheFirstInstant", func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, first: func(xxljob.FirstInstant) xxljob.FirstInstant { return nil }}
		}, []string{"Job/AddAsksForTheFirstInstant"}},
		{"ScanIsLate", scan(func(_ store.ScanQuery, r xxljob.ScanResult) xxljob.ScanResult {
			r.Next = r.Next.Add(time.Millisecond)
			return r
		}), []string{"Scan/NextIsExact"}},
		{"ScanForgetsForeignRuns", scan(func(_ store.ScanQuery, r xxljob.ScanResult) xxljob.ScanResult { r.Runs = nil; return r }),
			[]string{"Scan/RunsOfAnotherEpoch"}},
		{"ScanCountsNothing", scan(func(_ store.ScanQuery, r xxljob.ScanResult) xxljob.ScanResult {
			for i := range r.Jobs {
				r.Jobs[i].Waiting = 0
			}
			return r
		}), []string{"Scan/WaitingCountsPlannedRuns"}},
		{"PlannedPagesByTimeAlone", func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, planned: func(q store.PlannedQuery) store.PlannedQuery {
				if !q.After.IsZero() {
					q.AfterID = 1 << 52
				}
				return q
			}}
		}, []string{"Scan/PlannedPagesCoverAllOnce"}},
		{"SweepIsIdle", func(s xxljob.Store) xxljob.Store { return idleSweep{s} }, []string{"Arm/SweepFinishes", "Faults/Sweep"}},
	}
}

type idleSweep struct{ xxljob.Store }

func (idleSweep) Sweep(ctx context.Context, _ []store.Shard) error { return ctx.Err() }

func startMutants() []mutant {
	start := func(change func(ctx context.Context, s xxljob.Store, x *xxljob.Start)) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, start: func(ctx context.Context, x xxljob.Start) xxljob.Start { change(ctx, s, &x); return x }}
		}
	}
	settle := func(change func(ctx context.Context, s xxljob.Store, v *xxljob.Verdict)) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, verdict: func(ctx context.Context, v xxljob.Verdict) xxljob.Verdict { change(ctx, s, &v); return v }}
		}
	}
	return []mutant{
		{"StartIgnoresTheEpoch", start(func(ctx context.Context, s xxljob.Store, x *xxljob.Start) { x.Epoch = epoch(ctx, s, x.Shard) }),
			[]string{"Start/OldEpochStartsNone", "Start/AnswersInOrder"}},
		{"StartIgnoresTheVersion", start(func(ctx context.Context, s xxljob.Store, x *xxljob.Start) {
			if job, err := s.Job(ctx, x.JobID); err == nil {
				x.JobVersion = job.Version
			}
		}), []string{"Start/StaleWhenTheVersionMoved"}},
		{"StartIgnoresSerial", start(func(_ context.Context, _ xxljob.Store, x *xxljob.Start) { x.Serial = false }),
			[]string{"Start/BusyAtOneAttachedAddress", "Start/BusyWithinOneBatch", "Race/SerialStartersOfOneJob"}},
		{"StartIsAlwaysSerial", start(func(_ context.Context, _ xxljob.Store, x *xxljob.Start) { x.Serial = true }),
			[]string{"Start/NotBusyWithoutSerialOrElsewhere"}},
		{"StartForgetsTheBroadcast", start(func(_ context.Context, _ xxljob.Store, x *xxljob.Start) { x.Targets = nil }),
			[]string{"Start/BroadcastInsertsStartedSiblings"}},
		{"FinishIgnoresTheFence", func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, result: func(_ context.Context, r xxljob.Result) xxljob.Result { r.Incarnation, r.Token = "", 0; return r }}
		}, []string{"Finish/AttachedResultsAreFenced", "Settle/ToStartedAdoptsTheRun"}},
		{"FinishAcceptsTwice", func(s xxljob.Store) xxljob.Store { return acceptsTwice{s} },
			[]string{"Finish/FirstOfTwoIsAccepted", "Finish/OfConcurrentDuplicatesOneIsAccepted", "Finish/AfterLostIsNotedOnce"}},
		{"SettleIgnoresTaken", settle(func(ctx context.Context, s xxljob.Store, v *xxljob.Verdict) {
			if run, err := s.Run(ctx, v.RunID); err == nil {
				v.Taken = !run.Taken.IsZero()
			}
		}), []string{"Settle/MismatchChangesNothing", "Race/TakeAgainstGivingBack"}},
		{"SettleIgnoresTheEpoch", settle(func(ctx context.Context, s xxljob.Store, v *xxljob.Verdict) { v.Epoch = epoch(ctx, s, v.Shard) }),
			[]string{"Settle/OldEpochSettlesNone", "Settle/MismatchChangesNothing"}},
		{"TakeByAnybody", func(s xxljob.Store) xxljob.Store { return takeByAnybody{s} }, []string{"Inbox/TakeByTheAddresseeOnly"}},
		{"KillIsIdle", func(s xxljob.Store) xxljob.Store { return idleKill{s} },
			[]string{"Run/KillMarksAStartedOrDispatchedRun", "Run/KillCancelsAPlannedRun", "Inbox/HoldsKillsOfTakenUnendedRuns"}},
		{"ReaddressIgnoresTheEpoch", func(s xxljob.Store) xxljob.Store { return readdressAny{s} }, []string{"HandOver/ReaddressMismatchChangesNothing"}},
	}
}

// acceptsTwice answers a duplicate as if it had been accepted.
type acceptsTwice struct{ xxljob.Store }

func (a acceptsTwice) Finish(ctx context.Context, dst []xxljob.Run, results []xxljob.Result) ([]xxljob.Run, error) {
	if _, err := a.Store.Finish(ctx, nil, results); err != nil {
		return nil, err
	}
	var accepted []xxljob.Run
	for _, r := range results {
		if run, err := a.Store.Run(ctx, r.RunID); err == nil {
			accepted = append(accepted, run)
		}
	}
	return accepted, nil
}

type takeByAnybody struct{ xxljob.Store }

func (a takeByAnybody) Take(ctx context.Context, _ string, ids []int64) ([]xxljob.Run, error) {
	var taken []xxljob.Run
	for _, id := range ids {
		run, _ := a.Store.Run(ctx, id)
		if inc, ok := store.LocalIncarnation(run.Address); ok {
			runs, err := a.Store.Take(ctx, inc, []int64{id})
			if err != nil {
				return nil, err
			}
			taken = append(taken, runs...)
		}
	}
	return taken, ctx.Err()
}

type idleKill struct{ xxljob.Store }

func (k idleKill) Kill(ctx context.Context, id int64, _ string) (xxljob.Run, error) {
	return k.Run(ctx, id)
}

type readdressAny struct{ xxljob.Store }

func (a readdressAny) Readdress(ctx context.Context, r store.Readdress) (bool, error) {
	r.Epoch = epoch(ctx, a.Store, r.Shard)
	return a.Store.Readdress(ctx, r)
}

func valueMutants() []mutant {
	return []mutant{
		{"JobsAreShared", func(s xxljob.Store) xxljob.Store {
			kept := map[[2]int64][]int64{}
			return &broken{Store: s, jobOut: func(j xxljob.Job) xxljob.Job {
				key := [2]int64{j.ID, j.Version}
				if kept[key] == nil {
					kept[key] = j.Children
				}
				j.Children = kept[key]
				return j
			}}
		}, []string{"Common/JobsAreCopied"}},
		{"TimesAreLocal", func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, jobOut: func(j xxljob.Job) xxljob.Job { j.Next = j.Next.In(time.FixedZone("", 60)); return j }}
		}, []string{"Common/TimesAreUTCMilliseconds", "Job/AddGivesIDVersionAndShard"}},
		{"RunsOldestFirst", func(s xxljob.Store) xxljob.Store { return &broken{Store: s, runs: slices.Reverse[[]xxljob.Run]} },
			[]string{"Run/RunsNewestFirstPagesCoverAllOnce", "Run/RunsFilters"}},
		{"EmptyStatesChooseNothing", func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, filter: func(f *xxljob.RunFilter) {
				if f.States != nil && len(f.States) == 0 {
					f.States = []xxljob.State{99}
				}
			}}
		}, []string{"Run/RunsFilters"}},
		{"KeysAreForgotten", func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, trigger: func(t xxljob.Trigger) xxljob.Trigger { t.Key = ""; return t }}
		}, []string{"Run/AddWithKeyIsIdempotent", "Run/AddWithKeyFrom50Callers"}},
		{"AddJobIgnoresItsCtx", func(s xxljob.Store) xxljob.Store { return &broken{Store: s, deafAddJob: true} }, []string{"Faults/AddJob"}},
		{"BuryIgnoresTheCounter", func(s xxljob.Store) xxljob.Store { return hasty{s} }, []string{"Node/BuryNeedsAnUnmovedCounter"}},
		{"TakeShardsFromAnybody", func(s xxljob.Store) xxljob.Store { return greedy{s} },
			[]string{"Shards/TakeComparesOwnerAndEpoch", "Shards/TakeConcurrentlyGivesEachToOne"}},
		{"AnyNumberOfShards", func(s xxljob.Store) xxljob.Store { return anyShards{s} }, []string{"Shards/AnotherNumberNamesBoth"}},
		{"SilentWithoutPoll", func(s xxljob.Store) xxljob.Store { return silent{s} }, []string{"Signals/NoPollNeedsEverySignal"}},
		{"EnsureGroupReplaces", func(s xxljob.Store) xxljob.Store { return eager{s} }, []string{"Group/EnsureWritesNothingWhereThereIsOne"}},
	}
}

type hasty struct{ xxljob.Store }

func (h hasty) Bury(ctx context.Context, incarnation string, _ int64) error {
	v, err := h.Beat(ctx, "observer", nil)
	for _, n := range v.Nodes {
		if n.Incarnation == incarnation {
			return h.Store.Bury(ctx, incarnation, n.Beats)
		}
	}
	return err
}

type greedy struct{ xxljob.Store }

func (g greedy) TakeShards(ctx context.Context, incarnation string, shards []store.Shard) ([]store.Shard, error) {
	v, err := g.Beat(ctx, "observer", nil)
	if err != nil {
		return nil, err
	}
	var now []store.Shard
	for _, s := range shards {
		now = append(now, v.Shards[s.ID])
	}
	return g.Store.TakeShards(ctx, incarnation, now)
}

type anyShards struct{ xxljob.Store }

func (a anyShards) SetShards(ctx context.Context, n int) error {
	_ = a.Store.SetShards(ctx, n)
	return ctx.Err()
}

type silent struct{ xxljob.Store }

func (silent) Watch(context.Context, string) store.Signals { return store.Signals{} }

type eager struct{ xxljob.Store }

func (g eager) EnsureGroup(ctx context.Context, app string) error {
	return g.SaveGroup(ctx, xxljob.Group{App: app})
}
