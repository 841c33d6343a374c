package audit

import (
	"cmp"
	"slices"
	"strings"
)

// What is promised of waiting: a due run waits for a run of its own job, for a place that a
// handler holds, or for an executor. Whatever else it waits for, its node says so once it has
// waited for LeaseTTL and three seconds: Ready is an error, or Troubles has it. In: when runs
// were due and begun, and what the nodes said of themselves. The places of the executors are so
// many that no run of these workloads waits for one.

// words are the times in which each node said that something is wrong, of each in order.
type words map[string][]interval

// newWords sorts what was said. What a process has said last holds until it dies.
func newWords(all []Said, faults []Fault) words {
	w := words{}
	for node, said := range saidBy(all) {
		for i, s := range said {
			if s.Unready == "" && len(s.Troubles) == 0 {
				continue
			}
			end := saidUntil(said, i)
			for _, f := range faults {
				if f.Victim == s.Process && (f.Effect == Dies || f.Effect == Leaves) && f.Begin >= s.At {
					end = min(end, f.Begin)
				}
			}
			w[node] = append(w[node], interval{s.At, end})
		}
	}
	return w
}

// saidBy is what each node has said, in order.
func saidBy(all []Said) map[string][]Said {
	by := map[string][]Said{}
	for _, s := range all {
		by[s.Node] = append(by[s.Node], s)
	}
	for _, said := range by {
		slices.SortStableFunc(said, func(x, y Said) int { return cmp.Compare(x.At, y.At) })
	}
	return by
}

// saidUntil is when a node has said something else.
func saidUntil(said []Said, i int) int64 {
	if i+1 < len(said) {
		return said[i+1].At
	}
	return 1<<63 - 1
}

// checkTroubles wants each fault to be told of in time that is a trouble for longer than that.
func (a *Auditor) checkTroubles(r *Report, from, to int64) {
	by := saidBy(a.in.Said)
	for _, f := range a.in.Faults {
		if at := f.Begin / 1000; f.Trouble == "" || at < from || at >= to {
			continue
		}
		told := false
		for _, said := range by {
			for i, s := range said {
				told = told || s.At <= f.Begin+f.ToldWithin*1000 && f.Begin <= saidUntil(said, i) &&
					slices.ContainsFunc(s.Troubles, func(t string) bool { return strings.HasPrefix(t, f.Trouble) })
			}
		}
		if !told {
			r.Untold++
			r.problem("untold", "no node has told of the trouble %s within %d ms from %s on, the begin of %s", f.Trouble, f.ToldWithin, moment(f.Begin), f.Name)
		}
	}
}

// checkUntold looks for runs that waited for long while nobody said why. It is given runs and
// records of a stretch of time.
func (a *Auditor) checkUntold(r *Report, from, to int64) {
	byShard, ends := a.nearestByShard(), a.endsByJob()
	for _, row := range a.in.Rows {
		if at := row.instant(); at < from || at >= to {
			continue
		}
		due, begun, ok := row.waited()
		if !ok {
			continue
		}
		for _, e := range a.starts[row.Run] {
			begun = min(begun, max(due, e.At))
		}
		// It may have waited for a run of its own job until the latest that has ended.
		if i, _ := slices.BinarySearch(ends[row.Job], begun+1); i > 0 {
			due = max(due, ends[row.Job][i-1])
		}
		bound := a.in.Rules.untaken(Silent) * 1000
		if begun-due <= bound {
			continue
		}
		owners := ownersOf(byShard[a.jobs[row.Job].Shard], due, begun)
		if row.Owner != "" && !slices.Contains(owners, NodeOf(row.Owner)) {
			owners = append(owners, NodeOf(row.Owner))
		}
		if silent := longestGap(interval{due, begun}, join(append(a.told(owners), a.explain.away(a.jobs[row.Job].App)...))); silent > bound {
			r.Untold++
			r.problem("untold", "%s was due at %s and is %s since %s: for %d ms none of its nodes %v said why it waits, and they may be silent for %d",
				a.nameOf(row), moment(due), stateName(row.State), moment(begun), silent/1000, owners, bound/1000)
		}
	}
}

// waited is from when to when a run waited, in microseconds, until it was begun or recorded as
// skipped; not ok where it ended before that for another reason.
func (r Row) waited() (due, begun int64, ok bool) {
	switch {
	case r.State == Skipped && r.Parent == 0:
		return cmp.Or(r.First, r.Due) * 1000, r.Ended * 1000, r.Ended != 0
	case r.State == NoAddress: // for an executor
		return 0, 0, false
	}
	return r.Due * 1000, r.Started * 1000, r.Started != 0
}

// endsByJob are the moments at which runs have ended, in order.
func (a *Auditor) endsByJob() map[int64][]int64 {
	all := map[int64][]int64{}
	for _, row := range a.in.Rows {
		if row.Ended != 0 && row.Started != 0 {
			all[row.Job] = append(all[row.Job], row.Ended*1000)
		}
	}
	for _, ends := range all {
		slices.Sort(ends)
	}
	return all
}

// ownersOf are the nodes that may have had a shard in a stretch of time: where something of it
// was started last before, first behind and in between.
func ownersOf(starts []Event, begin, end int64) (nodes []string) {
	i, _ := slices.BinarySearchFunc(starts, begin, func(e Event, at int64) int { return cmp.Compare(e.At, at) })
	for _, e := range starts[max(0, i-1):] {
		if !slices.Contains(nodes, e.Node) {
			nodes = append(nodes, e.Node)
		}
		if e.At > end {
			break
		}
	}
	return nodes
}

// told are the times in which one of the nodes said why its runs wait, or could not.
func (a *Auditor) told(nodes []string) []interval {
	var all []interval
	for _, node := range nodes {
		all = append(all, a.words[node]...)
	}
	for _, f := range a.in.Faults {
		if i, ok := a.explain.outage(f); ok && slices.Contains(nodes, f.Victim.Node) {
			all = append(all, i)
		}
	}
	return join(all)
}

// longestGap is the longest part of a stretch of time in none of the intervals, which are in
// order and do not touch.
func longestGap(in interval, covered []interval) (longest int64) {
	at := in.begin
	for _, c := range covered {
		if c.begin >= in.end {
			break
		}
		longest = max(longest, c.begin-at)
		at = max(at, c.end)
	}
	return max(longest, in.end-at)
}
