package audit

import (
	"cmp"
	"slices"
)

// What is promised of the order of a serial job's runs, and so what is judged here:
// while an earlier run is untaken at a node that is away or silent, or was put back, no
// later one is started; one that waits for the end of another at its address is not
// waited for. Two that were started in their order may still be called the wrong way
// round by two nodes, as each has a pace of its own; one node calls them in their
// order. What a victim had taken is not waited for: it is lost, or begins when the
// victim wakes, and its start lies before those of the later ones in any case. The
// parts of one broadcast have no order among themselves, but those of a later
// trigger come behind each of an earlier one.

// checkOrder looks for runs that were started before an earlier one of their job, in
// the time after a fault.
func (a *Auditor) checkOrder(r *Report, f Fault) {
	byJob := map[int64][]begun{}
	for _, row := range a.dueAfter(f) {
		if starts := a.starts[row.Run]; len(starts) > 0 && a.jobs[row.Job].Block == BlockSerial {
			byJob[row.Job] = append(byJob[row.Job], begun{row, starts[0]})
		}
	}
	for _, job := range sortedKeys(byJob) {
		a.checkSequence(r, f, byJob[job])
	}
}

// begun is a run that a handler saw.
type begun struct {
	Row
	first Event
}

// checkSequence compares each run of a job with those due before it.
func (a *Auditor) checkSequence(r *Report, f Fault, runs []begun) {
	slices.SortFunc(runs, func(x, y begun) int { return cmp.Compare(x.Due, y.Due) })
	for i, later := range runs {
		for _, earlier := range runs[:i] {
			if !a.overtook(f, later, earlier) {
				continue
			}
			r.Disorder++
			r.problem("order", "job %d (%s, %s): run %d due at %s was started at %s and called at %s, before run %d due at %s, started at %s and called at %s; after %s of %s at %s",
				later.Job, a.jobs[later.Job].Name, a.jobs[later.Job].Route, later.Run, clock(later.Due), clock(later.Started), moment(later.first.At),
				earlier.Run, clock(earlier.Due), clock(earlier.Started), moment(earlier.first.At), f.Name, f.Victim.Node, moment(f.Begin))
			break // one report for each run that came too soon
		}
	}
}

// overtook reports whether the handler of a later run was called first, and nothing
// but the scheduler can have been the reason.
func (a *Auditor) overtook(f Fault, later, earlier begun) bool {
	switch {
	case later.Due <= earlier.Due || later.first.At >= earlier.first.At:
		return false
	case later.first.Process() == earlier.first.Process():
		return true
	}
	return later.Started < earlier.Started && !a.waitedForRoom(f, earlier, later)
}

// hearsay is how long the end of a run at another node may be on its way to who waits for
// it, in milliseconds.
const hearsay = 250

// doubted is how long after it fell silent a node may still be chosen, in milliseconds: two
// beats, and a moment.
const doubted = 3_000

// waitedForRoom reports whether, when a later run was started, yet another run of the job
// was at the address of an earlier one that was not: serial runs follow each other at one
// address, and those at other addresses do not wait for them. A run that waited like this at
// a node which has just fallen silent goes elsewhere in the end: where, its row says, and not
// where it waited.
func (a *Auditor) waitedForRoom(f Fault, earlier, later begun) bool {
	silent := f.Effect == Silent && later.Started*1000 >= f.Begin && later.Started <= f.Begin/1000+doubted
	for _, row := range a.in.Rows {
		there := row.Address == earlier.Address || silent && NodeOf(row.Address) == f.Victim.Node
		if there && row.Job == earlier.Job && row.Run != earlier.Run && row.Run != later.Run &&
			row.Started != 0 && row.Started <= later.Started && (row.Ended == 0 || row.Ended+hearsay >= later.Started) {
			return true
		}
	}
	return false
}
