package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/store"
)

// WhyJob returns why a job runs, or does not: the faults first, the gravest of them at the head, and
// then how things are. It is never empty. A job whose last trigger has failed is Failing, though Attention
// waits for more of them where the job is due often. The World is one that [ReadJob] has read.
func WhyJob(w World, id int64) []Finding {
	a := attention{look: lookAt(&w), dark: map[string]bool{}, byCause: map[string]int{}, single: true}
	j := a.jobs[id]
	if j == nil {
		return []Finding{{Cause: Removed, Jobs: []int64{id}}}
	}
	state := a.state(j)
	if state.Fault() || state.Cause != Halted {
		a.keep(j, a.cluster, a.troubles, a.apps, a.outcomes, a.waits)
		if n := a.nobody(j); n != nil && !a.has(NoExecutor) { // also of a job that is run by hand
			a.add(*n)
		}
		a.missed(j)
	}
	slices.SortStableFunc(a.found, func(x, y Finding) int { return cmp.Compare(gravity(x), gravity(y)) })
	if state.Fault() {
		return append([]Finding{state}, a.found...)
	}
	return append(a.found, state)
}

// keep looks for findings, and keeps those that have to do with a job.
func (a *attention) keep(j *store.Job, finds ...func()) {
	for _, find := range finds {
		find()
	}
	owner := ""
	for _, s := range a.Shards {
		if s.ID == j.Shard {
			owner = s.Owner
		}
	}
	a.found = slices.DeleteFunc(a.found, func(f Finding) bool {
		switch f.Cause {
		case ShardUnowned:
			_, lives := a.live[owner]
			return lives
		case NodeSilent, NodeFailing:
			for _, n := range a.Nodes {
				if n.Incarnation == owner && cmp.Or(n.ID, n.Incarnation) == f.Detail {
					return false
				}
			}
			return true
		}
		return f.App != "" && f.App != j.App || len(f.Jobs) > 0 && !slices.Contains(f.Jobs, j.ID)
	})
	for i := range a.found {
		if a.found[i].Cause == NoExecutor && a.Counts == nil { // which of its jobs are enabled was not asked
			a.found[i].Detail = ""
		}
		if len(a.found[i].Jobs) > 0 {
			a.found[i].Jobs, a.found[i].Name = []int64{j.ID}, j.Name
		}
	}
}

func (a *attention) has(c Cause) bool {
	return slices.ContainsFunc(a.found, func(f Finding) bool { return f.Cause == c })
}

// nobody is the finding that nobody serves the app of a job, or nil.
func (a *attention) nobody(j *store.Job) *Finding {
	if a.served[j.App] {
		return nil
	}
	return &Finding{Cause: NoExecutor, App: j.App, Since: a.gone[j.App].Gone}
}

// state is whether a job is due, and when.
func (a *attention) state(j *store.Job) Finding {
	f := Finding{App: j.App, Jobs: []int64{j.ID}, Name: j.Name}
	switch {
	case stoppedByError(j):
		f.Cause, f.Error, f.Since = Stopped, firstLine(j.StopReason), j.Updated
	case j.Stopped:
		f.Cause, f.Detail, f.Since = Halted, j.StopReason, j.Updated
	case len(j.After)+len(j.AfterKeys) > 0:
		f.Cause, f.Detail = NoSchedule, fmt.Sprintf("runs behind other jobs: %d", len(j.After)+len(j.AfterKeys))
	case j.Schedule.IsManual():
		f.Cause = NoSchedule
	case j.Next.IsZero() && j.WaitRun != 0:
		f.Cause, f.Runs = WaitsForRun, []int64{j.WaitRun}
	case j.Next.IsZero():
		f.Cause = NeverFires
	default:
		f.Cause, f.At, f.Detail = NextIs, j.Next, j.Schedule.Zone
	}
	return f
}

// missedFor is for how long instants that were not run explain something.
const missedFor = 24 * time.Hour

// missed finds instants of a job that were not run, within a day, by why.
func (a *attention) missed(j *store.Job) {
	at := map[string]int{}
	for i := range a.Skipped {
		r := &a.Skipped[i]
		if r.JobID != j.ID || a.Now.Sub(r.Created) > missedFor {
			continue
		}
		k, ok := at[r.Reason]
		if !ok {
			k = len(a.found)
			at[r.Reason] = k
			a.add(Finding{Cause: Missed, App: j.App, Jobs: []int64{j.ID}, Name: j.Name, Since: r.First, Detail: r.Reason})
		}
		f := &a.found[k]
		f.Bad += max(r.Count, 1)
		f.Of = f.Bad
		if r.First.Before(f.Since) {
			f.Since = r.First
		}
		if len(f.Runs) < MostRuns {
			f.Runs = append(f.Runs, r.ID)
		}
	}
}

// WhyRun returns why a run is where it is: faults first, and never nothing. The World is one that
// [ReadJob] has read for the job of the run.
func WhyRun(w World, r store.Run) []Finding {
	a := attention{look: lookAt(&w), dark: map[string]bool{}, byCause: map[string]int{}}
	f := Finding{App: r.App, Jobs: []int64{r.JobID}, Name: r.JobName, Runs: []int64{r.ID}, Secret: r.Secret}
	switch {
	case r.State.Ended():
		f.Cause, f.Since, f.Detail, f.Error = Ended, r.Ended, r.State.String(), cmp.Or(r.Reason, r.KillReason)
		if isBad(r.State) {
			f.Error = errorOf(&r)
		}
		return []Finding{f}
	case r.State != store.StatePlanned:
		f.Cause, f.Since, f.Detail = Runs, r.Started, r.Address
		incarnation, _ := store.LocalIncarnation(r.Address)
		for _, n := range w.Nodes {
			if n.Away && !n.Left && (n.Incarnation == r.Owner || n.Incarnation == incarnation) {
				a.add(Finding{Cause: NodeSilent, Detail: cmp.Or(n.ID, n.Incarnation)})
			}
		}
		return append(a.found, f)
	case r.Scheduled.After(w.Now):
		f.Cause, f.At = NotDue, r.Scheduled
		return []Finding{f}
	}
	j := a.jobs[r.JobID]
	if j == nil {
		f.Cause = Removed
		return []Finding{f}
	}
	a.keep(j, a.cluster, a.troubles, a.apps)
	if n := a.nobody(j); n != nil && !a.has(NoExecutor) {
		a.add(*n)
	}
	slices.SortStableFunc(a.found, func(x, y Finding) int { return cmp.Compare(gravity(x), gravity(y)) })
	var before []int64
	for i := range w.Running {
		if x := &w.Running[i]; x.JobID == r.JobID && x.ID != r.ID && !blockrule.Of(j.Block).SideBySide {
			before = append(before, x.ID)
		}
	}
	if len(before) > 0 {
		f.Cause, f.Runs, f.Late = WaitsForRun, before[:min(len(before), MostRuns)], w.Now.Sub(r.Scheduled)
		a.add(f)
	}
	if len(a.found) == 0 {
		f.Cause, f.Waiting, f.Late = Overdue, 1, w.Now.Sub(r.Scheduled)
		if f.Late <= a.patience() {
			f.Cause, f.At, f.Late, f.Waiting = NotDue, r.Scheduled, 0, 0
		} else {
			f.Cause = Unsaid
			f.Detail = strings.Join([]string{"its shard has a live node", "its app an executor", "none of its job's runs is under way"}, ", ")
		}
		a.add(f)
	}
	return a.found
}
