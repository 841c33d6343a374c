package audit

import (
	"cmp"
	"fmt"
	"slices"
)

// measure fills in how late starts were, and how fast others took over.
func (a *Auditor) measure(r *Report, from, to int64) {
	for run, starts := range a.starts {
		e := starts[0]
		if row := a.rows[run]; from <= e.Due && e.Due < to && (row.scheduleBorn() || row.Run == 0) && row.Count == 0 {
			r.Lateness = append(r.Lateness, e.At-e.Due*1000)
		}
	}
	byShard := a.nearestByShard()
	byEffect := map[string]Spread{}
	for _, f := range a.in.Faults {
		if f.Begin/1000 < from || f.Begin/1000 >= to {
			continue
		}
		if a.in.Rules.takeOver(f.Effect) > 0 {
			took := failover(f, byShard)
			r.Failover = append(r.Failover, took...)
			if !a.hindered(f, took) {
				byEffect[f.Effect] = append(byEffect[f.Effect], took...)
			}
		}
		if f.Again {
			a.measureBack(r, f, byShard)
		}
	}
	a.checkTakeOver(r, byEffect)
}

// CheckLateness holds the lateness of all starts of a report against its bound.
func (a *Auditor) CheckLateness(r *Report) {
	if p99 := r.Lateness.At(0.99); p99 > a.in.Rules.Lateness*1000 {
		r.Late++
		r.problem("late", "p99 of %d starts is %d ms, and may be %d", len(r.Lateness), p99/1000, a.in.Rules.Lateness)
	}
}

// failover is, for each shard of the victim, how long it took until another
// process started something of it. What is silent for less is not counted: nobody
// need take over from it.
func failover(f Fault, byShard map[int][]Event) (took Spread) {
	for _, shard := range f.Shards {
		at := firstAfter(byShard[shard], f.Begin, f.Victim)
		if at > 0 && (f.Effect != Silent || at <= f.End) {
			took = append(took, at-f.Begin)
		}
	}
	return took
}

// hindered reports whether another fault kept the others from taking over: the
// targets are for a fault that is alone.
func (a *Auditor) hindered(f Fault, took Spread) bool {
	if len(took) == 0 {
		return false
	}
	end := f.Begin + slices.Max(took)
	return slices.ContainsFunc(a.in.Faults, func(o Fault) bool {
		return (o.Effect == Blocked || o.Effect == Silent && o.Victim != f.Victim) && o.Begin <= end && f.Begin <= o.End+a.in.Rules.Back*1000
	})
}

// checkTakeOver holds the fail-over against its targets.
func (a *Auditor) checkTakeOver(r *Report, byEffect map[string]Spread) {
	if a.in.Rules.Busy {
		return
	}
	for _, effect := range sortedKeys(byEffect) {
		target := a.in.Rules.takeOver(effect)
		if p99 := byEffect[effect].At(0.99); p99 > target*1000 {
			r.Late++
			r.problem("slow fail-over", "p99 of %d shards whose node %s is %d ms, and may be %d", len(byEffect[effect]), effect, p99/1000, target)
		}
	}
}

// measureBack measures how long each shard took to schedule again.
func (a *Auditor) measureBack(r *Report, f Fault, byShard map[int][]Event) {
	for shard, starts := range byShard {
		at := firstAfter(starts, f.End, Process{})
		if at == 0 {
			continue
		}
		took := at - f.End
		r.Back = append(r.Back, took)
		if f.Within > 0 && took > f.Within*1000 {
			r.Late++
			r.problem("late", "shard %d started nothing for %d ms after the end of %s at %s", shard, took/1000, f.Name, moment(f.End))
		}
	}
}

// nearestByShard are the starts, in order of time, of jobs that run where they are
// scheduled.
func (a *Auditor) nearestByShard() map[int][]Event {
	all := map[int][]Event{}
	for _, starts := range a.starts {
		for _, e := range starts {
			if j := a.jobs[e.Job]; j.Nearest {
				all[j.Shard] = append(all[j.Shard], e)
			}
		}
	}
	for _, starts := range all {
		slices.SortFunc(starts, func(x, y Event) int { return cmp.Compare(x.At, y.At) })
	}
	return all
}

// firstAfter is the moment of the first start after another, by any other process
// than the one given.
func firstAfter(starts []Event, after int64, not Process) int64 {
	i, _ := slices.BinarySearchFunc(starts, after, func(e Event, at int64) int { return cmp.Compare(e.At, at) })
	for _, e := range starts[i:] {
		if e.Process() != not {
			return e.At
		}
	}
	return 0
}

// places says where and when a run was started.
func places(starts []Event) string {
	s := ""
	for i, e := range starts {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s/%d at %s", e.Node, e.PID, moment(e.At))
	}
	return s
}

// explanation is the line for an interrupted run.
func explanation(row Row, where []Process, f Fault) string {
	return fmt.Sprintf("run %d of job %d at %s (%s) in %v: %s of %s/%d at %s", row.Run, row.Job, clock(row.Due), stateName(row.State), where, f.Name, f.Victim.Node, f.Victim.PID, moment(f.Begin))
}
