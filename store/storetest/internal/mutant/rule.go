package mutant

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/store"
)

// ruleMutants break rules about jobs, kills and what a node finds.
func ruleMutants() []Mutant {
	return []Mutant{
		{"RefusalsAreNoStarts", func(s whole) any { return noRefusals{s} },
			[]string{"Edit/ReplanGivesTheLatestRefusedInstant"}},
		{"AnswersAreNotAppended", func(s whole) any { return forgetsRoom{s} }, []string{"Known/AnswersInOrder", "Known/AnswersInOrderOfThePlans"}},
		{"UsedMemoryShows", func(s whole) any { return leavesUsed{s} }, []string{"Known/AnswersInOrder"}},
		{"ManualJobsFinish", func(s whole) any { return finishesAll{s} },
			[]string{"Arm/AManualJobIsNeverFinished", "Arm/SweepLeavesTheRest"}},
		{"NobodySaysThatAJobStopped", func(s whole) any { return saysStopped{s, func(*store.Run) bool { return false }} },
			[]string{"Arm/TheRunSaysThatItsEndStoppedTheJob", "Arm/OfRunsThatEndTogetherOneSaysIt"}},
		{"EveryEndSaysThatTheJobStopped", func(s whole) any {
			return saysStopped{s, func(r *store.Run) bool { return r.State.Ended() }}
		}, []string{"Arm/TheRunSaysThatItsEndStoppedTheJob", "Arm/OfRunsThatEndTogetherOneSaysIt"}},
		{"EachShardIsFree", func(s whole) any { return seesShards{s, func(store.Shard) bool { return true }} },
			[]string{"Shards/FreeUnlessALiveNodeHasIt"}},
		{"OwnedShardsAreNeverFree", func(s whole) any {
			return seesShards{s, func(sh store.Shard) bool { return sh.Owner == "" }}
		}, []string{"Shards/FreeUnlessALiveNodeHasIt"}},
		{"RecordsAreWaitedFor", func(s whole) any { return waitsForRecords{s} },
			[]string{"Arm/ARecordRearmsAtOnce"}},
		{"KillKeepsTheLastReason", func(s whole) any { return &lastReason{st: s, reasons: map[int64]string{}} },
			[]string{"Run/KillKeepsTheFirstReason"}},
		{"KillKeepsAnEmptyReason", func(s whole) any { return emptyReason{s} },
			[]string{"Run/KillWithoutAReasonIsKilled"}},
		{"ClaimMatchesAZeroDue", func(s whole) any { return zeroDue{s} }, []string{"Claim/ZeroDueMatchesNoJob"}},
		{"LastForgetsSpans", func(s whole) any {
			return &broken{st: s, jobOut: func(j store.Job) store.Job {
				runs, _ := s.Runs(context.Background(), store.RunFilter{JobID: j.ID})
				for _, r := range runs {
					if r.Last.Equal(j.Last) {
						j.Last = r.Scheduled
					}
				}
				return j
			}}
		}, []string{"Claim/LastIsTheLatestInstantOfTheRuns"}},
		{"LastNeverGoesBack", func(s whole) any {
			last := map[int64]time.Time{}
			return &broken{st: s, jobOut: func(j store.Job) store.Job {
				if j.Last.Before(last[j.ID]) {
					j.Last = last[j.ID]
				}
				last[j.ID] = j.Last
				return j
			}}
		}, []string{"Claim/LastIsTheLatestInstantOfTheRuns"}},
		{"InboxKillsWhatIsNotTaken", inbox(func(in store.Inbox) store.Inbox {
			in.Kills = append(in.Kills, toKill(in.Runs)...)
			slices.SortFunc(in.Kills, func(a, b store.Run) int { return int(a.ID - b.ID) })
			return in
		}), []string{"Inbox/HoldsUntakenRunsThatAreToBeKilled"}},
		{"InboxHidesRunsToBeKilled", inbox(func(in store.Inbox) store.Inbox {
			in.Runs = slices.DeleteFunc(in.Runs, func(r store.Run) bool { return r.KillReason != "" })
			return in
		}), []string{"Inbox/HoldsUntakenRunsThatAreToBeKilled", "Inbox/HoldsKillsOfTakenUnendedRuns"}},
		{"TakeHidesWhatItEnded", func(s whole) any { return hidesEnded{s} }, []string{"Inbox/TakeEndsAKilledRun"}},
		{"BeatsForgetFailing", func(s whole) any { return forgetsFailing{s} }, []string{"Node/FailingIsAsItWasSaidLast"}},
		{"FailingOutlivesTheNode", func(s whole) any { return &failsForEver{st: s} }, []string{"Node/AnAddedNodeDoesNotFail"}},
		{"BeatMakesANodeYoung", func(s whole) any { return young{s} }, []string{"Node/ABuriedNodeSupersedesNobody"}},
		{"NamesAreThoseOfTheFirstReading", func(s whole) any {
			names := map[int64]store.Run{}
			return &broken{st: s, runs: func(list []store.Run) {
				for i, r := range list {
					if _, known := names[r.ID]; !known {
						names[r.ID] = r
					}
					list[i].JobName, list[i].JobKey = names[r.ID].JobName, names[r.ID].JobKey
				}
			}}
		}, []string{"Run/RunsHaveTheNamesOfTheirJobs"}},
		{"ScanForgetsPlannedRuns", func(s whole) any { return &scansOnce{st: s, seen: map[int64]bool{}} },
			[]string{"Scan/RunsReturnedStayPlanned"}},
	}
}

// noRefusals tells Edit.Next of runs that were started only.
type noRefusals struct{ st whole }

func (n noRefusals) EditJob(ctx context.Context, id int64, e store.Edit) (store.Job, error) {
	runs, _ := n.st.Runs(ctx, store.RunFilter{JobID: id})
	var latest time.Time
	for _, r := range runs {
		if r.Type.ScheduleBorn() && !r.Started.IsZero() && r.Scheduled.After(latest) {
			latest = r.Scheduled
		}
	}
	if next := e.Next; next != nil {
		e.Next = func(j store.Job, _, now time.Time) (time.Time, error) { return next(j, latest, now) }
	}
	return n.st.EditJob(ctx, id, e)
}

// finishesAll sweeps away every job without a next instant.
type finishesAll struct{ st whole }

func (f finishesAll) Sweep(ctx context.Context, shards []store.Shard) error {
	jobs, err := f.st.Jobs(ctx, store.JobFilter{Stopped: new(false)})
	for _, j := range jobs {
		if j.Next.IsZero() && j.Schedule.IsManual() {
			_, err = f.st.EditJob(ctx, j.ID, store.Edit{Verb: "stop", Change: func(j *store.Job) (bool, error) {
				j.Stopped, j.StopReason = true, store.StopFinished
				return false, nil
			}})
		}
	}
	return err
}

// waitsForRecords leaves a job that claimed a record without a next instant.
type waitsForRecords struct{ st whole }

func (w waitsForRecords) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) ([]store.Run, error) {
	for i := range plans {
		if p := &plans[i]; p.Wait && p.Runs[0].State.Ended() {
			p.Wait = false
		}
	}
	return w.st.Claim(ctx, dst, plans)
}

// lastReason gives every unended run the reason of the last kill.
type lastReason struct {
	st      whole
	mu      sync.Mutex
	reasons map[int64]string
}

func (l *lastReason) Kill(ctx context.Context, id int64, reason string) (store.Run, error) {
	l.mu.Lock()
	l.reasons[id] = reason
	l.mu.Unlock()
	run, err := l.st.Kill(ctx, id, reason)
	return l.changed(run), err
}

func (l *lastReason) Run(ctx context.Context, id int64) (store.Run, error) {
	run, err := l.st.Run(ctx, id)
	return l.changed(run), err
}

func (l *lastReason) changed(run store.Run) store.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reason := l.reasons[run.ID]; reason != "" && run.KillReason != "" {
		run.KillReason = reason
	}
	return run
}

type emptyReason struct{ st whole }

func (x emptyReason) Kill(ctx context.Context, id int64, reason string) (store.Run, error) {
	if reason == "" {
		reason = " "
	}
	return x.st.Kill(ctx, id, reason)
}

// zeroDue inserts runs for jobs that have no next instant.
type zeroDue struct{ st whole }

func (z zeroDue) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) ([]store.Run, error) {
	runs, err := z.st.Claim(ctx, nil, plans)
	for _, p := range plans {
		if p.Due.IsZero() {
			run, err := z.st.AddRun(ctx, p.JobID, store.Trigger{})
			return append(runs, run), err
		}
	}
	return runs, err
}

// inbox changes what Inbox returns.
func inbox(change func(store.Inbox) store.Inbox) func(whole) any {
	return func(s whole) any { return otherInbox{s, change} }
}

type otherInbox struct {
	st     whole
	change func(store.Inbox) store.Inbox
}

func (o otherInbox) Inbox(ctx context.Context, incarnation string, after int64, limit int) (store.Inbox, error) {
	in, err := o.st.Inbox(ctx, incarnation, after, limit)
	return o.change(in), err
}

func toKill(runs []store.Run) (found []store.Run) {
	for _, r := range runs {
		if r.KillReason != "" {
			found = append(found, r)
		}
	}
	return found
}

type hidesEnded struct{ st whole }

func (h hidesEnded) Take(ctx context.Context, incarnation string, ids []int64) ([]store.Run, error) {
	runs, err := h.st.Take(ctx, incarnation, ids)
	return slices.DeleteFunc(runs, func(r store.Run) bool { return r.State.Ended() }), err
}

// young joins a node that beats and is not there.
type young struct{ st whole }

func (y young) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	v, err := y.st.Beat(ctx, "observer", nil)
	if err != nil || incarnation == "observer" || hasNode(v, incarnation) {
		return y.st.Beat(ctx, incarnation, attached)
	}
	return y.st.Join(ctx, store.Node{ID: incarnation, Incarnation: incarnation, Attached: attached})
}

func hasNode(v store.View, incarnation string) bool {
	return slices.ContainsFunc(v.Nodes, func(n store.Node) bool { return n.Incarnation == incarnation })
}

// scansOnce takes what a Scan has returned for loaded, also in Planned.
type scansOnce struct {
	st   whole
	mu   sync.Mutex
	seen map[int64]bool
}

func (o *scansOnce) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	res, err := o.st.Scan(ctx, dst, q)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range res.Runs {
		o.seen[r.ID] = true
	}
	return res, err
}

func (o *scansOnce) Planned(ctx context.Context, dst []store.Run, q store.PlannedQuery) ([]store.Run, error) {
	runs, err := o.st.Planned(ctx, nil, q)
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(runs, func(r store.Run) bool { return o.seen[r.ID] }), err
}

// forgetsFailing takes the beat of a node for a sign that nothing fails there.
type forgetsFailing struct{ st whole }

func (f forgetsFailing) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	if incarnation != "observer" {
		if err := f.st.SetFailing(ctx, incarnation, false); err != nil {
			return store.View{}, err
		}
	}
	return f.st.Beat(ctx, incarnation, attached)
}

// failsForEver remembers who has failed, whatever became of the node.
type failsForEver struct {
	st      whole
	failing atomic.Value // an incarnation
}

func (f *failsForEver) SetFailing(ctx context.Context, incarnation string, failing bool) error {
	f.failing.Store(incarnation)
	return f.st.SetFailing(ctx, incarnation, failing)
}

func (f *failsForEver) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	v, err := f.st.Beat(ctx, incarnation, attached)
	for i := range v.Nodes {
		v.Nodes[i].Failing = v.Nodes[i].Failing || v.Nodes[i].Incarnation == f.failing.Load()
	}
	return v, err
}

// seesShards says by a rule of its own which shards are free.
type seesShards struct {
	st   whole
	free func(store.Shard) bool
}

func (s seesShards) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	v, err := s.st.Beat(ctx, incarnation, attached)
	for i := range v.Shards {
		v.Shards[i].Free = s.free(v.Shards[i])
	}
	return v, err
}

// saysStopped says by a rule of its own which ends have stopped the job.
type saysStopped struct {
	st   whole
	rule func(*store.Run) bool
}

func (s saysStopped) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	runs, err := s.st.Finish(ctx, nil, results)
	for i := range runs {
		runs[i].StoppedJob = s.rule(&runs[i])
	}
	return runs, err
}

// forgetsRoom answers in memory of its own.
type forgetsRoom struct{ st whole }

func (f forgetsRoom) Start(ctx context.Context, _ []store.Started, starts []store.Start) ([]store.Started, error) {
	return f.st.Start(ctx, nil, starts)
}

func (f forgetsRoom) Claim(ctx context.Context, _ []store.Run, plans []store.Plan) ([]store.Run, error) {
	return f.st.Claim(ctx, nil, plans)
}

// leavesUsed says how a start went, and leaves what the memory held before where it has no run to say.
type leavesUsed struct{ st whole }

func (l leavesUsed) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	answers, err := l.st.Start(ctx, nil, starts)
	for _, a := range answers {
		if a.Run.ID == 0 && len(dst) < cap(dst) {
			used := dst[:len(dst)+1][len(dst)].Run
			a.Run = used
		}
		dst = append(dst, a)
	}
	return dst, err
}
