// Package mutant has stores that break the contract, each in one place: a working store with one guard
// broken, and the cases of package storetest that have to find it. A rule that is new in the contract
// has a mutant here, in the file of its topic.
package mutant

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
)

// whole is a working store, as the mutants are made of.
type whole = bent.All

// Mutant is a working store with one guard broken, and the cases that have to find it.
type Mutant struct {
	Name  string
	Bend  func(whole) any // returns what has the methods that are broken; those that it has not are the store's
	Cases []string        // as topic/case
}

// Wrap returns the mutant of s.
func (m Mutant) Wrap(s whole) store.Store {
	by := m.Bend(s)
	if more, is := by.(store.Store); is {
		return more
	}
	return bent.AllOf(s, by)
}

// All are the mutants of all topics.
func All() []Mutant {
	return slices.Concat(
		planMutants(),
		startMutants(),
		valueMutants(),
		ruleMutants(),
		addresseeMutants(),
		bootMutants(),
		conclusionMutants(),
		logMutants(),
		logPageMutants(),
		progressMutants(),
		traceMutants(),
		standsMutants(),
		registryMutants(),
		listMutants(),
		boundedMutants(),
		aheadMutants(),
		followMutants(),
		owedMutants(),
		unreportedMutants(),
		alarmMutants(),
		readMutants(),
		readJobMutants(),
		reportMutants(),
		recordMutants(),
		dropMutants(),
		clockMutants(),
		accountMutants(),
		zoneMutants(),
		processMutants(),
		muteMutants(),
		appTokenMutants(),
		troubleMutants(),
	)
}

// broken changes what goes in and comes out of many methods of a store; what is left nil changes nothing.
type broken struct {
	st         whole
	claim      func(ctx context.Context, p store.Plan) store.Plan
	start      func(ctx context.Context, s store.Start) store.Start
	verdict    func(ctx context.Context, v store.Verdict) store.Verdict
	result     func(ctx context.Context, r store.Result) store.Result
	edit       func(e store.Edit) store.Edit
	trigger    func(t store.Trigger) store.Trigger
	scan       func(q store.ScanQuery, r store.ScanResult) store.ScanResult
	runs       func([]store.Run)
	filter     func(*store.RunFilter)
	jobOut     func(store.Job) store.Job
	planned    func(q store.PlannedQuery) store.PlannedQuery
	first      func(store.FirstInstant) store.FirstInstant
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

func (b *broken) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) ([]store.Run, error) {
	return b.st.Claim(ctx, nil, each(ctx, plans, b.claim))
}

func (b *broken) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	return b.st.Start(ctx, nil, each(ctx, starts, b.start))
}

func (b *broken) Settle(ctx context.Context, verdicts []store.Verdict) ([]store.Run, error) {
	return b.st.Settle(ctx, each(ctx, verdicts, b.verdict))
}

func (b *broken) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	return b.st.Finish(ctx, nil, each(ctx, results, b.result))
}

func (b *broken) EditJob(ctx context.Context, id int64, e store.Edit) (store.Job, error) {
	if b.edit != nil {
		e = b.edit(e)
	}
	return b.st.EditJob(ctx, id, e)
}

func (b *broken) AddRun(ctx context.Context, id int64, t store.Trigger) (store.Run, error) {
	if b.trigger != nil {
		t = b.trigger(t)
	}
	return b.st.AddRun(ctx, id, t)
}

func (b *broken) AddJob(ctx context.Context, job store.Job, first store.FirstInstant) (store.Job, error) {
	if b.deafAddJob {
		ctx = context.WithoutCancel(ctx)
	}
	if b.first != nil && first != nil {
		first = b.first(first)
	}
	return b.st.AddJob(ctx, job, first)
}

func (b *broken) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	r, err := b.st.Scan(ctx, dst, q)
	if b.scan != nil {
		r = b.scan(q, r)
	}
	return r, err
}

func (b *broken) Planned(ctx context.Context, dst []store.Run, q store.PlannedQuery) ([]store.Run, error) {
	if b.planned != nil {
		q = b.planned(q)
	}
	return b.st.Planned(ctx, dst, q)
}

func (b *broken) Runs(ctx context.Context, f store.RunFilter) ([]store.Run, error) {
	if b.filter != nil {
		b.filter(&f)
	}
	runs, err := b.st.Runs(ctx, f)
	if b.runs != nil {
		b.runs(runs)
	}
	return runs, err
}

func (b *broken) Job(ctx context.Context, id int64) (store.Job, error) {
	job, err := b.st.Job(ctx, id)
	if b.jobOut != nil && err == nil {
		job = b.jobOut(job)
	}
	return job, err
}

// epoch returns the epoch that the shard has now.
func epoch(ctx context.Context, s store.Store, shard int) int64 {
	v, _ := s.Beat(ctx, "observer", nil)
	for _, x := range v.Shards {
		if x.ID == shard {
			return x.Epoch
		}
	}
	return 0
}

func planMutants() []Mutant {
	claim := func(change func(ctx context.Context, s store.Store, p *store.Plan)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, claim: func(ctx context.Context, p store.Plan) store.Plan { change(ctx, s, &p); return p }}
		}
	}
	edit := func(change func(e *store.Edit)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, edit: func(e store.Edit) store.Edit { change(&e); return e }}
		}
	}
	scan := func(change func(q store.ScanQuery, r store.ScanResult) store.ScanResult) func(whole) any {
		return func(s whole) any { return &broken{st: s, scan: change} }
	}
	// always makes Change ask for a replan, or never.
	always := func(replan bool) func(e *store.Edit) {
		return func(e *store.Edit) {
			change, next := e.Change, e.Next
			e.Change = func(j *store.Job) (bool, error) { _, err := change(j); return replan, err }
			e.Next = func(j store.Job, at, now time.Time) (time.Time, error) {
				if next == nil {
					return j.Next, nil
				}
				return next(j, at, now)
			}
		}
	}
	return []Mutant{
		{"ClaimIgnoresTheEpoch", claim(func(ctx context.Context, s store.Store, p *store.Plan) { p.Epoch = epoch(ctx, s, p.Shard) }),
			[]string{"Claim/OldEpochInsertsNone", "Claim/FailedPlansLeaveOthersAlone"}},
		{"ClaimTrustsTheShardOfThePlan", claim(func(ctx context.Context, s store.Store, p *store.Plan) {
			if job, err := s.Job(ctx, p.JobID); err == nil && p.Epoch == epoch(ctx, s, p.Shard) {
				p.Shard, p.Epoch = job.Shard, epoch(ctx, s, job.Shard)
			}
		}), []string{"Claim/ComparesTheEpochOfTheJobsShard"}},
		{"ClaimIgnoresTheVersion", claim(func(ctx context.Context, s store.Store, p *store.Plan) {
			if job, err := s.Job(ctx, p.JobID); err == nil {
				p.Version = job.Version
			}
		}), []string{"Claim/ComparesVersion", "Claim/EditBetweenScanAndClaimDefeatsIt"}},
		{"ClaimIgnoresNext", claim(func(ctx context.Context, s store.Store, p *store.Plan) {
			if job, err := s.Job(ctx, p.JobID); err == nil {
				p.Due = job.Next
			}
		}), []string{"Claim/ComparesNext", "Claim/TwiceWithOneReadInsertsOneSet", "Race/ClaimersWithOneReadInsertOneSet"}},
		{"ClaimForgetsTheWait", claim(func(_ context.Context, _ store.Store, p *store.Plan) { p.Wait = false }),
			[]string{"Claim/WaitMakesTheJobWait", "Arm/EveryEndRearmsAWaitingJob"}},
		{"EditAlwaysReplans", edit(always(true)), []string{"Edit/WithoutReplanKeepsPlannedRuns", "Edit/NoChangeWritesNothing"}},
		{"EditNeverReplans", edit(always(false)), []string{"Edit/ReplanCancelsScheduleBornRunsOnly", "Start/CancelledByAStopNeverStarts", "Race/EditAgainstStart", "Race/EditAgainstClaim"}},
		{"EditIgnoresTheVersion", edit(func(e *store.Edit) { e.Version = 0 }), []string{"Edit/VersionIsCompared", "Race/EditsOfOneVersion"}},
		{"EditHidesWhatWasStarted", edit(func(e *store.Edit) {
			if next := e.Next; next != nil {
				e.Next = func(j store.Job, _, now time.Time) (time.Time, error) { return next(j, time.Time{}, now) }
			}
		}), []string{"Edit/ReplanGivesTheLatestStartedInstant"}},
		{"EditTellsAnOldTime", edit(func(e *store.Edit) {
			if next := e.Next; next != nil {
				e.Next = func(j store.Job, s, now time.Time) (time.Time, error) {
					return next(j, s, now.Add(-200*time.Millisecond))
				}
			}
		}), []string{"Edit/GivesTheTimeOfTheEdit", "Race/EditNearInstants"}},
		{"RecordsOfEditsAreKeptBack", edit(func(e *store.Edit) { e.Recorded = nil }), []string{"Edit/RecordsWhatNothingWasPlannedFor"}},
		{"EditMissesByAnOldTime", edit(func(e *store.Edit) {
			if missed := e.Missed; missed != nil {
				e.Missed = func(j store.Job, now time.Time) (store.NewRun, bool) {
					return missed(j, now.Add(-200*time.Millisecond))
				}
			}
		}), []string{"Edit/GivesTheTimeOfTheEdit", "Race/EditNearInstants"}},
		{"AddTellsAnOldTime", func(s whole) any {
			return &broken{st: s, first: func(first store.FirstInstant) store.FirstInstant {
				return func(j store.Job, now time.Time) (time.Time, error) { return first(j, now.Add(-200*time.Millisecond)) }
			}}
		}, []string{"Job/AddAsksForTheFirstInstant"}},
		{"AddForgetsTheFirstInstant", func(s whole) any {
			return &broken{st: s, first: func(store.FirstInstant) store.FirstInstant { return nil }}
		}, []string{"Job/AddAsksForTheFirstInstant"}},
		{"ScanIsLate", scan(func(_ store.ScanQuery, r store.ScanResult) store.ScanResult {
			r.Next = r.Next.Add(time.Millisecond)
			return r
		}), []string{"Scan/NextIsExact"}},
		{"ScanForgetsForeignRuns", scan(func(_ store.ScanQuery, r store.ScanResult) store.ScanResult { r.Runs = nil; return r }),
			[]string{"Scan/RunsOfAnotherEpoch"}},
		{"ScanCountsNothing", scan(func(_ store.ScanQuery, r store.ScanResult) store.ScanResult {
			for i := range r.Jobs {
				r.Jobs[i].Waiting = 0
			}
			return r
		}), []string{"Scan/WaitingCountsPlannedRuns"}},
		{"PlannedPagesByTimeAlone", func(s whole) any {
			return &broken{st: s, planned: func(q store.PlannedQuery) store.PlannedQuery {
				if !q.After.IsZero() {
					q.AfterID = 1 << 52
				}
				return q
			}}
		}, []string{"Scan/PlannedPagesCoverAllOnce"}},
		{"SweepIsIdle", func(whole) any { return idleSweep{} }, []string{"Arm/SweepFinishes", "Faults/Sweep"}},
	}
}

type idleSweep struct{}

func (idleSweep) Sweep(ctx context.Context, _ []store.Shard) error { return ctx.Err() }

func startMutants() []Mutant {
	start := func(change func(ctx context.Context, s store.Store, x *store.Start)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, start: func(ctx context.Context, x store.Start) store.Start { change(ctx, s, &x); return x }}
		}
	}
	settle := func(change func(ctx context.Context, s store.Store, v *store.Verdict)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, verdict: func(ctx context.Context, v store.Verdict) store.Verdict { change(ctx, s, &v); return v }}
		}
	}
	return []Mutant{
		{"StartIgnoresTheEpoch", start(func(ctx context.Context, s store.Store, x *store.Start) { x.Epoch = epoch(ctx, s, x.Shard) }),
			[]string{"Start/OldEpochStartsNone", "Start/AnswersInOrder"}},
		{"StartIgnoresTheVersion", start(func(ctx context.Context, s store.Store, x *store.Start) {
			if job, err := s.Job(ctx, x.JobID); err == nil {
				x.JobVersion = job.Version
			}
		}), []string{"Start/StaleWhenTheVersionMoved"}},
		{"StartIgnoresSerial", start(func(_ context.Context, _ store.Store, x *store.Start) { x.Serial = false }),
			[]string{"Start/BusyAtOneAttachedAddress", "Start/BusyWithinOneBatch", "Race/SerialStartersOfOneJob"}},
		{"StartIsAlwaysSerial", start(func(_ context.Context, _ store.Store, x *store.Start) { x.Serial = true }),
			[]string{"Start/NotBusyWithoutSerialOrElsewhere"}},
		{"StartForgetsTheBroadcast", start(func(_ context.Context, _ store.Store, x *store.Start) { x.Targets = nil }),
			[]string{"Start/BroadcastInsertsStartedSiblings"}},
		{"StartCoversNothing", start(func(_ context.Context, _ store.Store, x *store.Start) { x.Covers = nil }),
			[]string{"Start/DiscardsWhatItCovers"}},
		{"FinishIgnoresTheFence", func(s whole) any {
			return &broken{st: s, result: func(_ context.Context, r store.Result) store.Result { r.Incarnation, r.Token = "", 0; return r }}
		}, []string{"Finish/AttachedResultsAreFenced", "Settle/ToStartedAdoptsTheRun"}},
		{"FinishAcceptsTwice", func(s whole) any { return acceptsTwice{s} },
			[]string{"Finish/FirstOfTwoIsAccepted", "Finish/OfConcurrentDuplicatesOneIsAccepted", "Finish/AfterLostIsNotedOnce"}},
		{"SettleIgnoresTaken", settle(func(ctx context.Context, s store.Store, v *store.Verdict) {
			if run, err := s.Run(ctx, v.RunID); err == nil {
				v.Taken = !run.Taken.IsZero()
			}
		}), []string{"Settle/MismatchChangesNothing", "Race/TakeAgainstGivingBack"}},
		{"SettleIgnoresTheEpoch", settle(func(ctx context.Context, s store.Store, v *store.Verdict) { v.Epoch = epoch(ctx, s, v.Shard) }),
			[]string{"Settle/OldEpochSettlesNone", "Settle/MismatchChangesNothing"}},
		{"TakeByAnybody", func(s whole) any { return takeByAnybody{s} }, []string{"Inbox/TakeByTheAddresseeOnly"}},
		{"KillIsIdle", func(s whole) any { return idleKill{s} },
			[]string{"Run/KillMarksAStartedOrDispatchedRun", "Run/KillCancelsAPlannedRun", "Inbox/HoldsKillsOfTakenUnendedRuns"}},
		{"ReaddressIgnoresTheEpoch", func(s whole) any { return readdressAny{s} }, []string{"HandOver/ReaddressMismatchChangesNothing"}},
	}
}

// acceptsTwice answers a duplicate as if it had been accepted.
type acceptsTwice struct{ st whole }

func (a acceptsTwice) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	if _, err := a.st.Finish(ctx, nil, results); err != nil {
		return nil, err
	}
	var accepted []store.Run
	for _, r := range results {
		if run, err := a.st.Run(ctx, r.RunID); err == nil {
			accepted = append(accepted, run)
		}
	}
	return accepted, nil
}

type takeByAnybody struct{ st whole }

func (a takeByAnybody) Take(ctx context.Context, _ string, ids []int64) ([]store.Run, error) {
	var taken []store.Run
	for _, id := range ids {
		run, _ := a.st.Run(ctx, id)
		if inc, ok := store.LocalIncarnation(run.Address); ok {
			runs, err := a.st.Take(ctx, inc, []int64{id})
			if err != nil {
				return nil, err
			}
			taken = append(taken, runs...)
		}
	}
	return taken, ctx.Err()
}

type idleKill struct{ st whole }

func (k idleKill) Kill(ctx context.Context, id int64, _ string) (store.Run, error) {
	return k.st.Run(ctx, id)
}

type readdressAny struct{ st whole }

func (a readdressAny) Readdress(ctx context.Context, r store.Readdress) (bool, error) {
	r.Epoch = epoch(ctx, a.st, r.Shard)
	return a.st.Readdress(ctx, r)
}

func valueMutants() []Mutant {
	return []Mutant{
		{"JobsAreShared", func(s whole) any {
			kept := map[[2]int64][]int64{}
			return &broken{st: s, jobOut: func(j store.Job) store.Job {
				key := [2]int64{j.ID, j.Version}
				if kept[key] == nil {
					kept[key] = j.Children
				}
				j.Children = kept[key]
				return j
			}}
		}, []string{"Common/JobsAreCopied"}},
		{"TimesAreLocal", func(s whole) any {
			return &broken{st: s, jobOut: func(j store.Job) store.Job { j.Next = j.Next.In(time.FixedZone("", 60)); return j }}
		}, []string{"Common/TimesAreUTCMilliseconds", "Job/AddGivesIDVersionAndShard"}},
		{"RunsOldestFirst", func(s whole) any { return &broken{st: s, runs: slices.Reverse[[]store.Run]} },
			[]string{"Run/RunsNewestFirstPagesCoverAllOnce", "Run/RunsFilters"}},
		{"EmptyStatesChooseNothing", func(s whole) any {
			return &broken{st: s, filter: func(f *store.RunFilter) {
				if f.States != nil && len(f.States) == 0 {
					f.States = []store.State{99}
				}
			}}
		}, []string{"Run/RunsFilters"}},
		{"EndedSinceIsForgotten", func(s whole) any {
			return &broken{st: s, filter: func(f *store.RunFilter) { f.EndedSince = time.Time{} }}
		}, []string{"Run/RunsEndedSinceAmongThoseLookedAt"}},
		{"EndedSinceLooksAtAll", func(s whole) any {
			return &broken{st: s, filter: func(f *store.RunFilter) {
				if !f.EndedSince.IsZero() {
					f.Limit = 0
				}
			}}
		}, []string{"Run/RunsEndedSinceAmongThoseLookedAt"}},
		{"KeysAreForgotten", func(s whole) any {
			return &broken{st: s, trigger: func(t store.Trigger) store.Trigger { t.Key = ""; return t }}
		}, []string{"Run/AddWithKeyIsIdempotent", "Run/AddWithKeyFrom50Callers"}},
		{"AddJobIgnoresItsCtx", func(s whole) any { return &broken{st: s, deafAddJob: true} }, []string{"Faults/AddJob"}},
		{"BuryIgnoresTheCounter", func(s whole) any { return hasty{s} }, []string{"Node/BuryNeedsAnUnmovedCounter"}},
		{"TakeShardsFromAnybody", func(s whole) any { return greedy{s} },
			[]string{"Shards/TakeComparesOwnerAndEpoch", "Shards/TakeConcurrentlyGivesEachToOne"}},
		{"AnyNumberOfShards", func(s whole) any { return anyShards{s} }, []string{"Shards/AnotherNumberNamesBoth"}},
		{"SilentWithoutPoll", func(whole) any { return silent{} }, []string{"Signals/NoPollNeedsEverySignal"}},
		{"EnsureGroupReplaces", func(s whole) any { return eager{s} }, []string{"Group/EnsureWritesNothingWhereThereIsOne"}},
	}
}

type hasty struct{ st whole }

func (h hasty) Bury(ctx context.Context, incarnation string, _ int64) error {
	v, err := h.st.Beat(ctx, "observer", nil)
	for _, n := range v.Nodes {
		if n.Incarnation == incarnation {
			return h.st.Bury(ctx, incarnation, n.Beats)
		}
	}
	return err
}

type greedy struct{ st whole }

func (g greedy) TakeShards(ctx context.Context, incarnation string, shards []store.Shard) ([]store.Shard, error) {
	v, err := g.st.Beat(ctx, "observer", nil)
	if err != nil {
		return nil, err
	}
	var now []store.Shard
	for _, s := range shards {
		now = append(now, v.Shards[s.ID])
	}
	return g.st.TakeShards(ctx, incarnation, now)
}

type anyShards struct{ st whole }

func (a anyShards) SetShards(ctx context.Context, n int) error {
	_ = a.st.SetShards(ctx, n)
	return ctx.Err()
}

type silent struct{}

func (silent) Watch(context.Context, string) store.Signals { return store.Signals{} }

type eager struct{ st whole }

func (g eager) EnsureGroup(ctx context.Context, app string) error {
	return g.st.SaveGroup(ctx, store.Group{App: app})
}
